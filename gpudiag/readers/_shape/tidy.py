"""Rows as a table must hold them: UTC, physical bounds, order, one row per key and instant."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from datetime import tzinfo
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._shape.coded import Coded, coded
from gpudiag.readers._shape.strays import without_strays
from gpudiag.readers._shape.streams import streams
from gpudiag.schema import ColumnSpec, TableSpec, conform, empty, text_dtype
from gpudiag.timezones import localize

ColumnsByName = MutableMapping[str, Any]
"""Arrays by column name. ``line`` (1-based line numbers) may be among them; it only serves messages."""

DUPLICATE = "duplicate sample"
CONFLICT = "duplicate sample with other values"
BACKWARDS = "time goes back"
SET_BACK = "time goes back into what is covered already, as by a clock that is set back or logs of two machines in one"
SET_BACK_BY = np.timedelta64(60, "s")
"""Less is a clock that is kept right, or rows that several threads wrote."""
SET_BACK_TIMES = 3
"""A clock is set back more seldom than rows without any order go back."""
NO_TIME = "row without a time"
NO_GPU = "row that names no GPU"
OVERFULL = "mem_used_mib above mem_total_mib"
ROUNDING = 0.01
"""Tools round the two sizes each for itself, some of them to whole GB."""

_LARGEST = np.finfo(np.float64).max


def tidy(
    table: TableSpec, rows: pd.DataFrame | ColumnsByName | None, zone: tzinfo, log: ProblemLog, *, written: bool = True
) -> pd.DataFrame:
    """One table in UTC, bounded, sorted and without duplicates: see :func:`arranged`; events are sorted alone."""
    if table.name == "events":
        return _events(table, rows, zone, log)
    return frame(table, arranged(table, rows, zone, log, written=written))


def arranged(
    table: TableSpec, rows: pd.DataFrame | ColumnsByName | None, zone: tzinfo, log: ProblemLog, *, written: bool = True
) -> dict[str, Any]:
    """The columns of one table in UTC, bounded, sorted and without duplicates; none where there is no row.

    Rows of a dict of arrays are taken out of it. ``written`` tells that rows come in the order in which they were
    written, so that a step back in time is odd. Texts of a key are :class:`Coded`.
    """
    columns = _columns(rows)
    if not columns:
        return {}
    lines = _array(columns.pop("line")) if "line" in columns else None
    timestamps = _utc(columns.pop("time"), zone, log, lines, columns.get("gpu"))
    known = np.ones(len(timestamps), bool)
    for kind, bad in ((NO_TIME, np.isnat(timestamps)), (NO_GPU, _unnamed(table, columns))):
        if (bad & known).any():
            log.add(kind, int((bad & known).sum()), line=_line(lines, bad & known), lost=True)
            known &= ~bad
    if not known.all():
        columns = {name: values[known] for name, values in columns.items()}
        timestamps, lines = timestamps[known], None if lines is None else lines[known]
    if not len(timestamps):
        return {}
    if written and (near := without_strays(timestamps, lines, log)) is not None:
        columns = {name: values[near] for name, values in columns.items()}
        timestamps, lines = timestamps[near], None if lines is None else lines[near]
    _keep_possible_memory(columns, table, lines, log)
    key = [name for name in table.key if name != "time"]
    texts = {name: coded(columns.pop(name)) for name in key if table[name].kind == "text"}
    group = _groups([texts.get(name, columns.get(name)) for name in key], len(timestamps))
    order = _order(group, timestamps, lines, log if written else ProblemLog())
    timestamps, group = timestamps[order], group[order]
    lines = None if lines is None else lines[order]
    same = (timestamps[1:] == timestamps[:-1]) & (group[1:] == group[:-1])
    out: dict[str, Any] = {"time": timestamps}
    for column in table.columns:
        if column.name in texts:
            out[column.name] = texts[column.name][order]
        elif column.name in columns:
            values = _bounded(_plain(columns.pop(column.name), column)[order], column, lines, log)
            if column.required or not _blank(values):
                out[column.name] = values
    if same.any():
        out = _merge(out, same, lines, key, log)
    return out


def _columns(rows: pd.DataFrame | ColumnsByName | None) -> ColumnsByName:
    """Arrays by column, none where there is no row."""
    columns: ColumnsByName = {} if rows is None else dict(rows.items()) if isinstance(rows, pd.DataFrame) else rows
    return columns if columns and len(columns["time"]) else {}


def frame(table: TableSpec, out: Mapping[str, Any]) -> pd.DataFrame:
    """Arrays by column as a table, empty without any: columns in order and of the right dtype."""
    if not out:
        return empty(table)
    data: dict[str, Any] = {}
    for column in table.columns:
        if column.name in out:
            values = out[column.name]
            if column.kind == "time":
                values = pd.DatetimeIndex(values, tz="UTC").as_unit("us")
            elif column.kind == "text":
                values = _text(values)
            elif column.kind == "int":
                values = _integers(values)
            data[column.name] = values
    return pd.DataFrame(data, copy=False)


def _events(table: TableSpec, given: pd.DataFrame | ColumnsByName | None, zone: Any, log: ProblemLog) -> pd.DataFrame:
    columns = _columns(given)
    if not columns:
        return empty(table)
    columns["time"] = pd.Series(pd.DatetimeIndex(_utc(columns["time"], zone, log), tz="UTC").as_unit("us"))
    rows = pd.DataFrame({name: _array(values) if name != "time" else values for name, values in columns.items()})
    return conform(rows.sort_values("time", kind="stable"), table)


def _array(values: Any) -> np.ndarray:
    return values if isinstance(values, np.ndarray) else values.to_numpy()


def _keep_possible_memory(columns: ColumnsByName, table: TableSpec, lines: np.ndarray | None, log: ProblemLog) -> None:
    """Memory in use that is more than all of the board's is unknown."""
    specs = {column.name: column for column in table.columns}
    if table.name != "gpu" or not {"mem_used_mib", "mem_total_mib"} <= columns.keys():
        return
    used, total = (_plain(columns[name], specs[name]) for name in ("mem_used_mib", "mem_total_mib"))
    bad = (total > 0) & (used > total * (1 + ROUNDING))
    if bad.any():
        at = int(np.argmax(bad))
        example = f"{used[at]} of {total[at]} MiB"
        log.add(OVERFULL, int(bad.sum()), line=_line(lines, bad), example=example)
        columns["mem_used_mib"] = np.where(bad, np.nan, used)


def _plain(values: Any, column: ColumnSpec) -> Any:
    """Numbers as float64 (a bit mask may be Int64 with gaps), text as objects."""
    if column.kind == "text":
        return _array(values)
    if isinstance(values, np.ndarray):
        return values.astype("float64", copy=False) if values.dtype.kind != "O" else pd.to_numeric(values)
    return values.to_numpy(dtype="float64", na_value=np.nan)


def _utc(timestamps: Any, zone: Any, log: ProblemLog, lines: np.ndarray | None = None, gpus: Any = None) -> np.ndarray:
    """Timestamps as naive UTC in microseconds, in the order given; lines and GPUs tell how they were written."""
    series: Any = timestamps if isinstance(timestamps, np.ndarray) else pd.Series(timestamps, copy=False)
    if getattr(series.dtype, "tz", None) is not None:
        return series.to_numpy(dtype="datetime64[us]")  # of zoned timestamps: their UTC
    local = localize(series, zone, partial(streams, lines, gpus, len(series)))
    log.add("timestamp in an hour that a clock change repeats", local.ambiguous)
    log.add("timestamp in an hour that a clock change skips", local.nonexistent)
    return local.utc


def _unnamed(table: TableSpec, columns: Mapping[str, Any]) -> Any:
    """Where no GPU is named; nowhere in a table of the machine."""
    if "gpu" not in table.key:
        return np.zeros(1, bool)
    gpus = columns["gpu"]
    return gpus.codes < 0 if isinstance(gpus, Coded) else np.asarray(pd.isna(gpus))


def _groups(keys: Sequence[Any], size: int) -> np.ndarray:
    """Codes by which rows are ordered before time: by the first key, then by the next."""
    group: np.ndarray | None = None
    for values in keys:
        if isinstance(values, Coded):
            codes, count = values.codes, len(values.labels)
        else:
            codes, unique = pd.factorize(_array(values), sort=True)
            count = len(unique)
        group = codes if group is None else group.astype(np.int64) * max(count, 1) + codes
    return np.zeros(size, dtype=np.int8) if group is None else group


def _order(group: np.ndarray, timestamps: np.ndarray, lines: np.ndarray | None, log: ProblemLog) -> np.ndarray | slice:
    """The permutation that sorts by group and time; rows of one instant keep their order."""
    order: np.ndarray | slice = slice(None)
    if (group[1:] < group[:-1]).any():
        order = np.argsort(group, kind="stable")
    sorted_group, sorted_time = group[order], timestamps[order]
    back = (sorted_time[1:] < sorted_time[:-1]) & (sorted_group[1:] == sorted_group[:-1])
    if not back.any():
        return order
    at = np.arange(len(group))[order][1:][back]
    first = int(at.min())
    log.add(
        BACKWARDS,
        int(back.sum()),
        line=None if lines is None else int(lines[first]),
        example=f"to {timestamps[first]} UTC",
    )
    _tell_set_back(sorted_time, np.flatnonzero(back) + 1, sorted_group, log)
    return np.lexsort((timestamps, group))


def _tell_set_back(times: np.ndarray, steps: np.ndarray, group: np.ndarray, log: ProblemLog) -> None:
    """Steps back by SET_BACK_BY or more into time that the rows just before them cover: a log that follows a later one
    in the same file does not. ``steps``: the rows after a step back; rows of one group stand together.
    """
    starts = np.union1d(np.flatnonzero(group[1:] != group[:-1]) + 1, np.append(steps, 0))
    before = starts[np.searchsorted(starts, steps) - 1]
    over = np.flatnonzero((times[steps - 1] - times[steps] >= SET_BACK_BY) & (times[steps] > times[before]))
    moments = np.unique(times[steps[over]])
    if 0 < len(moments) <= SET_BACK_TIMES:
        at = steps[over[0]]
        example = f"from {times[at - 1]} to {times[at]} UTC".replace(".000000", "")
        log.add(SET_BACK, len(moments), example=example)


def _bounded(values: Any, column: ColumnSpec, lines: np.ndarray | None, log: ProblemLog) -> Any:
    """Numbers with what is physically impossible made unknown."""
    if column.kind == "text" or (column.low is None and column.high is None):
        return values
    low = -np.inf if column.low is None else column.low
    high = np.inf if column.high is None else column.high
    if np.fmin.reduce(values) >= low and np.fmax.reduce(values) <= min(high, _LARGEST):
        return values
    bad = (values < low) | (values > high) | np.isinf(values)
    if bad.any():
        example = values[int(np.argmax(bad))]
        log.add(f"{column.name} out of bounds", int(bad.sum()), line=_line(lines, bad), example=f"{example:g}")
        values = np.where(bad, np.nan, values)
    return values


def _merge(out: dict[str, Any], same: np.ndarray, lines: np.ndarray | None, key: list[str], log: ProblemLog) -> dict:
    """Rows of one key and instant as one: the last known value of each column."""
    last = np.append(~same, True)
    doubled = np.append(False, same) | np.append(same, False)
    run = np.cumsum(np.append(True, ~same))[doubled] - 1
    some = {name: values[doubled] for name, values in out.items() if name not in ("time", *key)}
    groups = pd.DataFrame(some, index=range(len(run))).groupby(run, sort=True)
    merged = groups.last()
    conflicts = int((groups.nunique() > 1).any(axis=1).sum()) if merged.shape[1] else 0
    removed = int((~last).sum())
    example = f"{out['time'][int(np.argmax(~last))]} UTC"
    log.add(DUPLICATE, removed, line=_line(lines, np.append(False, same)), example=example)
    log.add(CONFLICT, conflicts)
    kept = {name: values[last] for name, values in out.items()}
    place = np.flatnonzero(doubled[last])
    for name in merged.columns:
        values = kept[name].copy()
        values[place] = merged[name].to_numpy()
        kept[name] = values
    return kept


def _line(lines: np.ndarray | None, where: np.ndarray) -> int | None:
    return None if lines is None else int(lines[where].min())


def _blank(values: Any) -> bool:
    return bool(pd.isna(values[0])) and bool(pd.isna(values).all())


def _text(values: Any) -> Any:
    if isinstance(values, Coded):
        return values.texts()
    if isinstance(values, np.ndarray) and pd.api.types.infer_dtype(values, skipna=False) == "string":
        return pd.array(values, dtype=text_dtype())
    return pd.Series(values).astype(text_dtype()).array


def _integers(values: np.ndarray) -> Any:
    missing = np.isnan(values)
    return pd.arrays.IntegerArray(np.where(missing, 0, values).astype("int64"), missing)
