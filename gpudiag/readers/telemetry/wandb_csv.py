"""W&B's system metrics as CSV: the frame of ``run.history(stream="events")``, or a chart's data exported in the app.

The app writes ``RUN - system/gpu.0.gpu`` with ``__MIN`` and ``__MAX`` beside it, under the x-axis of the chart
(https://docs.wandb.ai/models/app/features/panels/line-plot).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from gpudiag.errors import InputError
from gpudiag.readers._fields.wandb_metrics import WandbTables, WandbTick, joined, plain_name, tables
from gpudiag.readers._io.csv_records import cells_of, header_and_rows
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._shape.finish import finish, nothing_usable
from gpudiag.readers._shape.snapshots import quantity
from gpudiag.readers._shape.ticks import FROM_START, is_epoch
from gpudiag.readers.base import Reader, ReadOptions, Telemetry

NAME = "W&B metrics CSV"
RUNS = "GPUs of several runs are named run/index."
MEANS = "The data of a chart are means over its stretches of time: shorter waits do not show."
_EPOCHS, _SINCE_START = ("_timestamp", "Wall Time"), ("_runtime", "Relative Time (Process)", "Relative Time (Wall)")
_STEPS = ("_step", "Step")
_COLUMN = re.compile(r"(?:(?P<run>.+) - )?(?P<key>system[./].+)")
_GPU_KEY = re.compile(r"system[./]gpu\.\d+\.\w+")
_BOUNDS = ("__MIN", "__MAX")
_GROUP = "Group: "
_LONGEST_S = 1e8
"""No run takes three years: a larger time is torn."""


@dataclass(frozen=True)
class _Columns:
    """Where the time stands, whether it is since 1970, and run and metric by place; the run is empty where unnamed."""

    time: int
    epoch: bool
    metrics: dict[int, tuple[str, str]]

    @property
    def runs(self) -> list[str]:
        return list(dict.fromkeys(run for run, _ in self.metrics.values()))


def recognises(source: Source) -> bool:
    """A header that names system metrics of a GPU beside one of the x-axes of W&B."""
    if source.is_dir or source.is_binary or not source.lines:
        return False
    names = cells_of(source.lines[0], holding="gpu.")
    axes = {*_EPOCHS, *_SINCE_START, *_STEPS}
    return not axes.isdisjoint(names) and any(
        match and _GPU_KEY.fullmatch(match["key"]) for match in map(_COLUMN.fullmatch, names)
    )


def read(source: Source, options: ReadOptions) -> Telemetry:
    """Read every row; see :func:`gpudiag.readers.telemetry.read_telemetry`."""
    log = ProblemLog()
    names, rows = header_and_rows(source.read_text(), ",", log, source.path)
    columns = _columns(names, source)
    ticks: dict[str, list[WandbTick]] = {run: [] for run in columns.runs}
    for number, cells in rows:
        at = quantity(cells[columns.time]) if len(cells) == len(names) else None
        if at is None or not (is_epoch(at) if columns.epoch else 0 <= at < _LONGEST_S):
            log.add("torn row", line=number, example=",".join(cells), lost=True)
            continue
        for run, values in _values(cells, columns):
            ticks[run].append(WandbTick(round(at * 1e6), values, number))
    found = {run: tables(joined(own)) for run, own in ticks.items() if own}
    several = len(columns.runs) > 1
    gpus = [_named(run, own, several=several) for run, own in found.items() if own.gpu is not None]
    if not gpus:
        raise nothing_usable(source, NAME, log)
    host = None if several else next(iter(found.values())).host
    notes = [] if columns.epoch else [FROM_START]
    notes += [RUNS] if several else []
    notes += [MEANS] if any(name.endswith(_BOUNDS) for name in names) else []
    notes += dict.fromkeys(note for own in found.values() for note in own.notes)
    return finish(source, NAME, options, log, gpu=pd.concat(gpus, ignore_index=True), host=host, notes=notes)


def _columns(names: Sequence[str], source: Source) -> _Columns:
    """The columns to read. Raises InputError where they do not say when a GPU did something, or which one."""
    metrics = {
        at: (match["run"] or "", plain_name(match["key"]))
        for at, name in enumerate(names)
        if (match := _COLUMN.fullmatch(name)) and not name.endswith(_BOUNDS)
    }
    times = [name for name in (*_EPOCHS, *_SINCE_START) if name in names]
    if not times:
        raise InputError(
            f"{source.path}: counts steps, and says no time; expected a column Wall Time or Relative Time (Process). "
            "Choose it as the x-axis of the chart, and export again."
        )
    columns = _Columns(names.index(times[0]), times[0] in _EPOCHS, metrics)
    if any(run.startswith(_GROUP) for run in columns.runs):
        raise InputError(f"{source.path}: holds means over groups of runs. Export one run, without grouping.")
    if len(columns.runs) > 1 and not columns.epoch:
        raise InputError(
            f"{source.path}: holds {len(columns.runs)} runs whose times count from the start of each. Export one run, "
            "or choose Wall Time as the x-axis of the chart."
        )
    return columns


def _values(cells: Sequence[str], columns: _Columns) -> Iterator[tuple[str, dict[str, float]]]:
    """What a row tells of each run."""
    by_run: dict[str, dict[str, float]] = {}
    for at, (run, metric) in columns.metrics.items():
        value = quantity(cells[at])
        if value is not None:
            by_run.setdefault(run, {})[metric] = value
    yield from by_run.items()


def _named(run: str, found: WandbTables, *, several: bool) -> pd.DataFrame:
    """The rows of a run; of several runs, each GPU is called run/index."""
    assert found.gpu is not None
    return found.gpu.assign(gpu=run + "/" + found.gpu["gpu"]) if several else found.gpu


READER = Reader(NAME, recognises, read)
