"""Rows of metrics by name, one a step or an epoch, as the steps and the evaluations of a training."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median
from typing import Any, TypeAlias, TypeGuard

import pandas as pd

from gpudiag.readers._shape.ticks import is_epoch
from gpudiag.readers._steps.other_work import moment_of
from gpudiag.readers._steps.scalar_steps import RUNTIME, evaluation_line, runtime_line
from gpudiag.readers._steps.step_line import StepLine
from gpudiag.readers._steps.step_log import StepLog
from gpudiag.readers._steps.step_object import (
    STEPS,
    counts_calls,
    is_of_evaluation,
    runtime_of_object,
    stamp_of_object,
    step_of_object,
)

Row: TypeAlias = Mapping[str, Any]
EPOCH, TIME, TIME_MS = "epoch", "time", "time_ms"
OF_CALLS = (
    "its only count is W&B's _step, which goes up by one with each call of log. If calls are several steps apart, a "
    "step took that much less."
)
_RISES = 0.9
"""Part of the rows whose time is more than before: it may be the time since the training began."""
_HALF_AS_MUCH = 1.5
_FAR = 100
"""Rows: a first one may hold a compilation or the caching of data, but no more."""
_ELAPSED, _OF_STEP, _UNKNOWN = "elapsed", "step", "unknown"
_MOST = 2**53


def is_dated(rows: Iterable[Row]) -> bool:
    """Whether any row has a timestamp, of its own or W&B's."""
    return any(stamp_of_object(row) for row in rows)


def take(rows: Sequence[Row], log: StepLog, series: str, *, dated: bool, first_row: int = 1) -> None:
    """Give what rows tell of to a log, in their order, as lines of a kind; epochs where no row names a step.

    ``time`` is the time of a step, or since the training began where it grows from row to row. An evaluation in a row
    of its own took all that passed since the row of the same step; one that stands in each row is told of in none: what
    is usual holds it.
    """
    by_step = any(name in row for row in rows for name in STEPS)
    least = min((row[EPOCH] for row in rows if _is_number(row.get(EPOCH))), default=1)
    evaluated = [any(map(is_of_evaluation, row)) for row in rows]
    always = all(evaluated)
    before: tuple[float, float] = math.nan, math.nan
    for number, (row, evaluates) in enumerate(zip(_with_elapsed(rows), evaluated, strict=True), first_row):
        stamp = stamp_of_object(row) if dated else runtime_of_object(row)
        here = _count(row), moment_of(stamp)
        if evaluates and not always:
            log.tell(_told(row, here[1] - before[1] if here[0] == before[0] else 0.0), stamp)
        if said := _step(row, series) if by_step else _epoch(row, series, least):
            log.add(number, said, stamp)
            before = here


def counts_only_calls(rows: Iterable[Row], frame: pd.DataFrame) -> bool:
    """Whether all that rows are counted by is W&B's own count, which is one more with each call of ``log``."""
    return all(map(counts_calls, rows)) and len(frame) == frame["step"].max() - frame["step"].min() + 1


def _told(row: Row, since_s: float) -> str:
    """The line that tells of an evaluation, by what its row states or by the time since the row of the same step."""
    stated = [value for name, value in row.items() if RUNTIME.search(name) and is_of_evaluation(name)]
    return runtime_line(stated[0]) if stated and _is_number(stated[0]) else evaluation_line(since_s)


def _step(row: Row, series: str) -> StepLine | None:
    said = step_of_object(row)
    return said and replace(said, series=series)


def _epoch(row: Row, series: str, least: float) -> StepLine | None:
    """What a row on an epoch says; ``least``: the least epoch of all, which may be 0."""
    epoch = row.get(EPOCH)
    if not _is_number(epoch) or not 0 <= epoch < _MOST or epoch != int(epoch):
        return None
    said = step_of_object({**{name: value for name, value in row.items() if name != EPOCH}, "step": epoch})
    meant = "step" if said and said.step_s >= 0 else ""
    return said and replace(said, series=f"{series}|epochs", step=int(epoch) + (least == 0), unit="epoch", meant=meant)


def _with_elapsed(rows: Sequence[Row]) -> Iterator[Row]:
    """The rows with ``time`` and ``time_ms`` as what they are: the time since the training began, or that of a step, as
    a step is told; without them where nobody knows which.
    """
    meant = {TIME: _meaning(rows, TIME), TIME_MS: _meaning(rows, TIME_MS)}
    for row in rows:
        told = {name: value for name, value in row.items() if meant.get(name) != _UNKNOWN}
        for name, unit_s in ((TIME, 1.0), (TIME_MS, 1e-3)):
            if meant[name] == _ELAPSED and _is_number(told.get(name)):
                told["elapsed"] = unit_s * told.pop(name)
        yield told


def _meaning(rows: Sequence[Row], name: str) -> str:
    """What a column of times holds. One that rises in nearly all rows and by half or more counts from the beginning,
    but not where that is hundreds of rows away. One that hardly changes is the time of a step, unless the counts of the
    rows begin late: then it may count from a beginning that the table does not hold.
    """
    times = [float(row[name]) for row in rows if _is_number(row.get(name))]
    if len(times) < 2 or is_epoch(times[0]) or is_epoch(times[0] / 1000):
        return ""
    rises = sum(before < after for before, after in pairwise(times)) >= _RISES * (len(times) - 1)
    if not rises:
        return _OF_STEP
    usual_s = median(after - before for before, after in pairwise(times))
    if times[-1] < _HALF_AS_MUCH * times[0]:
        return _UNKNOWN if _begins_late(rows) else _OF_STEP
    return _ELAPSED if times[0] <= _FAR * usual_s else _UNKNOWN


def _begins_late(rows: Sequence[Row]) -> bool:
    """Whether the first row is more than two of the usual strides from the beginning."""
    counts = [count for row in rows if not math.isnan(count := _place(row))]
    strides = [after - before for before, after in pairwise(counts) if after > before]
    return bool(strides) and counts[0] > 2 * median(strides)


def _place(row: Row) -> float:
    epoch = row.get(EPOCH)
    return float(epoch) if math.isnan(step := _count(row)) and _is_number(epoch) else step


def _count(row: Row) -> float:
    return next((float(row[name]) for name in STEPS if _is_number(row.get(name))), math.nan)


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
