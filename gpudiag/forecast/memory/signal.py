"""The memory of one GPU as a row of changes: what rises while trials run, and what falls when one of them ends.

METHODS 6: M(t) = b + sum of m_i(t). A trial holds nothing before it starts, never less than before while it runs, and
nothing once it has ended. Changes that no reading shows did not happen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from gpudiag.measures._time.reduced import reduced

Array = np.ndarray

LATE_S = 7.0
"""Memory is free so long after a trial's recorded end at the latest (METHODS 6)."""
BEFORE_PERIODS = 2.2
"""And so many periods before it at the earliest: the process may end before its end is written down."""
TOLERANCE_MIB = 16.0
"""Rises are followed in steps of so much."""


@dataclass(frozen=True)
class Memory:
    """One GPU: timestamps and readings of its memory, and the lives of its trials; seconds from one origin, MiB.

    ``doubtful`` (n_trials,) bool: its end or its GPU is not known, so that nothing is read off while it runs.
    ``end_sd_mib`` (n_trials,): what its end frees differs from what it took by about so much.
    """

    time_s: Array
    used_mib: Array
    start_s: Array
    end_s: Array
    doubtful: Array
    end_sd_mib: Array

    @property
    def period_s(self) -> float:
        """Median time between readings; NaN below two."""
        return float(np.median(np.diff(self.time_s))) if len(self.time_s) > 1 else float("nan")


@dataclass(frozen=True)
class Steps:
    """Changes of memory in use from one reading to the next, and the trials that may have made them.

    ``change_mib`` (n,), known to ``sd_mib`` (n,); ``falls`` (n,): a trial ends in it; ``blind`` (n,): a doubtful trial
    runs, so that the change says nothing; ``above_mib`` (n,): the level before it.
    The last row is what was in use at the first reading, above the baseline (blind without one).
    Entries, one a trial that runs in a step: ``step``, ``trial``, ``young_s`` and ``old_s`` (its ages in the step's
    time), ``ends`` (it ends there). ``end_step`` (n_trials,): -1 where readings end within 7 s of it.
    Reading by reading: ``end_pair`` (n_trials,), the last with its memory (-1
    where no other follows); ``until`` (n_trials,), the last that it runs in (-1 none); ``level_mib``; ``blind_pairs``.
    ``ceiling_mib`` (n_trials,): the greatest level while it ran (NaN without a reading).
    """

    change_mib: Array
    sd_mib: Array
    above_mib: Array
    falls: Array
    blind: Array
    step: Array
    trial: Array
    young_s: Array
    old_s: Array
    ends: Array
    end_step: Array
    end_pair: Array
    until: Array
    level_mib: Array
    blind_pairs: Array
    ceiling_mib: Array

    @property
    def fall_mib(self) -> Array:
        """What the end of each trial freed at least (n_trials,); NaN where another ended too or nothing is known."""
        alone = np.bincount(self.end_step[self.end_step >= 0], minlength=len(self.change_mib)) == 1
        out = np.full(len(self.end_step), np.nan)
        at = np.flatnonzero(self.end_step >= 0)
        at = at[(alone & ~self.blind & (self.sd_mib == 0))[self.end_step[at]]]
        out[at] = -self.change_mib[self.end_step[at]]
        return out


def read_steps(memory: Memory, baseline_mib: float) -> Steps:
    """The changes of at least 16 MiB, and all ends; first of all what trials held that ran before the first reading."""
    at = _end_pairs(memory)
    level = _levels(memory, at)
    pairs = np.unique(np.concatenate([at[at >= 0], _rises(level, at)])).astype(int)
    falls = np.isin(pairs, at[at >= 0])
    last = np.where(falls, pairs, np.concatenate([[0], pairs[:-1] + 1]))  # small rises since the step before count too
    change = level[pairs + 1] - level[np.minimum(last, pairs)]
    first = np.searchsorted(memory.time_s, memory.start_s, "right") - 1
    until = np.where(at >= 0, at, np.where(memory.end_s <= memory.time_s[0], -1, len(memory.time_s)))
    low, high = np.searchsorted(pairs, np.maximum(first, 0)), np.searchsorted(pairs, until, "right")
    trial, step = ranges(low, np.maximum(high, low))
    start = memory.start_s[trial]
    ends = at[trial] == pairs[step]
    young = np.maximum(memory.time_s[pairs[step]] - start, 0.0)
    old = np.maximum(memory.time_s[pairs[step] + 1] - start, young)
    old = np.where(ends, np.clip(memory.end_s[trial] - start, young, old), old)
    blind = _within(memory.time_s[:-1], [(memory.start_s[memory.doubtful], memory.end_s[memory.doubtful])])
    place = np.full(len(memory.time_s), -1)
    place[pairs] = np.arange(len(pairs))
    sd = np.zeros(len(pairs) + 1)
    np.maximum.at(sd, place[at[at >= 0]], memory.end_sd_mib[at >= 0])
    early = np.flatnonzero((memory.start_s < memory.time_s[0]) & (memory.end_s > memory.time_s[0]))
    age = memory.time_s[0] - memory.start_s[early]
    n_early = len(early)
    return Steps(
        change_mib=np.append(change, level[0] - baseline_mib),
        sd_mib=sd,
        above_mib=np.append(level[pairs], baseline_mib),
        falls=np.append(falls, False),
        blind=np.append(blind[pairs], np.isnan(baseline_mib)),
        step=np.append(step, np.full(n_early, len(pairs))),
        trial=np.append(trial, early),
        young_s=np.append(young, np.zeros(n_early)),
        old_s=np.append(old, age),
        ends=np.append(ends, np.zeros(n_early, bool)),
        end_step=np.where(at >= 0, place[np.maximum(at, 0)], -1),
        end_pair=at,
        until=until,
        level_mib=level,
        blind_pairs=blind,
        ceiling_mib=_ceiling(memory, level, at),
    )


def _ceiling(memory: Memory, level: Array, at: Array) -> Array:
    """The greatest level while each trial ran."""
    first = np.searchsorted(memory.time_s, memory.start_s, "left")
    last = np.where(memory.end_s <= memory.time_s[0], first, np.where(at >= 0, at + 1, len(level)))
    return reduced(np.maximum, level, first, last)


def _end_pairs(memory: Memory) -> Array:
    """For each trial the reading after which its memory is gone with the next; -1 where readings end within 7 s of it.

    Between the ends before and after it, from 2.2 periods before its own to 7 s after, the greatest fall is its.
    """
    time, used = memory.time_s, memory.used_mib
    change = np.diff(used)
    ends = np.unique(memory.end_s)
    place = np.searchsorted(ends, memory.end_s)
    before = np.concatenate([[-np.inf], ends[:-1]])[place]
    after = np.concatenate([ends[1:], [np.inf]])[place]
    usual = np.searchsorted(time, memory.end_s, "left") - 1
    low = np.searchsorted(time, np.maximum(before, memory.end_s - BEFORE_PERIODS * memory.period_s), "left")
    low = np.maximum(low, np.searchsorted(time, memory.start_s, "right") - 1)
    high = np.searchsorted(time, np.minimum(after, memory.end_s + LATE_S), "right") - 2
    whole = memory.end_s + LATE_S <= time[-1]  # else the log may end before all is free
    out = np.where((usual >= 0) & (usual < len(change)) & whole, usual, -1)
    for i in np.flatnonzero((out >= 0) & (high > low)):
        picked = max(low[i], 0) + int(np.argmin(change[max(low[i], 0) : high[i] + 1]))
        if change[picked] < min(change[out[i]], -TOLERANCE_MIB):
            out[i] = picked
    return out


def _levels(memory: Memory, at: Array) -> Array:
    """Readings without what comes back: between two ends memory never shrinks, and what an end frees late is gone."""
    time, used = memory.time_s, memory.used_mib.astype(float).copy()
    pairs = np.unique(at[at >= 0])
    any_end = np.unique(np.concatenate([pairs, np.searchsorted(time, memory.end_s[at < 0], "left") - 1]))
    next_pair = np.append(any_end, len(time) - 1)[np.searchsorted(any_end, pairs, "right")]
    for pair, following in zip(pairs.tolist(), next_pair.tolist(), strict=True):
        last = min(int(np.searchsorted(time, time[pair + 1] + LATE_S, "right")), following + 1)
        late = pair + 2 + np.flatnonzero(np.diff(used[pair + 1 : last]) < -TOLERANCE_MIB)
        for reading in late.tolist():
            used[pair + 1 : reading] += used[reading] - used[reading - 1]
    part = np.searchsorted(pairs, np.arange(len(time)), "left")
    return pd.Series(used).groupby(part).cummax().to_numpy()


def _rises(level: Array, at: Array) -> Array:
    """Pairs of readings between which the level passes the next of the steps of 16 MiB since the last end."""
    pairs = np.unique(at[at >= 0])
    part = np.searchsorted(pairs, np.arange(len(level)), "left")
    base = level[np.concatenate([[0], pairs + 1])][part]
    count = np.floor((level - base) / TOLERANCE_MIB)
    return np.flatnonzero((np.diff(count) > 0) & (np.diff(part) == 0))


def idle_level(memory: Memory) -> float:
    """Median reading while no trial ran, 7 s after the last ended; NaN without such a reading.

    Before the first trial where that is less: processes of workers may hold memory from then on.
    """
    idle = ~_within(memory.time_s, [(memory.start_s, memory.end_s + LATE_S)])
    if not idle.any():
        return float("nan")
    early = idle & (memory.time_s < memory.start_s.min())
    return float(min(np.median(memory.used_mib[part]) for part in (idle, early) if part.any()))


def ranges(low: Array, high: Array) -> tuple[Array, Array]:
    """For each range [low, high) its number, and the values in it, all in a row."""
    length = np.maximum(high - low, 0)
    number = np.repeat(np.arange(len(low)), length)
    return number, np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length) + np.repeat(low, length)


def _within(time_s: Array, stretches: list[tuple[Array, Array]]) -> Array:
    """True for times in any of the half-open stretches."""
    depth = np.zeros(len(time_s), np.int64)
    for low, high in stretches:
        real = high > low
        depth += np.searchsorted(np.sort(low[real]), time_s, "right")
        depth -= np.searchsorted(np.sort(high[real]), time_s, "right")
    return depth > 0
