"""Seconds to minutes by which the trials' clock is ahead or behind: work between trials that no trial did."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import scipy

from gpudiag.alignment.apply import apply_clock
from gpudiag.alignment.falls import find_lag
from gpudiag.alignment.signals import SampleTimes
from gpudiag.alignment.trial_groups import trial_groups
from gpudiag.run import ClockRecord, Run
from gpudiag.schema import IDLE_PCT
from gpudiag.spans import seconds
from gpudiag.statement import NOTHING, Statement, joined

REACH_S = 200.0
STEP_S = 1.0
LOOKS_BACK_S = 1.5
"""utilization.gpu is of up to the second before (nvml.h); the rest is for timestamps taken a little later."""
MIN_GAPS = 8
MANY = 0.3
FEW = 0.05
"""Of the gaps between trials in which the GPU was sampled, it must work in three of ten as the clocks are, and in one
of twenty, or a single one, once they are moved: other load, or work that goes on after a trial, does not vanish so."""
MAX_CHANCE = 0.001
"""That a load of its own leaves so many gaps alone at any offset: binomial, by its share of gaps over all offsets."""
MAX_GAPS = 200
"""More gaps of a GPU than these are thinned out evenly."""
EXACT_S = 5.0
"""Bounds no further apart than this, or than two samples, are one offset; a smaller one is left alone (METHODS 2)."""

AHEAD = (
    "As the timestamps are, the GPU works in {before} of the {n_gaps} gaps between trials, or at the sample behind "
    "them; if the trials' clock is {low_s} to {high_s} ahead, in {after}. A long "
    "start-up shows idle time in a trial, not work before it."
)
BEHIND = (
    AHEAD.split(" A long")[0].replace("ahead", "behind") + " A script that works on after its trials looks the same."
)
MOVED = "{evidence} The trials were moved back by {ahead_s}."
TOLD = (
    "{evidence} The trials were not moved by that. If the clocks differ, state clock_offset_s = {stated} in run.toml."
)


@dataclass(frozen=True)
class Skew:
    """The trials' clock is from ``low_s`` to ``high_s`` ahead of the telemetry's; behind it, if negative.

    ``before``: in how many of ``n_gaps`` gaps between trials the GPU worked, as the timestamps are; ``after``: in how
    many with the trials moved back by the middle of the bounds. ``exact``: the bounds are close enough to move them.
    """

    low_s: float
    high_s: float
    before: int
    after: int
    n_gaps: int
    exact: bool

    @property
    def ahead_s(self) -> float:
        """The middle of the bounds, to the second."""
        return round((self.low_s + self.high_s) / 2)

    @property
    def seen(self) -> Statement:
        """What shows it."""
        low_s, high_s = sorted((abs(self.low_s), abs(self.high_s)))
        counts = {name: getattr(self, name) for name in ("before", "after", "n_gaps")}
        return Statement(AHEAD if self.low_s > 0 else BEHIND, low_s=low_s, high_s=high_s, **counts)


@dataclass(frozen=True)
class Gaps:
    """Times without any trial, when the GPU, or any of several, was sampled and when it was at work, and the usual step
    between samples; seconds.
    """

    begin_s: np.ndarray
    end_s: np.ndarray
    time_s: np.ndarray
    active_s: np.ndarray
    period_s: float

    @property
    def longer_s(self) -> float:
        """By how much a gap is looked at beyond its end at most."""
        return max(0.0, LOOKS_BACK_S + self.period_s - float((self.end_s - self.begin_s).min()))

    def worked(self, ahead_s: float) -> tuple[int, int]:
        """In how many gaps the GPU worked, and in how many it was sampled, if the trials' clock is so far ahead.

        A gap shorter than the step between samples is looked at until the sample behind it.
        """
        low = self.begin_s - ahead_s + LOOKS_BACK_S
        high = np.maximum(self.end_s - ahead_s, low + self.period_s)
        seen, active = (_any_between(low, high, times) for times in (self.time_s, self.active_s))
        return int(active.sum()), int(seen.sum())


def with_skew(run: Run, samples: SampleTimes, record: ClockRecord) -> ClockRecord:
    """The record with the seconds to minutes by which clocks differ, or may differ, beside whole quarters of an hour.

    They are applied where work before trials shows them to a few seconds, and told where not. Where both sides are in
    UTC, work after trials and memory that falls beside their ends are a note: habits of a script are likelier then.
    """
    if record.method == "given" or record.parts:
        return record
    moved = apply_clock(run, record)
    known = record.evidence if record.confidence == "strong" else NOTHING
    skew, lag = find_skew(moved, samples), find_lag(moved, samples)
    if lag is not None and skew is not None and not skew.exact:
        skew = None
    told = _told(record, skew) if skew else lag.told(record.applied_s) if lag else NOTHING
    if told and record.method == "utc" and not (skew and skew.low_s > 0):
        return replace(record, notes=(*record.notes, told))
    if skew is not None:
        return _skewed(record, skew, known)
    if lag is not None:
        return _leaning(record, lag.lag_s, abs(lag.lag_s) + lag.within_s, joined(known, told))
    return record


def _skewed(record: ClockRecord, skew: Skew, known: Statement) -> ClockRecord:
    """The record with work between trials that its offset leaves; ``known``: what is known of whole quarters."""
    if skew.exact and skew.low_s > 0:
        offset_s = record.applied_s - skew.ahead_s
        evidence = Statement(MOVED, evidence=joined(known, skew.seen), ahead_s=skew.ahead_s)
        record = replace(record, evidence=evidence, confidence="strong", apart_s=0.0)
        return replace(record, offset_s=offset_s, applied_s=offset_s)
    apart_s = max(abs(skew.low_s), abs(skew.high_s))
    return _leaning(record, -skew.ahead_s, apart_s, joined(known, _told(record, skew)))


def _told(record: ClockRecord, skew: Skew) -> Statement:
    return Statement(TOLD, evidence=skew.seen, stated=str(round(record.applied_s - skew.ahead_s)))


def _leaning(record: ClockRecord, more_s: float, apart_s: float, evidence: Statement) -> ClockRecord:
    """The record with an offset of seconds that is told; whole quarters of an hour that were applied stay so."""
    record = replace(record, evidence=evidence, apart_s=apart_s)
    return record if record.applied_s else replace(record, offset_s=more_s, confidence="weak")


def find_skew(run: Run, samples: SampleTimes) -> Skew | None:
    """How far the trials' clock is ahead or behind, where work shows it; None where nothing does, or other causes fit
    as well.

    Where the clock is ahead by more than a start-up takes, the GPU works before trials begin, with no other trial
    running, and stops before they end. No long start-up looks like that. All offsets are sought at which hardly any
    work is left between trials: the least is the bound where start-ups take no time, the greatest where trials work to
    their end. They must lie together on one side of equal clocks. A clock that is behind shows work after trials,
    which a script may do there: it is told, and never applied.
    """
    if "util_pct" not in run.gpu or not len(run.trials):
        return None
    gaps = list(_gaps(run, samples))
    before, n_gaps = _sum(gaps, 0.0)
    if before < MIN_GAPS or before < MANY * n_gaps:
        return None
    steps = np.arange(-REACH_S, REACH_S + STEP_S, STEP_S)
    worked, sampled = np.array([_sum(gaps, step) for step in steps]).T
    free = steps[(sampled >= MIN_GAPS) & (worked <= np.maximum(1.0, FEW * sampled))]
    if not len(free) or free[0] <= 0 <= free[-1] or len(free) != round((free[-1] - free[0]) / STEP_S) + 1:
        return None
    if np.abs(free).max() >= REACH_S:
        return None
    low_s = float(free[0]) - STEP_S - max(part.longer_s for part in gaps)
    high_s = float(free[-1]) + STEP_S
    least_s = max(EXACT_S, 2 * samples.period_s)
    if low_s * high_s <= 0 or abs(low_s + high_s) < 2 * least_s:
        return None
    after, n_after = _sum(gaps, round((low_s + high_s) / 2))
    if len(steps) * scipy.special.bdtr(after, n_after, (worked / np.maximum(sampled, 1)).mean()) > MAX_CHANCE:
        return None
    return Skew(low_s, high_s, before, after, n_gaps, high_s - low_s <= least_s)


def _sum(gaps: list[Gaps], ahead_s: float) -> tuple[int, int]:
    found = [part.worked(ahead_s) for part in gaps]
    return sum(worked for worked, _ in found), sum(n_gaps for _, n_gaps in found)


def _gaps(run: Run, samples: SampleTimes) -> Iterator[Gaps]:
    """Gaps of each GPU where every trial says on which one it ran; else those in which no trial ran at all."""
    start, end = seconds(run.trials["start"]), seconds(run.trials["end"])
    begun = ~np.isnan(start)
    end = np.where(np.isnan(end), np.inf, end)
    active = run.gpu["util_pct"].to_numpy(float) >= IDLE_PCT
    known = run.gpu["util_pct"].notna().to_numpy(dtype=bool)
    for mine, rows in trial_groups(run, samples):
        if (mine & begun).any():
            times = samples.time_s[known & rows], samples.time_s[active & rows]
            yield _between(start[mine & begun], end[mine & begun], *times, samples.period_s)


def _between(start: np.ndarray, end: np.ndarray, time_s: np.ndarray, active_s: np.ndarray, period_s: float) -> Gaps:
    """The times without a trial among those, and ``REACH_S`` before the first and after the last."""
    order = np.argsort(start, kind="stable")
    start, until = start[order], np.maximum.accumulate(end[order])
    begin = np.concatenate(([start[0] - REACH_S], until))
    finish = np.concatenate((start, [until[-1] + REACH_S]))
    open_ = finish > begin
    begin, finish = begin[open_], finish[open_]
    kept = np.linspace(0, len(begin) - 1, min(len(begin), MAX_GAPS)).astype(int)
    return Gaps(begin[kept], finish[kept], _sorted(time_s), _sorted(active_s), period_s)


def _sorted(times: np.ndarray) -> np.ndarray:
    return times if bool((times[1:] >= times[:-1]).all()) else np.sort(times)


def _any_between(low: np.ndarray, high: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Whether any of the sorted times lies between each pair of bounds."""
    return np.searchsorted(times, high, side="right") > np.searchsorted(times, low, side="left")
