"""How long trials take for other numbers of steps, and how far that is known."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gpudiag.forecast.pruning.recorded import Array, Recorded

UNEVEN, CROWDED = 0.1, 0.25
"""Standard deviation of one trial's pace, as a share: how uneven it is within a trial that has its GPU to itself, and
what other neighbors add where trials share one."""
WITHIN_90 = 1.645
COMPLETE_WAIT, PRUNED_WAIT = 1.0, 0.25
"""What passes at most between the last report and the end of a trial. One that completes ends before another report
would come, and may evaluate or save: in steps from report to report. One that is pruned leaves at once: in steps."""


@dataclass(frozen=True, eq=False)
class TimeScenario:
    """One way in which the time of trials may lie.

    By trial, ``startup_s``, and the steps that pass between its last report and its end, in the log (``log_wait``) and
    in the replay (``new_wait``). ``slowdown``: time of a step of the replay against one of the log.
    """

    startup_s: Array
    log_wait: Array
    new_wait: Array
    slowdown: float = 1.0


@dataclass(frozen=True)
class TimeTotal:
    """Worker or GPU seconds of all trials, and how far they may be off: ``down_s`` and ``up_s`` as a rule (90 %),
    ``least_s`` and ``most_s`` where everything is off in the same direction.
    """

    value_s: float
    down_s: float
    up_s: float
    least_s: float
    most_s: float


@dataclass(frozen=True, eq=False)
class StepCounts:
    """How many steps each trial of a study runs in a replay, counted from the study's first."""

    record: Recorded
    steps: Array

    @cached_property
    def reached_s(self) -> Array:
        """Seconds from its start until each trial reported that step or one beyond it, as recorded; else NaN."""
        record, out = self.record, np.full(len(self.record), np.nan)
        for i in np.flatnonzero(self.steps < record.done):
            at = np.flatnonzero(np.array(record.steps[i]) >= self.steps[i] + record.counts_from - 1)[0]
            out[i] = record.times_s[i][at] - record.start_s[i]
        return out

    @property
    def same(self) -> Array:
        """Trials whose length does not change."""
        return self.steps == self.record.done


def seconds(counts: StepCounts, by: TimeScenario) -> Array:
    """Seconds that each trial takes for so many steps; NaN without a duration or without reports.

    The start-up is spent whatever the length, each step at the trial's own pace. A trial of unchanged length ends as it
    did. Reports with times say when the trial came to a step, and how long it went on after the last.
    """
    record = counts.record
    training_s = np.maximum(record.duration_s - by.startup_s, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        pace_s = training_s / (record.done + by.log_wait)
        took_s = np.where(counts.same, training_s, pace_s * (counts.steps + by.new_wait))
        if record.timed:
            took_s = np.where(counts.same, training_s, _timed_s(counts, training_s, by))
    return np.where(record.done > 0, by.startup_s + took_s * by.slowdown, np.nan)


def _timed_s(counts: StepCounts, training_s: Array, by: TimeScenario) -> Array:
    """Seconds after the start-up by the times of reports; one that is cut goes on for at most as long as it did."""
    record = counts.record
    last_s = np.array([part[-1] if len(part) else math.nan for part in record.times_s]) - record.start_s
    after_s = np.maximum(record.duration_s - last_s, 0.0)
    longer_s = (training_s - after_s) / record.done * (counts.steps + by.new_wait)
    cut_s = np.maximum(counts.reached_s - by.startup_s, 0.0) + by.new_wait * after_s
    return np.where(np.isnan(counts.reached_s), longer_s, cut_s)


def time_total(record: Recorded, steps: Array, weight: Array, at_once: float) -> TimeTotal:
    """All trials at those steps, each second counted ``weight`` times; ``at_once``: trials that share a GPU.

    Three things may be off for all trials together: start-ups, the wait after the last report, and how much trials
    slow each other down when more or less of their time is start-up. What differs between trials adds to that.
    """
    counts = StepCounts(record, steps)
    usual = _usual(counts)
    ranges = [replace(usual, startup_s=s) for s in (record.startup.low_s, record.startup.high_s)]
    ratios = [_crowding(counts, by, at_once) for by in (usual, *ranges)]
    middle = replace(usual, slowdown=math.sqrt(ratios[0]))

    def total(by: TimeScenario) -> float:
        return float(np.nansum(seconds(counts, by) * weight))

    value = total(middle)
    if counts.same.all():
        return TimeTotal(value, 0.0, 0.0, value, value)
    begun = [replace(middle, startup_s=s) for s in (record.startup.low_s, record.startup.high_s)]
    if record.every > 1:  # what start-ups seem longer by may be steps after the last report
        begun.append(replace(begun[0], log_wait=_most_waits(counts)[0]))
    others = (
        begun,
        [replace(middle, log_wait=log, new_wait=new) for log, new in _waits(counts)],
        [replace(middle, slowdown=s) for s in (1.0, *ratios)],
    )
    shifts = [[total(by) - value for by in ways] for ways in others]
    chance = WITHIN_90 * _deviation(counts, weight, middle, at_once)
    down = [chance, *(max(0.0, *(-s for s in part)) for part in shifts)]
    up = [chance, *(max(0.0, *part) for part in shifts)]
    return TimeTotal(value, math.hypot(*down), math.hypot(*up), max(0.0, value - sum(down)), value + sum(up))


def _usual(counts: StepCounts) -> TimeScenario:
    """The middle of what is known."""
    log, new = _most_waits(counts)
    return TimeScenario(counts.record.startup.typical_s, log / 2, new / 2)


def _waits(counts: StepCounts) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """(in the log, in the replay) for the least and the most time."""
    log, new = _most_waits(counts)
    return (log, np.zeros(len(log))), (np.zeros(len(new)), new)


def _most_waits(counts: StepCounts) -> tuple[Array, Array]:
    """In the log, where whoever would run longer was pruned, and in the replay, where whoever runs less is."""
    done, complete = counts.record.done, COMPLETE_WAIT * counts.record.every
    log = np.where(counts.steps > done, PRUNED_WAIT, complete)
    return log, np.where(counts.steps < done, PRUNED_WAIT, complete)


def _crowding(counts: StepCounts, usual: TimeScenario, at_once: float) -> float:
    """Trials that train at the same time as one that trains, in the replay against the log.

    A step takes as much longer at most; where the GPU has room for all of them, nothing changes. Slower steps leave
    start-up a smaller share, so that the replay's is asked again.
    """
    duration_s, ratio = counts.record.duration_s, 1.0
    if at_once <= 1:
        return ratio
    logged = _training_share(duration_s, usual.startup_s)
    for _ in range(2):
        replayed = _training_share(seconds(counts, replace(usual, slowdown=ratio)), usual.startup_s)
        ratio = _beside(replayed, at_once) / _beside(logged, at_once)
    return ratio


def _training_share(took_s: Array, startup_s: Array) -> float:
    known = np.isfinite(took_s)
    whole_s = float(took_s[known].sum())
    return float(np.clip(1 - startup_s[known].sum() / whole_s, 0.0, 1.0)) if whole_s > 0 else 0.0


def _beside(share: float, at_once: float) -> float:
    """Trials that train beside and with one that trains, where each of ``at_once`` does so for that share of its time.

    The harmonic mean over the time in which at least one trains, as steps are fewer where more train.
    """
    return at_once * share / (1 - (1 - share) ** at_once) if share > 0 else 1.0


def _deviation(counts: StepCounts, weight: Array, by: TimeScenario, at_once: float) -> float:
    """Standard deviation of the total, from what differs between trials."""
    record = counts.record
    with np.errstate(invalid="ignore", divide="ignore"):
        part = (counts.steps + by.new_wait) / (record.done + by.log_wait)
    shown = counts.same | (record.timed & (counts.steps < record.done))
    startup_s = np.where(shown, 0.0, record.startup.spread_s * (1 - part))
    pace = np.hypot(np.where(shown, 0.0, UNEVEN), CROWDED * (1 - 1 / max(at_once, 1.0)))
    training_s = seconds(counts, by) - by.startup_s
    return float(np.sqrt(np.nansum((weight * startup_s) ** 2 + (weight * pace * training_s) ** 2)))
