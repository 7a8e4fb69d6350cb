"""Whether drops of utilization that repeat are waits as long as they look, or a beat of the samples with the steps.

A sample shows the last 1/6 to 1 s (NVML's documentation). Of steps that take nearly the time between samples, or a
fraction of it, each sample shows a slightly later part: waits of a second in each step look like drops of a minute.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gpudiag.measures._steps.courses import courses
from gpudiag.measures._steps.ranks import in_lock_step, one_of_each
from gpudiag.measures._time.microseconds import SECOND_US
from gpudiag.measures._waits.divided import LoggedGpu
from gpudiag.measures._waits.logged import LoggedInterval, LoggedTraining, edges, logged_trainings
from gpudiag.run import Run
from gpudiag.spans import held_within

Kind = Literal["waits", "step", "beat", "open"]
SHOWN_S = 1 / 6
"""The shortest time that a sample of utilization shows (NVML's documentation)."""
HARMONICS = 8
"""Parts of a step that may each hold a wait, such as the batches that a step accumulates."""
ALIKE = 0.2
"""Share of the period within which a beat is the period found: it jitters more than what it is made of."""
SAME_STEP = 0.05
ENOUGH = 6
"""Intervals of a log beyond the number of unknowns that show whether steps take longer during drops."""
STRETCHES = 10
SURE = 2.0
"""Standard errors."""
CLOCK_S = 2.0
ENOUGH_EDGES, FEW = 9.0, 1 / 3
"""From nine samples on that a beat would show between its levels, a third of them or fewer is no chance."""


@dataclass(frozen=True, eq=False)
class Drops:
    """Where utilization is low, as microseconds: ``start_us`` to ``end_us`` at the period, ``other_us`` as well (one
    row of start and end each), the record's ``span_us``, and whether the edges are too sharp for a beat.
    """

    start_us: np.ndarray
    end_us: np.ndarray
    other_us: np.ndarray
    span_us: tuple[int, int]
    sharp: bool


@dataclass(frozen=True)
class Reading:
    """``kind``: ``waits`` as long as they look, one wait a ``step``, a ``beat``, or ``open``. ``step_s``: time of a
    step that beats with the samples, or is the period; NaN unknown.
    """

    kind: Kind
    step_s: float = math.nan


def too_sharp(n_between: int, n_edges: int, period_s: float, sampling_s: float) -> bool:
    """Whether fewer samples lie between the levels than a beat would show there: it passes from one to the other as
    slowly as what a sample shows passes over an edge of the work.

    ``n_between``: samples in the middle half between the two levels.
    """
    n = period_s / sampling_s
    expected = n_edges * min(n * SHOWN_S / sampling_s, n / 2) / 2
    return expected >= ENOUGH_EDGES and n_between <= FEW * expected


def reading_of(run: Run, of_gpu: LoggedGpu | None, drops: Drops, period_s: float, sampling_s: float) -> Reading:
    """What the drops are, by the log of the training where there is one, and by their shape.

    Steps take longer by the waits between or in them, and go on through a beat. Where the log leaves that open, a beat
    with its steps must have the period found; without a log any steps may beat with the samples.
    """
    logs, step_s, error_s = _told(run, of_gpu, drops)
    if abs(period_s - step_s) <= SAME_STEP * period_s:
        return Reading("step", step_s)
    longer = _longer_steps(logs, drops)
    if longer is True:
        return Reading("waits")
    beats = _beats(step_s, error_s, period_s, sampling_s)
    if beats and longer is False:
        return Reading("beat", step_s)
    if drops.sharp or (step_s > 0 and not beats and longer is None):
        return Reading("waits")
    return Reading("open", step_s if beats else math.nan)


def step_through(run: Run, of_gpu: LoggedGpu | None, drops: Drops, sampling_s: float) -> float:
    """Time of a step where the log's steps surely go on through drops that seem longer than one; else NaN.

    Steps that vary do not beat regularly, but their waits join to longer ones in samples far apart likewise. A log
    beside several GPUs may be of another one: then only where two samples do not surely lie in each step, and what
    looks like a long wait may be many, as it is if the log is this GPU's.
    """
    if of_gpu is None or not (of_gpu.surely or of_gpu.logs) or not len(drops.start_us):
        return math.nan
    logs, step_s, _ = _told(run, of_gpu, drops)
    if not of_gpu.surely and not step_s < 2 * sampling_s:
        return math.nan
    longest_s = float((drops.end_us - drops.start_us).max()) / SECOND_US
    return step_s if longest_s > step_s and _longer_steps(logs, drops) is False else math.nan


def _told(run: Run, of_gpu: LoggedGpu | None, drops: Drops) -> tuple[list[list[LoggedInterval]], float, float]:
    """Intervals of the GPU's trainings within the record, the mean time of a step by them, and its standard error."""
    told = _logs(run, of_gpu)
    logs = [_plain(one, drops.span_us) for one in told]
    return logs, *(_step(logs, told[0].unit, drops) if told else _undated_step(run))


def _logs(run: Run, of_gpu: LoggedGpu | None) -> Sequence[LoggedTraining]:
    """Those of the GPU; where ranks each write one, that of a rank."""
    if of_gpu is not None and of_gpu.logs:
        return of_gpu.logs
    told = courses(run)
    if not told or not in_lock_step(told):
        return ()
    rank = float(one_of_each(told)[0]["rank"].iloc[0])
    return [one for one in logged_trainings(run) if one.rank == rank]


def _plain(training: LoggedTraining, span_us: tuple[int, int]) -> list[LoggedInterval]:
    """Intervals within the record whose ends are times of lines."""
    return [
        one
        for one in training.intervals[1:]
        if one.n > 0
        and one.cause not in ("restart", "first_steps")
        and span_us[0] <= one.start_us
        and one.end_us <= span_us[1]
    ]


def _step(logs: Sequence[Sequence[LoggedInterval]], unit: str, drops: Drops) -> tuple[float, float]:
    """Mean time of a step, and its standard error, of the training with most of the drops; NaN unknown.

    Intervals that took longer than the median by more than the clock and the scatter hold a pause and are left out.
    """
    held = [float(_within(*edges(log), drops.start_us, drops.end_us).sum()) for log in logs]
    intervals = logs[int(np.argmax(held))] if held else ()
    if unit != "step" or len(intervals) < ENOUGH:
        return math.nan, math.nan
    return _mean_step(*_took_s(intervals))


def _undated_step(run: Run) -> tuple[float, float]:
    """The same of a log without timestamps, by the clocks of its bars or as stated. Bars show whole seconds: what is
    rounded away of one interval goes to the next, so that stretches of many tell more than each.
    """
    told = courses(run)
    if not told or not in_lock_step(told) or logged_trainings(run):
        return math.nan, math.nan
    course = max(one_of_each(told), key=len)
    steps = course[course["usual"] & (course["took_s"] > 0)]
    if str(course["unit"].iloc[0]) != "step" or len(steps) < ENOUGH:
        return math.nan, math.nan
    stretch = np.arange(len(steps)) * STRETCHES // len(steps)
    sums = steps.groupby([course["opens"].cumsum()[steps.index], stretch])[["took_s", "n"]].sum()
    return _mean_step(sums["took_s"].to_numpy(float), sums["n"].to_numpy(float))


def _mean_step(took: np.ndarray, n: np.ndarray) -> tuple[float, float]:
    off = np.abs(took - n * np.median(took / n))
    near = off <= max(CLOCK_S, 3 * float(np.median(off)))
    step_s = float(took[near].sum() / n[near].sum())
    return step_s, float(np.sqrt(((took - n * step_s)[near] ** 2).sum()) / n[near].sum())


def _longer_steps(logs: Sequence[Sequence[LoggedInterval]], drops: Drops) -> bool | None:
    """Whether the log's steps take longer by the drops; None where it does not tell.

    By least squares the time between two lines is that of its steps, at one pace a training, and a share of the drops
    in it: 1 of waits, 0 of a beat.
    """
    intervals = [one for log in logs for one in log]
    took, n = _took_s(intervals)
    dropped = _within(*edges(intervals), drops.start_us, drops.end_us)
    other = _within(*edges(intervals), drops.other_us[:, 0], drops.other_us[:, 1])
    training = np.repeat(np.arange(len(logs)), [len(log) for log in logs])
    pace = np.where(training[:, None] == np.unique(training), n[:, None], 0.0)
    known = np.column_stack([dropped, *([other] if other.any() else []), pace])
    free = len(took) - known.shape[1]
    if free < ENOUGH or not dropped.any():
        return None
    found, _, rank, _ = np.linalg.lstsq(known, took, rcond=1e-6)
    if rank < known.shape[1]:
        return None
    scatter = float(((took - known @ found) ** 2).sum()) / free
    share, error = float(found[0]), float(np.sqrt(scatter * np.linalg.inv(known.T @ known)[0, 0]))
    if share - SURE * error > 0.5:
        return True
    return False if share + SURE * error < 0.5 else None


def _took_s(intervals: Sequence[LoggedInterval]) -> tuple[np.ndarray, np.ndarray]:
    """Seconds of each interval, and its steps."""
    start, end = edges(intervals)
    return (end - start) / SECOND_US, np.array([one.n for one in intervals], float)


def _within(start_us: np.ndarray, end_us: np.ndarray, low_us: np.ndarray, high_us: np.ndarray) -> np.ndarray:
    """Seconds of the spans from low to high, in order and apart, that lie between each start and end."""
    return held_within(start_us, end_us, low_us, high_us, (high_us - low_us) / SECOND_US)


def _beats(step_s: float, error_s: float, period_s: float, sampling_s: float) -> bool:
    """Whether steps of that length, or equal parts of them, show at the period when sampled."""
    if not step_s > 0:
        return False
    parts = np.arange(1, HARMONICS + 1)
    rate = parts / step_s
    turns = np.rint(rate * sampling_s)
    shown = np.abs(rate - turns / sampling_s)
    off = ALIKE / period_s + SURE * parts * error_s / step_s**2
    return bool(((np.abs(shown - 1 / period_s) <= off) & (turns > 0)).any())
