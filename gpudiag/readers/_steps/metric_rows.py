"""Rows of metrics by name, one a step or an epoch, as the steps and the evaluations of a training."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import pandas as pd

from gpudiag.readers._steps.metric_kinds import of_epochs
from gpudiag.readers._steps.other_work import moment_of
from gpudiag.readers._steps.scalar_steps import RUNTIME, evaluation_line, runtime_line
from gpudiag.readers._steps.step_line import StepLine
from gpudiag.readers._steps.step_log import StepLog
from gpudiag.readers._steps.step_object import (
    STEPS,
    counts_calls,
    evaluates,
    is_of_evaluation,
    runtime_of_object,
    stamp_of_object,
    step_of_object,
)
from gpudiag.readers._steps.time_columns import EPOCH, Row, TimeColumns
from gpudiag.values import is_number

OF_CALLS = (
    "its only count is W&B's _step, which goes up by one with each call of log. If calls are several steps apart, a "
    "step took that much less."
)
_MOST = 2**53


def is_dated(rows: Iterable[Row]) -> bool:
    """Whether any row has a timestamp, of its own or W&B's."""
    return any(stamp_of_object(row) for row in rows)


def take(
    rows: Sequence[Row], times: TimeColumns, log: StepLog, series: str, *, dated: bool, first_row: int = 1
) -> None:
    """Give what rows tell of to a log, in their order, as lines of a kind; epochs where no row names a step. ``times``
    has told them.

    An evaluation in a row of its own took all that passed since the row of the same step; one that stands in each row
    is told of in none: what is usual holds it.
    """
    least = least_epoch(rows)
    evaluated = [evaluates(row) or any(map(is_of_evaluation, row)) for row in rows]
    always = all(evaluated)
    before: tuple[float, float] = math.nan, math.nan
    for number, (row, is_other) in enumerate(zip(rows, evaluated, strict=True), first_row):
        stamp = stamp_of_object(row) if dated else runtime_of_object(row)
        here = _count(row), moment_of(stamp)
        if is_other and not always:
            log.tell(_told(row, here[1] - before[1] if here[0] == before[0] else 0.0), stamp)
        if said := step_of_object(row, series) if times.by_step else epoch_of_row(row, series, least):
            log.add(number, times.meant(said), stamp)
            before = here


def least_epoch(rows: Iterable[Row]) -> float:
    """The least epoch that a row names, 1 where none does."""
    return min((row[EPOCH] for row in rows if is_number(row.get(EPOCH))), default=1)


def counts_only_calls(rows: Iterable[Row], frame: pd.DataFrame) -> bool:
    """Whether all that rows are counted by is W&B's own count, which is one more with each call of ``log``."""
    return all(map(counts_calls, rows)) and len(frame) == frame["step"].max() - frame["step"].min() + 1


def _told(row: Row, since_s: float) -> str:
    """The line that tells of an evaluation, by what its row states or by the time since the row of the same step."""
    stated = [value for name, value in row.items() if RUNTIME.search(name) and is_of_evaluation(name)]
    return runtime_line(stated[0]) if stated and is_number(stated[0]) else evaluation_line(since_s)


def epoch_of_row(row: Row, series: str, least: float) -> StepLine | None:
    """What a row on an epoch says; ``least``: the least epoch of all, which may be 0."""
    epoch = row.get(EPOCH)
    if not is_number(epoch) or not 0 <= epoch < _MOST or epoch != int(epoch):
        return None
    said = step_of_object({**{name: value for name, value in row.items() if name != EPOCH}, "step": epoch})
    meant = "step" if said and said.step_s >= 0 else ""
    return said and said._replace(series=of_epochs(series), step=int(epoch) + (least == 0), unit="epoch", meant=meant)


def _count(row: Row) -> float:
    return next((float(row[name]) for name in STEPS if is_number(row.get(name))), math.nan)
