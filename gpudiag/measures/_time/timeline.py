"""The time of one GPU cut into pieces, each with one cell of the ledger (METHODS 3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from gpudiag.measures._time.activity import work_level_of_lives_pct, work_level_pct
from gpudiag.measures._time.microseconds import LONG_AGO, NEVER, SECOND_US, distinct, median_of_steps
from gpudiag.schema import BUSY_PCT, IDLE_PCT
from gpudiag.spans import Window, held_within

CELLS = (
    "unobserved", "idle_no_trial", "foreign", "startup_only", "tail_only", "waiting", "stalled", "busy_low", "busy"
)  # fmt: skip
"""The cells of the ledger, in the order in which the first that applies wins."""
UNOBSERVED, NO_TRIAL, FOREIGN, STARTUP, TAIL, WAITING, STALLED, BUSY_LOW, BUSY = range(len(CELLS))
LIKELY = 0.9
"""Chance from which on one explanation of an idle GPU stands alone."""
FEWEST_SEEN = 3
"""Samples within a trial that must show no work for it to be one that never works on the GPU."""
RESPONSE_US = SECOND_US
"""utilization.gpu looks back up to a second (nvml.h): in the first second after a trial it still shows the trial."""


@dataclass(frozen=True)
class Samples:
    """One quantity of one GPU: timestamps and the stretches they stand for, in microseconds, and values."""

    time_us: np.ndarray
    start_us: np.ndarray
    end_us: np.ndarray
    value: np.ndarray
    work_level_pct: float = math.nan

    @cached_property
    def step_us(self) -> float:
        """Median step between two or more samples."""
        return median_of_steps(np.diff(self.time_us))

    @cached_property
    def at_work(self) -> np.ndarray:
        """True for each sample that shows work, which is more than a little load; of utilization only."""
        known = not math.isnan(self.work_level_pct)
        return self.value > (self.work_level_pct if known else work_level_pct(self.value))

    def of_trials(self, intervals: Intervals) -> Samples:
        """The same, with work as the trials of these intervals do it."""
        first, last = (np.searchsorted(self.time_us, ends) for ends in (intervals.start_us, intervals.end_us))
        return replace(self, work_level_pct=work_level_of_lives_pct(self.value, first, last))

    @classmethod
    def none(cls) -> Samples:
        """A GPU without such telemetry."""
        nothing = np.zeros(0, np.int64)
        return cls(nothing, nothing, nothing, np.zeros(0))


@dataclass(frozen=True)
class Intervals:
    """Starts and ends, in microseconds, of the trials that ran, or may have run, on one GPU."""

    start_us: np.ndarray
    end_us: np.ndarray


@dataclass(frozen=True)
class MaybeTrials:
    """Trials of which nobody knows whether they ran on a GPU: start and end (µs), and the chance that they did."""

    start_us: np.ndarray
    end_us: np.ndarray
    chance: np.ndarray

    @classmethod
    def none(cls) -> MaybeTrials:
        """Every trial is known to have run there, or not."""
        nothing = np.zeros(0, np.int64)
        return cls(nothing, nothing, np.zeros(0))


@dataclass(frozen=True)
class Timeline:
    """Pieces that tile the windows: borders in microseconds, code of the cell, utilization (NaN unobserved), trials,
    and how many more are expected of those of unknown GPU. A run keeps millions of them: columns are no wider than
    they must be.
    """

    start_us: np.ndarray
    end_us: np.ndarray
    cell: np.ndarray
    util_pct: np.ndarray
    running: np.ndarray
    maybe: np.ndarray

    @property
    def held(self) -> np.ndarray:
        """How many trials are expected in each piece."""
        return self.running + self.maybe

    @property
    def length_s(self) -> np.ndarray:
        """Seconds of each piece."""
        return (self.end_us - self.start_us) / SECOND_US

    def during(self, start_us: int, end_us: int) -> Timeline:
        """The pieces within a time that begins and ends at cuts."""
        own = slice(*np.searchsorted(self.start_us, (start_us, end_us)).tolist())
        return Timeline(*(getattr(self, each.name)[own] for each in fields(self)))

    def recorded_s(self, start_us: np.ndarray, end_us: np.ndarray) -> np.ndarray:
        """Observed seconds within each span."""
        length_s = np.where(np.isnan(self.util_pct), 0.0, self.length_s)
        return held_within(start_us, end_us, self.start_us, self.end_us, length_s)

    def seconds(self, weight: np.ndarray | None = None) -> np.ndarray:
        """Seconds, or the sum of seconds times ``weight``, in each cell of CELLS."""
        length_us = (self.end_us - self.start_us).astype(float)
        return np.bincount(self.cell, length_us if weight is None else length_us * weight, len(CELLS)) / SECOND_US


class KnownPhases(Protocol):
    """What is known of the phases of trials that share a GPU."""

    def chances(self, when_us: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Chance at each time that all trials start up, that all are past their last activity, and that some are
        between the two.
        """


def draw_timeline(
    samples: Samples,
    intervals: Intervals,
    windows: Sequence[Window],
    *,
    has_trials: bool,
    cuts_us: np.ndarray,
    phases: KnownPhases | None = None,
    maybe: MaybeTrials | None = None,
    doubt_us: float = 0.0,
) -> Timeline:
    """Cut the windows at every cell border, start, end and at ``cuts_us``, and name each piece.

    What an idle GPU waits for is read off its activity where one trial ran at a time and is seen often enough, and else
    off ``phases``; where these leave two answers likely, or are not known, or some trials start while others end, it is
    in the cell ``waiting``. So it is where a trial of ``maybe`` may run: then it may even be that none does; and where
    a trial runs that never works on the GPU: it has no start-up there, and no tail.

    Where no sample was taken in a pause between trials, the one that holds there decides: the pause is idle if that is,
    and else busy, but no foreign load, for the sample shows a trial.

    Without trials (``has_trials`` False: none were given, or their clock cannot be joined) activity
    is no foreign load but simply busy. So it is nearer than ``doubt_us`` to a start or an end, where trials may lie so
    far from where they are; idle time there, and in a trial as far as it reaches there, is then in ``waiting``.
    """
    maybe = maybe or MaybeTrials.none()
    everyone = Intervals(*(np.concatenate(both) for both in (
        (intervals.start_us, maybe.start_us), (intervals.end_us, maybe.end_us)
    )))  # fmt: skip
    start, end = _pieces(samples, everyone, windows, cuts_us)
    at = np.searchsorted(samples.start_us, start, "right") - 1
    seen = (at >= 0) & (start < np.append(samples.end_us, LONG_AGO)[at])
    util = np.where(seen, np.append(samples.value, np.nan)[at], np.nan)
    running = _rank(np.sort(intervals.start_us), start) - _rank(np.sort(intervals.end_us), start)
    others = _rank(np.sort(maybe.start_us), start) - _rank(np.sort(maybe.end_us), start)
    cell = np.full(len(start), BUSY, np.int8)
    idle = util < IDLE_PCT
    cell[util < BUSY_PCT] = BUSY_LOW
    cell[idle] = STALLED
    works = seen & np.append(samples.at_work, False)[at]
    waits = np.flatnonzero(idle & (running > 0) & ~works)
    near = _near_a_change(everyone, start, end, doubt_us)
    cell[waits] = _waits_for(samples, intervals, start[waits], phases, alone=bool((running[~near] <= 1).all()))
    cell[idle & (others > 0)] = WAITING
    cell[idle & (running > 0) & _reaching(~works | idle, near)] = WAITING
    if has_trials:
        free = np.flatnonzero((running == 0) & (others == 0))
        cell[free[near[free] & idle[free]]] = WAITING
        free = free[~near[free]]
        own = _within_pause(samples, everyone, start[free], at[free], util[free])
        cell[free[own >= IDLE_PCT]] = FOREIGN
        cell[free[np.where(np.isnan(own), util[free], own) < IDLE_PCT]] = NO_TRIAL
    else:
        cell[idle] = NO_TRIAL
    cell[np.isnan(util)] = UNOBSERVED
    return Timeline(start, end, cell, util, narrow(running), _weighed(maybe, start))


def _near_a_change(intervals: Intervals, start: np.ndarray, end: np.ndarray, within_us: float) -> np.ndarray:
    """Whether other trials may run in each of these sorted pieces than do, if starts and ends are so far off."""
    if not within_us:
        return np.zeros(len(start), bool)
    changes = np.sort(np.concatenate([intervals.start_us, intervals.end_us]))
    at = np.searchsorted(changes, start, "right")
    until, since = np.append(changes, NEVER)[at], np.append(LONG_AGO, changes)[at]
    near: np.ndarray = (start - since.astype(float) < within_us) | (until.astype(float) - end < within_us)
    return near


def _reaching(quiet: np.ndarray, near: np.ndarray) -> np.ndarray:
    """True in each unbroken series of quiet pieces of which one is near."""
    series = np.cumsum(~quiet)
    reached: np.ndarray = quiet & np.isin(series, series[quiet & near])
    return reached


def narrow(counts: np.ndarray) -> np.ndarray:
    """Counts as whole numbers of as few bytes as hold them."""
    return counts.astype(np.min_scalar_type(-int(counts.max(initial=0)) - 1), copy=False)


def _waits_for(
    samples: Samples, intervals: Intervals, when: np.ndarray, phases: KnownPhases | None, *, alone: bool
) -> np.ndarray:
    """The cell of each of the sorted times at which a GPU with trials is idle."""
    if phases is not None:
        likeliest = np.stack(phases.chances(when))  # they need not add up to 1: some may start as others end
        cell = np.array([STARTUP, TAIL, STALLED])[likeliest.argmax(axis=0)]
        cell = np.where(likeliest.max(axis=0) >= LIKELY, cell, WAITING)
        never = never_works(samples, intervals)
    else:
        cell = np.full(len(when), STALLED if alone else WAITING)
        cell[_all_ending(samples, intervals, when)] = TAIL
        cell[_all_starting(samples, intervals, when)] = STARTUP
        never = first_activity(samples, intervals.start_us) >= intervals.end_us
    idlers = _rank(np.sort(intervals.start_us[never]), when) - _rank(np.sort(intervals.end_us[never]), when)
    cell[idlers > 0] = WAITING
    return cell


def _pieces(
    samples: Samples, intervals: Intervals, windows: Sequence[Window], cuts_us: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Starts and ends of the pieces between all cuts, within the windows."""
    borders = np.array(windows, np.int64).reshape(-1, 2)
    marks = [samples.start_us, samples.end_us, intervals.start_us, intervals.end_us, cuts_us, borders.ravel()]
    cuts = distinct(*marks)
    start, end = cuts[:-1], cuts[1:]
    window = _rank(borders[:, 0], start) - 1
    inside = np.flatnonzero(start < np.append(borders[:, 1], LONG_AGO)[window])
    if len(inside) and inside[-1] - inside[0] + 1 == len(inside):  # of one window: both are views of the cuts
        own = slice(int(inside[0]), int(inside[-1]) + 1)
        return start[own], end[own]
    return start[inside], end[inside]


def _rank(timestamps: np.ndarray, when: np.ndarray) -> np.ndarray:
    """How many of the sorted timestamps lie at or before each of the sorted times: one search each, not one a time."""
    borders = np.searchsorted(when, timestamps, "left")
    return np.repeat(np.arange(len(timestamps) + 1, dtype=np.int32), np.diff(borders, prepend=0, append=len(when)))


def _weighed(maybe: MaybeTrials, when: np.ndarray) -> np.ndarray:
    """Sum of the chances of those that may run at each of the sorted times."""
    if not len(maybe.chance):
        return np.broadcast_to(0.0, len(when))
    at = np.searchsorted(when, np.concatenate([maybe.start_us, maybe.end_us]))
    steps = np.bincount(at, np.concatenate([maybe.chance, -maybe.chance]), len(when) + 1)
    return np.maximum(np.cumsum(steps)[: len(when)].round(9), 0.0)


def _all_starting(samples: Samples, intervals: Intervals, when: np.ndarray) -> np.ndarray:
    """True where every running trial is before its own first sustained activity.

    The first activity after a start is later for a later start, so the earliest of the running
    trials decides for all of them.
    """
    order = np.argsort(intervals.end_us, kind="stable")
    earliest = np.append(np.minimum.accumulate(intervals.start_us[order][::-1])[::-1], NEVER)
    since = earliest[np.searchsorted(intervals.end_us[order], when, "right")]
    return first_activity(samples, since) > when


def _all_ending(samples: Samples, intervals: Intervals, when: np.ndarray) -> np.ndarray:
    """True where every running trial is past its last activity; the one that ends last decides for all."""
    order = np.argsort(intervals.start_us, kind="stable")
    latest = np.append(LONG_AGO, np.maximum.accumulate(intervals.end_us[order]))
    until = latest[np.searchsorted(intervals.start_us[order], when, "right")]
    timestamps = np.append(LONG_AGO, samples.time_us[samples.at_work])
    return timestamps[np.searchsorted(timestamps, until, "left") - 1] <= when


def first_activity(samples: Samples, since: np.ndarray) -> np.ndarray:
    """Time of the first sample at or after each time that begins two samples in a row of work; NEVER without."""
    active = samples.at_work
    joined = samples.end_us[:-1] == samples.start_us[1:]
    timestamps = np.append(samples.time_us[:-1][active[:-1] & active[1:] & joined], NEVER)
    return timestamps[np.searchsorted(timestamps[:-1], since, "left")]


def never_works(samples: Samples, intervals: Intervals) -> np.ndarray:
    """True for each trial in whose life no sample shows work, of three at least: it does not use the GPU, or failed
    before it did.
    """
    seen, working = samples_within(samples, intervals)
    never: np.ndarray = (seen >= FEWEST_SEEN) & (working == 0)
    return never


def samples_within(samples: Samples, intervals: Intervals) -> tuple[np.ndarray, np.ndarray]:
    """How many samples lie in the life of each trial, and how many of them show work."""
    low, high = (np.searchsorted(samples.time_us, times) for times in (intervals.start_us, intervals.end_us))
    works = np.concatenate([[0], np.cumsum(samples.at_work)])
    return high - low, works[high] - works[low]


def _within_pause(
    samples: Samples, intervals: Intervals, when: np.ndarray, at: np.ndarray, util: np.ndarray
) -> np.ndarray:
    """Utilization where no trial runs, from samples taken while none ran; NaN where there is none nearby.

    A sample stands for time on both sides of its timestamp. Taken during a trial, it says nothing about
    the pause that begins or ends within its stretch: the neighbour on the other side of the border does.
    """
    starts, ends = np.sort(intervals.start_us), np.sort(intervals.end_us)
    until = np.append(starts, NEVER)[np.searchsorted(starts, when, "right")]
    since = np.append(LONG_AGO, ends)[np.searchsorted(ends, when, "right")]
    since = np.where(since == LONG_AGO, since, since + RESPONSE_US)
    out = np.full(len(when), np.nan)
    for step in (-1, 1, 0):
        other = at + step
        there = (at >= 0) & ~np.isnan(util) & (other >= 0) & (other < len(samples.time_us))
        timestamp = samples.time_us[other[there]]
        there[there] = (timestamp >= since[there]) & (timestamp < until[there])
        out[there] = samples.value[other[there]]
    return out
