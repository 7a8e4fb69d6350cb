"""Tables with a reading a row (time, GPU, metric, value), as rows of one GPU and instant."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property

import numpy as np
import polars as pl

from gpudiag.patterns import late
from gpudiag.readers._delimited.table_layout import OF_OTHERS, names_columns
from gpudiag.readers._fields.aliases import meaning_of
from gpudiag.readers._fields.dcgm_fields import BY_EXPORTER_NAME
from gpudiag.readers._fields.host_labels import ADDRESS, HOSTS, INDEXES, UUIDS
from gpudiag.readers._fields.metric_names import METRICS
from gpudiag.readers._io.csv_records import cells_of
from gpudiag.readers._shape.timestamp_forms import tell_form

SEPARATOR = "\t"
_SEPARATORS = (",", ";", "\t")
_METRICS = (
    "_field",
    "__name__",
    "metric",
    "metric_name",
    "metricname",
    "variable",
    "field",
    "series",
    "measurement",
    "key",
)
"""Names of a column of metrics: those of Influx, of Prometheus, of people, of ``pandas.melt`` and of Grafana."""
_VALUE = late(r"(?i)_?values?(?: #\w+)?|val|reading")
_BESIDE = (("_measurement",), ("unit", "Unit", "units"), ("GPU_I_ID",))
_TIMES = ("time", "date", "elapsed")
_LABELS = {"host": (*HOSTS, ADDRESS), "gpu": INDEXES, "uuid": UUIDS}
_IDENTIFIES = ("index", "uuid", "bus_id", "name", "host", "driver")
_SNIFFED_LINES = 20
_SAMPLE_ROWS = 100
_UNKNOWN = "-"
_LESSER = " value"
"""Behind the name of a column, once for each better source of it: a word that changes no meaning."""

Named = tuple[tuple[str, str], ...]
"""Names and cells."""


@dataclass(frozen=True)
class LongColumns:
    """Where a header puts what a reading needs: names and places of times (``when``) and of what tells the GPU."""

    separator: str
    names: tuple[str, ...]
    metric: int
    value: int
    when: tuple[tuple[str, int], ...]
    whose: tuple[tuple[str, int], ...]

    def named(self, cells: Sequence[str]) -> tuple[str, float]:
        """The name of the column that holds the metric of a row, and what a value is worth in its unit; empty for one
        of a MIG instance and not of the board.
        """
        measurement, unit, instance = ("" if at is None else cells[at].strip() for at in self._beside)
        return _named(cells[self.metric].strip(), measurement, unit, bool(instance))

    @cached_property
    def rest(self) -> tuple[tuple[str, int], ...]:
        """Names and places of what nothing is read of."""
        used = {self.metric, self.value, *self._beside, *(at for _, at in (*self.when, *self.whose))}
        return tuple((name, at) for at, name in enumerate(self.names) if at not in used)

    @cached_property
    def _beside(self) -> tuple[int | None, ...]:
        return tuple(next((at for at, name in enumerate(self.names) if name in one), None) for one in _BESIDE)


@cache
def _named(name: str, measurement: str, unit: str, of_instance: bool) -> tuple[str, float]:
    metric = METRICS.get(name)
    if of_instance and (metric is None or metric.instance):
        return "", 1.0
    if metric is not None and name not in BY_EXPORTER_NAME:
        return f"gpu_{metric.column}{_LESSER * metric.rank}", metric.factor
    name = re.sub("[,\t\r\n]", ";", name.replace('"', ""))  # as labels of a series are written in a name
    if measurement:  # Telegraf has a field used of disks as well
        both = f"{measurement} {name}"
        name = next((one for one in (both, name) if meaning_of(one).metric and meaning_of(one).gpu), _UNKNOWN)
    return (f"{name} ({unit})" if unit and not meaning_of(name).unit else name), 1.0


def find_long(lines: Sequence[str]) -> LongColumns | None:
    """The columns of the first header with readings of GPUs below it."""
    for number, line in enumerate(lines[:_SNIFFED_LINES], 1):
        for separator in _SEPARATORS if not OF_OTHERS.search(line) else ():
            columns = columns_of(cells_of(line, separator), separator) if separator in line else None
            if columns and _of_gpus(columns, lines[number:]):
                return columns
    return None


def columns_of(names: Sequence[str], separator: str) -> LongColumns | None:
    """The columns below these names; None without a metric, one value and a time among them."""
    names = [name.strip() for name in names]
    values = [at for at, name in enumerate(names) if _VALUE.fullmatch(name)]
    metrics = [at for metric in _METRICS for at, name in enumerate(names) if name.lower() == metric]
    if len(values) != 1 or not metrics:
        return None
    targets = [meaning_of(name).target for name in names]
    when = [(name, at) for at, name in enumerate(names) if targets[at] in _TIMES]
    if not when:
        return None
    whose: dict[str, int] = {}
    for name, labels in _LABELS.items():
        if stated := [label for label in labels if label in names]:
            whose[name] = names.index(stated[0])
    told = {meaning_of(name).target for name in whose}
    rest = {at: name for at, name in enumerate(names) if targets[at] not in told and at not in (metrics[0], values[0])}
    whose |= {name: at for at, name in rest.items() if targets[at] in _IDENTIFIES}
    return LongColumns(separator, tuple(names), metrics[0], values[0], tuple(when), tuple(whose.items()))


def _of_gpus(columns: LongColumns, below: Sequence[str]) -> bool:
    rows = [cells for line in below if len(cells := cells_of(line, columns.separator)) == len(columns.names)]
    metrics = [name for name in dict.fromkeys(columns.named(row)[0] for row in rows) if meaning_of(name).metric]
    return bool(metrics) and names_columns([name for name, _ in (*columns.when, *columns.whose)] + metrics)


@dataclass
class WideRows:
    """Rows of one GPU and instant; a second value of one makes another row."""

    _keys: list[Named] = field(default_factory=list)
    _values: list[dict[str, str]] = field(default_factory=list)
    _place: dict[tuple[Named, int], int] = field(default_factory=dict)
    _again: Counter[tuple[Named, str]] = field(default_factory=Counter)
    _series: dict[tuple[Named, str], list[int]] = field(default_factory=dict)
    """The rows of the readings of one metric of one GPU, as they were written."""
    _rest: dict[tuple[Named, str], list[Named]] = field(default_factory=dict)
    """What stood beside these readings and is not read."""

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, when: Named, whose: Named, metric: str, value: str, rest: Named) -> None:
        """Take a reading."""
        key = when + whose
        at = self._place.setdefault((key, 0), len(self._keys))
        if at < len(self._keys) and metric in self._values[at]:
            self._again[key, metric] += 1
            at = self._place.setdefault((key, self._again[key, metric]), len(self._keys))
        if at == len(self._keys):
            self._keys.append(key)
            self._values.append({})
        self._values[at][metric] = value
        self._series.setdefault((whose, metric), []).append(at)
        self._rest.setdefault((whose, metric), []).append(rest)

    def apart_by(self) -> str:
        """The column in which most readings of one metric, GPU and time differ, and whose cells come again at other
        times (those of steps do not): it tells things apart that may be different GPUs. Empty where there is none.
        """
        for (whose, metric), places in self._series.items():
            times = [self._keys[at] for at in places]
            several = len(times) - len({*times})
            if len({(self._keys[at], self._values[at][metric]) for at in places}) == len({*times}):
                continue
            rest = [dict(cells) for cells in self._rest[whose, metric]]
            for name in dict.fromkeys(name for cells in rest for name in cells):
                column = [cells.get(name, "") for cells in rest]
                apart = len({*zip(times, column, strict=True)}) - len({*times})
                if 2 * apart > several and len({*column}) < len({*times}):
                    return name
        return ""

    def lines(self, times: int) -> Iterator[str]:
        """A header and the rows; the best source of a column stands before others. ``times``: so many cells tell it."""
        names = dict.fromkeys(name for key in self._keys for name, _ in key)
        metrics = dict.fromkeys(metric for row in self._values for metric in row)
        best = sorted(metrics, key=lambda name: METRICS[name].rank if name in METRICS else name.count(_LESSER))
        yield SEPARATOR.join([*names, *best]) + "\n"
        for at in self._order(times):
            key, values = dict(self._keys[at]), self._values[at]
            yield (
                SEPARATOR.join([*(key.get(name, "") for name in names), *(values.get(one, "") for one in best)]) + "\n"
            )

    def _order(self, times: int) -> Sequence[int]:
        """By time, as a metric may begin at rows that another lacks; as they were written where time goes back in one
        metric of one GPU: a clock is set back.
        """
        texts = [" ".join(cell for _, cell in key[:times]) for key in self._keys]
        form = tell_form(texts[:_SAMPLE_ROWS])
        if form is None:
            return range(len(texts))
        at = form.read(pl.Series(texts)).to_numpy().astype("datetime64[us]")
        back = any((np.diff(at[rows]) < np.timedelta64(0)).any() for rows in self._series.values())
        return range(len(texts)) if back else np.argsort(at, kind="stable").tolist()
