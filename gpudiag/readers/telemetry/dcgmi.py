"""``dcgmi dmon``: its text, and CSV made of it: one field a row, or columns named by field.

The text has no time. Profiling fields (1001 to 1016) are fractions of 1, utilizations are percent.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from gpudiag.errors import InputError
from gpudiag.readers._delimited.column_text import gpu_ticks, holds, read_rows, timestamp_rows
from gpudiag.readers._fields.dcgm_fields import BY_NAME, BY_NUMBER, BY_TAG, Metric, without_blanks
from gpudiag.readers._io.csv_records import cells_of
from gpudiag.readers._io.lines import numbered_lines
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._shape.engine import settle
from gpudiag.readers._shape.finish import finish, nothing_usable
from gpudiag.readers._shape.long_form import widen, with_total, xid_events
from gpudiag.readers._shape.snapshots import quantity
from gpudiag.readers._shape.ticks import is_epoch
from gpudiag.readers.base import Reader, ReadOptions, Telemetry

NAME = "dcgmi dmon"
OTHER_ENTITY = "row of a MIG instance, link or CPU"
ONLY_INSTANCES = (
    "holds rows of MIG instances (GPU-I) alone, which do not say of which GPU they are; record the whole GPUs: "
    "dcgmi dmon -e 203,155,252,1001 -d 1000 > dcgmi.log"
)
RELATIVE_NOTE = "Its time is relative: it is counted from 1970-01-01."

_GPU_NAMES = ("gpuid", "gpu_id", "gpu")
_SCALES_US = {"timestampus": 1.0, "time_us": 1.0, "time_ms": 1e3, "time_s": 1e6}
_LONGEST_US = 1e16
"""317 years: a larger count is torn, whether since 1970 or since a start."""

_METRICS: dict[str, Metric] = BY_NAME | BY_TAG | BY_NUMBER | {"watts": BY_TAG["power"]}


def recognises(source: Source) -> bool:
    return holds(source, "dcgmi") or (bool(source.top) and _is_csv(_names(source.top[0])))


def _names(line: str) -> list[str]:
    return [name.strip().lower() for name in line.split(",")]


def _is_csv(names: Sequence[str]) -> bool:
    """True for the header of either CSV: columns named by bare field number, or DCGM's own timestamp beside a field."""
    known = [name for name in names if name in _METRICS]
    long = {"field", "values"} <= set(names)
    named = long or any(name in BY_NUMBER for name in known) or ("timestampus" in names and bool(known))
    return named and not {*_GPU_NAMES}.isdisjoint(names) and not {*_SCALES_US}.isdisjoint(names)


def read(source: Source, options: ReadOptions) -> Telemetry:
    log = ProblemLog()
    return _read_text(source, options, log) if holds(source, "dcgmi") else _read_csv(source, options, log)


def _read_text(source: Source, options: ReadOptions, log: ProblemLog) -> Telemetry:
    rows = read_rows(source, log, "dcgmi", list(BY_TAG))
    if not rows.is_empty():
        board = rows["entity"] == "GPU"
        log.add(OTHER_ENTITY, int((~board).sum()))
        if not board.any() and (rows["entity"] == "GPU-I").any():
            raise InputError(f"{source.path}: {ONLY_INSTANCES}")
        rows = rows.filter(board)
    if rows.is_empty() or set(rows.columns).isdisjoint(BY_TAG):
        raise nothing_usable(source, NAME, log)
    time, notes = timestamp_rows(rows, gpu_ticks(rows), options.period_s)
    table = pd.DataFrame({"time": time, "gpu": rows["gpu"].to_list()})
    for tag, metric in sorted(BY_TAG.items(), key=lambda item: item[1].rank):
        if tag in rows.columns:
            values = without_blanks(rows[tag].fill_null(float("nan")).to_numpy()) * metric.factor
            table[metric.column] = table[metric.column].fillna(pd.Series(values)) if metric.column in table else values
    events = xid_events(table)
    table, more = settle(with_total(table))
    return finish(source, NAME, options, log, gpu=table, events=events, notes=[*notes, *more])


def _read_csv(source: Source, options: ReadOptions, log: ProblemLog) -> Telemetry:
    lines = numbered_lines(source, log)
    _, header = next(lines)
    names = _names(header)
    gpu_at = next(names.index(name) for name in _GPU_NAMES if name in names)
    time_at = next(names.index(name) for name in _SCALES_US if name in names)
    scale_us = _SCALES_US[names[time_at]]
    long = "field" in names
    readings: list[tuple[float, str, str, float, int]] = []
    for number, line in lines:
        cells = [cell.strip() for cell in cells_of(line)]
        timestamp = quantity(cells[time_at]) if len(cells) == len(names) else None
        if timestamp is None or not 0 <= timestamp * scale_us < _LONGEST_US or not cells[gpu_at].isdecimal():
            _odd(line, header, number, log)
            continue
        named = (
            [(cells[names.index("field")], cells[names.index("values")])] if long else zip(names, cells, strict=True)
        )
        for name, cell in named:
            metric, value = _METRICS.get(name.lower()), quantity(cell)
            if metric is not None:
                scaled = np.nan if value is None else value * metric.factor
                readings.append((timestamp * scale_us, cells[gpu_at], metric.column, scaled, metric.rank))
    if not readings:
        raise nothing_usable(source, NAME, log)
    gpu, events = widen(pd.DataFrame(readings, columns=["time", "gpu", "column", "value", "rank"]), log, near=long)
    gpu, notes = settle(gpu)
    since_1970 = is_epoch(float(gpu["time"].median()) / 1e6)
    notes += [] if since_1970 else [RELATIVE_NOTE]
    for table in (gpu, events):
        timestamps = table["time"].round().astype("int64").astype("datetime64[us]")
        table["time"] = timestamps.dt.tz_localize("UTC") if since_1970 else timestamps
    return finish(source, NAME, options, log, gpu=gpu, events=events, notes=notes)


def _odd(line: str, header: str, number: int, log: ProblemLog) -> None:
    if line.strip() and line != header:
        torn = line[:1].isdecimal()
        log.add("torn row" if torn else "line that is no sample", line=number, example=line, lost=torn)


READER = Reader(NAME, recognises, read)
