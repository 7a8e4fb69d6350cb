"""What the log of a training says that a GPU waited for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from gpudiag.errors import NotMeasurable
from gpudiag.measures._time.gpu_time import GpuTime
from gpudiag.measures._time.microseconds import SECOND_US
from gpudiag.measures._waits.bounds import Waits
from gpudiag.measures._waits.logged import LoggedInterval, LoggedTraining, edges, logged_trainings
from gpudiag.measures._waits.pieces import UnusedTime
from gpudiag.measures.loader import measure_loader
from gpudiag.run import Run
from gpudiag.schema import IDLE_PCT

ENOUGH_SAMPLES = 20
ENOUGH = 5
"""Intervals of nothing but steps that show how idle a GPU is in them."""
FEWEST = 3
"""Samples in an interval, below which they do not tell how long the GPU was idle in it."""


def joined_trainings(run: Run) -> list[LoggedTraining]:
    """The trainings of the logs; none where the clock of the logs is not the telemetry's."""
    return logged_trainings(run) if run.info.logs_clock.joined else []


def logs_of_gpu(run: Run, time: GpuTime, gpu: str, part: UnusedTime) -> list[LoggedTraining]:
    """The trainings that this GPU did one after the other, where logs tell of them; none where several may share it,
    or where nobody knows which of several it did.
    """
    found = [one for one in joined_trainings(run) if _works_beside(one, part)]
    if len(time.trials.rows) and any(not math.isnan(one.trial) for one in found):
        places = time.places.get(gpu, np.zeros(0, np.int64))
        numbers = set(time.trials.rows["trial"].to_numpy()[places].tolist())
        found = [one for one in found if one.trial in numbers]
    found.sort(key=lambda one: one.span_us)
    one_by_one = all(before.span_us[1] <= after.span_us[0] for before, after in pairwise(found))
    return [one for one in found if _alone(one, part)] if one_by_one else []


def _works_beside(training: LoggedTraining, part: UnusedTime) -> bool:
    """Whether the GPU works while the log is written."""
    low, high = (np.array([edge]) for edge in training.span_us)
    unused, seen = (float(values[0]) for values in part.between(low, high))
    return seen > 0 and 100 * (1 - unused / seen) >= IDLE_PCT


def _alone(training: LoggedTraining, part: UnusedTime) -> bool:
    """Whether at most one trial runs on the GPU while the log is written."""
    low, high = training.span_us
    beside = (part.end_us > low) & (part.start_us < high)
    return not bool((part.running[beside] > 1).any())


class _InSteps(NamedTuple):
    """Share of the time of steps without a kernel: the median, and what it is between in most intervals."""

    share: float
    low: float
    high: float


def logged_waits(trainings: Sequence[LoggedTraining], part: UnusedTime, *, surely: bool) -> Waits:
    """What the logs name. A pause lies somewhere in the interval between two lines: it has the idle time there that its
    steps, by intervals without a pause, do not have. A wait for data is idle time as far as the GPU has no more kernels
    to run meanwhile: all of it where the training waits for the GPU in each step, as most do to print a loss.

    ``surely`` is False where the GPU may have done other work: then nothing is certain.
    """
    waits = Waits("log")
    intervals = [one for training in trainings for one in training.intervals]
    start, end = edges(intervals)
    idle, seen = part.between(start, end)
    lengths, taken = (end - start) / SECOND_US, np.zeros(len(intervals))
    blocks = _paused_blocks(intervals, lengths, part.period_s)
    blurred = any(block.stop - block.start > 1 for block in blocks)
    paused_share = sum(one.paused_s for one in intervals) / max(float(lengths.sum()), 1e-9) if blurred else 0.0
    usual = _in_steps(intervals, idle, seen, paused_share)
    for block in blocks:
        paused = [one for one in intervals[block] if one.parts]
        few = block.stop - block.start > 1  # samples that meet one of several pauses stand for those that they miss
        paused_s, idle_s = sum(one.paused_s for one in paused), float(idle[block].sum())
        # how many of the steps before a restart were done is open
        steps_s = sum(one.steps_s / 2 if one.cause == "restart" else one.steps_s for one in intervals[block])
        high_s = min(paused_s, idle_s - sum(one.least_steps_s for one in intervals[block]) * usual.low)
        low_s = idle_s - sum(one.steps_s for one in intervals[block]) * usual.high
        left_s = min(high_s, idle_s - steps_s * usual.share)
        held_parts = [held for one in paused for held in one.parts]
        for work in sorted({held.work for held in held_parts}, key=lambda work: (work != "checkpoint", work)):
            own = [held for held in held_parts if held.work == work]  # a checkpoint runs no kernels
            least_s = 0.0 if few else surely * (low_s - (paused_s - sum(held.low_s for held in own)))
            most_s = sum(held.high_s for held in own)
            likely_s = waits.add(
                work, min(sum(held.s for held in own), left_s), least_s, most_s if few else min(most_s, high_s)
            )
            left_s -= likely_s
            taken[block] += likely_s * np.array([one.paused_s for one in intervals[block]]) / max(paused_s, 1e-9)
    waited = np.nan_to_num([one.loader_s for one in intervals])
    for block in _blocks(lengths, ENOUGH_SAMPLES * part.period_s):
        waited_s, idle_s, left_s = (float(values[block].sum()) for values in (waited, idle, idle - taken))
        if waited_s > 0:
            low_s = surely * (waited_s - (float(lengths[block].sum()) - idle_s))
            waits.add("loader", min(waited_s, left_s), low_s, min(waited_s, idle_s))
    return waits


def _paused_blocks(intervals: Sequence[LoggedInterval], lengths: np.ndarray, period_s: float) -> list[slice]:
    """Each interval with a pause by itself; where most are shorter than three samples, those side by side that hold
    enough samples together.
    """
    paused = np.array([bool(one.parts) for one in intervals], bool)
    if paused.any() and np.median(lengths[paused]) < FEWEST * period_s:
        return [block for block in _blocks(lengths, ENOUGH_SAMPLES * period_s) if paused[block].any()]
    return [slice(at, at + 1) for at in np.flatnonzero(paused).tolist()]


def _blocks(lengths: np.ndarray, least: float) -> Iterator[slice]:
    """Intervals side by side that together are as long at least: a few samples say little of the time between them."""
    begin, held = 0, 0.0
    for at, length in enumerate(lengths.tolist(), 1):
        held += length
        if held >= least and lengths[at:].sum() >= least:
            yield slice(begin, at)
            begin, held = at, 0.0
    if begin < len(lengths):
        yield slice(begin, len(lengths))


def _in_steps(intervals: Sequence[LoggedInterval], idle: np.ndarray, seen: np.ndarray, paused_share: float) -> _InSteps:
    """From the intervals without a pause; where these are few, steps may have any idle time, and likely none.
    ``paused_share``: of these intervals, in which samples far apart show a pause beside them.
    """
    plain = np.array([not one.parts for one in intervals], bool) & (seen > 0)
    shares = idle[plain] / seen[plain]
    if len(shares) < ENOUGH:
        return _InSteps(0.0, 0.0, 1.0)
    low, middle, high = np.quantile(shares, (0.05, 0.5 * (1 - min(paused_share, 1.0)), 0.95)).tolist()
    return _InSteps(middle, low, high)


def stated_waits(run: Run, part: UnusedTime, logged: Waits, *, surely: bool) -> Waits:
    """The wait for data where a log states it, but not between which lines: its share of all steps."""
    waits = Waits("log")
    told = [one for training in logged_trainings(run) for one in training.intervals]
    if not run.info.logs_clock.joined or any(one.loader_s >= 0 for one in told):
        return waits
    try:
        share = measure_loader(run).of_step_pct / 100
    except NotMeasurable:
        return waits
    if not share > 0 or bool((part.running > 1).any()):
        return waits
    idle, seen = (float(values[0]) for values in part.between(part.start_us[:1], part.end_us[-1:]))
    left_s, steps_s = idle - logged.total_s, seen - logged.total_s
    low_s = surely * (share * steps_s - (steps_s - left_s))
    waits.add("loader", share * steps_s, low_s, min(share * steps_s, left_s))
    return waits
