"""Lasting changes of a GPU's level over the run (METHODS 8: PELT on block means)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from gpudiag.errors import NotMeasurable
from gpudiag.facts import Column, Fact, Row, Rows, column, fact, table_of
from gpudiag.measures._gpu.gpu_rows import gpu_order
from gpudiag.measures._steps.paused_for import BOTH
from gpudiag.measures._time.gpu_time import gpu_time
from gpudiag.measures._time.idle import period_by_gpu, without_pauses
from gpudiag.measures._time.microseconds import SECOND_US, microseconds, utc
from gpudiag.measures._time.no_waits import between_jobs
from gpudiag.measures._time.periodicity import Period
from gpudiag.measures._time.segments import change_points
from gpudiag.measures._time.trial_intervals import intervals_of
from gpudiag.measures._time.weighted import weighted_mean
from gpudiag.measures._time.work import WorkSamples, work_by_gpu, work_coverage_pct
from gpudiag.measures._trials.abandoned import find_open_trials
from gpudiag.measures._waits.divided import logged_gpus
from gpudiag.measures._waits.logged import LoggedTraining
from gpudiag.measures.attribution import measure_attribution
from gpudiag.measures.base import Profile, need_gpu, need_two_samples
from gpudiag.measures.parallelism import RECORD_TIMESTAMPS
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import FINISHED, LASTING
from gpudiag.spans import Window

MAX_BLOCKS = 240
MIN_BLOCK_S = 60.0
MIN_BLOCK_SAMPLES = 5
MIN_SEGMENT = 3
MIN_BLOCKS = 2 * MIN_SEGMENT + 1
"""Of work, for two levels to be told apart."""
ALIKE_PCT = 5.0
"""Levels at the end of the work that lie no further from its last are the same level: a signal with little noise has a
change point at each little step (a default without a published source)."""
CHANCE = 0.01
MOSTLY = 0.5
"""Of the time between two lines: a pause that long makes it other work than steps."""

ONE_FEWER = 0.5
"""So many trials at once fewer, on average, are a worker that is gone: start-ups and gaps take part of each."""


class UtilizationSegment(Row):
    """A stretch of one level, the last with those before it that are like it, from samples in which the usual number of
    trials was at work, outside of the evaluations and checkpoints that a log tells of: more trials or other work are
    another level and no shift.
    """

    gpu: Column[str] = column("GPU")
    start: Column[pd.Timestamp] = column("start")
    end: Column[pd.Timestamp] = column("end")
    mean_pct: Column[float] = column("mean utilization")
    work_s: Column[float] = column("time at work")


class GpuShift(Row):
    """A GPU."""

    n_segments: Column[float] = column("segments", label="levels found")
    first_pct: Column[float] = column("level of the first", label="utilization before")
    last_pct: Column[float] = column("level of the last", label="utilization after")
    fall_pct: Column[float] = column(
        "how far the last lies below the work-weighted mean of those before it, NaN with one segment",
        label="fall of utilization",
    )
    fall_s: Column[float] = column("work in the last segment", label="time after the fall")
    before_s: Column[float] = column("work before it")
    block_s: Column[float] = column("width of the blocks that were averaged over", label="averaged over")
    dead_trial: Column[str] = column(
        "the abandoned trial that may have died as the last segment began, where fewer ran at once from then on; '' "
        "elsewhere"
    )
    is_few: Column[bool] = column(
        "trials began in the last segment, and the lowest of so few may have come last by chance (one in a hundred)"
    )


class ShiftProfile(Profile, topic="shift"):
    """Whether utilization changed its level for good."""

    segments: Rows = table_of(UtilizationSegment)
    per_gpu: Rows = table_of(GpuShift)
    coverage_pct: Fact[float] = fact("observed part of the run, the least of all GPUs")


@memoized
def measure_shift(run: Run) -> ShiftProfile:
    """Levels of utilization of each GPU at work. Needs gpu.util_pct."""
    need_gpu(run, "util_pct")
    _need_starts(run)
    works = work_by_gpu(run)
    need_two_samples(bool(works))
    rows, levels, periods, logs = {}, [], period_by_gpu(run), logged_gpus(run)
    for gpu in gpu_order(works):
        other = _in_other_work(works[gpu].time_us, logs[gpu].logs if gpu in logs else ())
        at_work = without_pauses(works[gpu], between_jobs(run)) & ~other
        found, block_s = _segments(works[gpu], periods[gpu], at_work)
        levels += [(gpu, *level) for level in found]
        dead = _died_then(run, gpu, found, block_s)
        few = not dead and _are_few(run, gpu, found, block_s)
        rows[gpu] = _summary(found) | {"block_s": block_s, "dead_trial": dead, "is_few": few}
    per_gpu = pd.DataFrame.from_dict(rows, orient="index").rename_axis("gpu")
    segments = pd.DataFrame(levels, columns=["gpu", "start", "end", "mean_pct", "work_s"])
    times = {name: utc(segments[name].to_numpy(np.int64)) for name in ("start", "end")}
    return ShiftProfile(segments.assign(**times), per_gpu, work_coverage_pct(run, works))


def _need_starts(run: Run) -> None:
    """Raise NotMeasurable where it is unknown of most trials when they ran: levels are those with as many at once."""
    intervals = intervals_of(run)
    ended = intervals[intervals["state"].isin(FINISHED)]
    n = int((~ended["known"]).sum())
    if n > 1 and 2 * n > len(ended):
        raise NotMeasurable(
            "Nothing tells when {n:trial} began, and so how many ran at once: fewer at once need less of a GPU.",
            RECORD_TIMESTAMPS,
            n=n,
        )


Level = tuple[int, int, float, float]
"""First and last microsecond of a segment, its mean and the seconds of work in it."""


def _in_other_work(time_us: np.ndarray, logs: Sequence[LoggedTraining]) -> np.ndarray:
    """True for samples between two lines of the GPU's log that hold mostly an evaluation or a checkpoint."""
    out = np.zeros(len(time_us), bool)
    for one in (interval for training in logs for interval in training.intervals):
        told_s = sum(part.s for part in one.parts if part.work in (*LASTING, BOTH))
        if told_s * SECOND_US >= MOSTLY * (one.end_us - one.start_us):
            out[np.searchsorted(time_us, one.start_us) : np.searchsorted(time_us, one.end_us, "right")] = True
    return out


def _segments(work: WorkSamples, period: Period | None, at_work: np.ndarray) -> tuple[list[Level], float]:
    """The levels, and the length of a block."""
    at = np.flatnonzero(at_work & (work.working == _usual(work)))
    weight = work.weight_s[at]
    worked = float(weight.sum())
    step = work.step_us / SECOND_US
    block_s = max(MIN_BLOCK_S, worked / MAX_BLOCKS, MIN_BLOCK_SAMPLES * step, period.period_s if period else 0.0)
    util, time_us = work.util_pct[at], work.time_us[at]
    block = (np.cumsum(weight) - weight / 2) // block_s
    if not len(at) or block[-1] < MIN_BLOCKS - 1:
        return [], block_s
    number = block.astype(np.int64)
    total = np.bincount(number, weight)
    mean = np.bincount(number, weight * util) / np.where(total > 0, total, np.nan)
    filled = np.flatnonzero(total > block_s / 2)
    cuts = [0, *change_points(mean[filled], MIN_SEGMENT), len(filled)]
    rows = []
    for low, high in itertools.pairwise(cuts):
        own = np.flatnonzero((number >= filled[low]) & (number <= filled[high - 1]))
        value = weighted_mean(util[own], weight[own])
        rows.append((time_us[own[0]], time_us[own[-1]], value, float(weight[own].sum())))
    return _last_as_one(rows), block_s


def _last_as_one(levels: list[Level]) -> list[Level]:
    """The levels, those at the end as one that are like the last."""
    first = len(levels) - 1
    while first > 0 and abs(levels[first - 1][2] - levels[-1][2]) <= ALIKE_PCT:
        first -= 1
    alike = levels[max(first, 0) :]
    if len(alike) < 2:
        return levels
    work_s = sum(level[3] for level in alike)
    mean_pct = sum(level[2] * level[3] for level in alike) / work_s
    return [*levels[:first], (alike[0][0], alike[-1][1], mean_pct, work_s)]


def _died_then(run: Run, gpu: str, found: Sequence[Level], block_s: float) -> str:
    """The trial whose worker is gone since the last segment began. Nothing tells when it died but that it lived no
    longer than the longest that ended; for as long before its start and behind the segment's, others are counted.
    """
    if len(found) < 2 or run.trials.empty or not run.info.clock.joined:
        return ""
    opens, ended = find_open_trials(run), intervals_of(run)
    ended, at = ended[ended["known"]], found[-1][0]
    where = measure_attribution(run).trials.set_index(["study", "trial"])["gpu"]
    for one in opens[opens["abandoned"]].to_dict("records"):
        own = where[(one["study"], one["trial"])]
        longest_s = ended.loc[ended["study"] == one["study"], "duration_s"].max()
        if not longest_s > 0 or (isinstance(own, str) and gpu not in own.split(",")):
            continue
        begun, longest_us, near_us = one["start"].value // 1000, int(SECOND_US * longest_s), int(SECOND_US * block_s)
        last = int(microseconds(ended["end"]).max())
        if not begun - near_us <= at <= min(begun + longest_us + near_us, last - 1):
            continue
        before = _at_once(ended, (begun - longest_us, begun))
        since = max(at, begun + longest_us) if begun + longest_us < last else at  # in its own place none runs
        if _at_once(ended, (since, min(since + longest_us, last))) <= before - ONE_FEWER:
            return str(one["name"])
    return ""


def _are_few(run: Run, gpu: str, found: Sequence[Level], block_s: float) -> bool:
    """Whether the level may be that of the trials that happened to come last: the chance that these have the lowest
    levels, at any of the places where the last ones may begin. Where none began since, those before fell.
    """
    begun = gpu_time(run).intervals(gpu).start_us
    since = int((begun >= found[-1][0] - block_s * SECOND_US).sum()) if len(found) > 1 else 0
    return since > 0 and len(begun) / math.comb(len(begun), since) >= CHANCE


def _at_once(ended: pd.DataFrame, window: Window) -> float:
    """Mean number of trials that ran in a window."""
    start, end = (microseconds(ended[name]).clip(*window) for name in ("start", "end"))
    return float((end - start).sum()) / (window[1] - window[0])


def _usual(work: WorkSamples) -> int:
    """The number of trials at work that held most of the time."""
    held = np.bincount(work.working[work.at_work].astype(np.int64), work.weight_s[work.at_work])
    return int(held.argmax()) if len(held) else 0


def _summary(found: list[Level]) -> dict[str, float]:
    if not found:
        return {
            "n_segments": 0.0,
            **dict.fromkeys(("first_pct", "last_pct", "fall_pct", "fall_s", "before_s"), math.nan),
        }
    means, works = (np.array([level[i] for level in found]) for i in (2, 3))
    earlier = float(works[:-1].sum())
    level = float(means[:-1] @ works[:-1]) / earlier if earlier else math.nan
    return {
        "n_segments": float(len(found)),
        "first_pct": float(means[0]),
        "last_pct": float(means[-1]),
        "fall_pct": level - float(means[-1]),
        "fall_s": float(works[-1]) if earlier else math.nan,
        "before_s": earlier,
    }
