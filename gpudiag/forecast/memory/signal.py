"""The memory of one GPU as the sum of what its trials hold: when it grows, when it is settled, what an end frees.

METHODS 6: M(t) = b + sum of m_i(t). A trial holds nothing at first, grows, and then keeps its peak until it ends.
Growth is told from the log itself, for start-up and the first validation differ from job to job.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import optimize, sparse

from gpudiag.measures._gpu.footprint import MIN_STEP_MIB

Array = np.ndarray

QUIET_S = 7.0
"""A trial allocates nothing before it is so old (METHODS 6: a successor needs 7-8 s)."""
SETTLE_S = 30.0
"""Nobody's memory counts as settled before this age (METHODS 6)."""
BEFORE_PERIODS = 2.2
LATER_SHARE = 0.06
"""Memory is settled once it grows by no more than this share of itself until twice that age."""
QUIET_SHARE = 0.005
MAX_BINS = 48
MAX_STEPS = 24_000
BLOCKS = 12


@dataclass(frozen=True)
class Memory:
    """One GPU: timestamps and readings of its memory, and the lives of its trials; seconds from one origin, MiB.

    ``doubtful`` (n_trials,) bool: its end or its GPU is not known, so that nothing is read off while it runs.
    """

    time_s: Array
    used_mib: Array
    start_s: Array
    end_s: Array
    doubtful: Array

    @property
    def period_s(self) -> float:
        """Median time between readings; NaN below two."""
        return float(np.median(np.diff(self.time_s))) if len(self.time_s) > 1 else float("nan")


@dataclass(frozen=True)
class Growth:
    """Ages in seconds: before ``quiet_s`` a trial holds nothing, from ``settled_s`` on it holds its peak."""

    quiet_s: float = QUIET_S
    settled_s: float = SETTLE_S


@dataclass(frozen=True)
class Segments:
    """Stretches in which the same settled trials ran and nobody grew.

    ``used_mib`` (n,): the greatest reading of each, as what is reserved never shrinks; ``rows`` (n, n_trials): 1 for
    the trials in it.
    """

    used_mib: Array
    rows: sparse.csr_matrix


def measured_growth(memory: Memory) -> Growth:
    """Ages of quiet and settling, from how the memory rises with the ages of the trials.

    Every rise between two readings is shared out over the ages of the trials that ran then (non-negative least
    squares on age bins).
    """
    ages = _age_edges(memory)
    step = np.diff(memory.time_s)
    ends = np.sort(memory.end_s)
    fell = np.searchsorted(ends, memory.time_s[1:], "right") > np.searchsorted(ends, memory.time_s[:-1], "left")
    usable = (step > 0) & (step <= 3 * memory.period_s) & ~fell & _sampled(len(step))
    if usable.sum() < 3 * len(ages):
        return Growth()
    first = np.searchsorted(memory.time_s, memory.start_s, "right") - 1
    last = np.searchsorted(memory.time_s, np.minimum(memory.end_s, memory.start_s + ages[-1]), "left")
    trial, row = ranges(np.maximum(first, 0), np.minimum(last, len(step)))
    kept = usable[row]
    trial, row = trial[kept], row[kept]
    age = (memory.time_s[row] + memory.time_s[row + 1]) / 2 - memory.start_s[trial]
    place = np.searchsorted(ages, age, "right") - 1
    inside = (place >= 0) & (place < len(ages) - 1)
    size = (len(step), len(ages) - 1)
    design = sparse.csr_matrix((step[row[inside]], (row[inside], place[inside])), size)[usable]
    rate, _ = optimize.nnls(design.toarray(), np.diff(memory.used_mib)[usable])
    grown = np.cumsum(rate * np.diff(ages))
    if not grown[-1] > MIN_STEP_MIB:
        return Growth()
    quiet = ages[int(np.searchsorted(grown, QUIET_SHARE * grown[-1]))]
    later = np.interp(2 * ages[1:] + SETTLE_S, ages[1:], grown) - grown
    ratio = np.where(grown >= grown[-1] / 2, later / np.maximum(grown, 1e-9), np.inf)
    done = ratio <= max(LATER_SHARE, float(ratio[:-1].min()))
    settled = ages[1 + int(np.argmax(done))]
    return Growth(max(QUIET_S, float(quiet) - memory.period_s), max(SETTLE_S, float(settled)))


def segments(memory: Memory, growth: Growth) -> Segments:
    """All stretches with readings in which nobody grew and nobody's presence is in doubt."""
    n = len(memory.start_s)
    settled = memory.start_s + growth.settled_s
    lasting = (settled < memory.end_s) & ~memory.doubtful
    cuts = np.sort(np.concatenate([settled[lasting], memory.end_s]))
    blocked = [
        (memory.start_s + growth.quiet_s, np.minimum(settled, memory.end_s)),
        (memory.end_s, memory.end_s + min(QUIET_S, growth.quiet_s)),
        (memory.start_s[memory.doubtful], memory.end_s[memory.doubtful]),
    ]
    free = ~_within(memory.time_s, blocked)
    number = np.searchsorted(cuts, memory.time_s[free], "right")
    seen, place = np.unique(number, return_inverse=True)
    used = np.full(len(seen), -np.inf)
    np.maximum.at(used, place, memory.used_mib[free])
    low = np.searchsorted(seen, np.searchsorted(cuts, settled[lasting], "right"))
    high = np.searchsorted(seen, np.searchsorted(cuts, memory.end_s[lasting], "right"))
    trial, row = ranges(low, np.maximum(high, low))
    rows = sparse.csr_matrix((np.ones(len(row)), (row, np.flatnonzero(lasting)[trial])), (len(seen), n))
    held = np.asarray(rows.sum(axis=1)).ravel() > 0
    return Segments(used[held], rows[held])


def drops(memory: Memory, growth: Growth) -> Array:
    """What the end of each trial freed, MiB (n_trials,); NaN where another trial's start, growth or end disturbs it.

    METHODS 6 a: greatest reading in 2.2 periods before the end, less the least until a successor can have allocated.
    A period that is longer than the time until then leaves few of them.
    """
    if len(memory.time_s) < 2:
        return np.full(len(memory.start_s), np.nan)
    low, high = memory.end_s - BEFORE_PERIODS * memory.period_s, memory.end_s + growth.quiet_s
    ends = np.sort(memory.end_s)
    alone = np.searchsorted(ends, high, "right") - np.searchsorted(ends, low, "left") == 1
    grows, grown = memory.start_s + growth.quiet_s, np.minimum(memory.start_s + growth.settled_s, memory.end_s)
    beside = np.searchsorted(np.sort(grows), high, "left") - np.searchsorted(np.sort(grown), low, "right")
    own = (grows < high) & (grown > low)
    alone &= (beside - own <= 0) & ~memory.doubtful & ~_within(memory.end_s, [_doubts(memory)])
    before = _extreme(memory, low, memory.end_s, np.maximum, -np.inf)
    after = _extreme(memory, memory.end_s, high, np.minimum, np.inf)
    return np.where(alone & np.isfinite(before) & np.isfinite(after), before - after, np.nan)


def idle_level(memory: Memory) -> float:
    """Median reading while no trial ran, 7 s after the last ended; NaN without such a reading."""
    idle = ~_within(memory.time_s, [(memory.start_s, memory.end_s + QUIET_S)])
    return float(np.median(memory.used_mib[idle])) if idle.any() else float("nan")


def ranges(low: Array, high: Array) -> tuple[Array, Array]:
    """For each range [low, high) its number, and the values in it, all in a row."""
    length = np.maximum(high - low, 0)
    number = np.repeat(np.arange(len(low)), length)
    return number, np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length) + np.repeat(low, length)


def _age_edges(memory: Memory) -> Array:
    """Borders of age bins: as fine as the readings at first, then wider, up to the age that half of the trials reach.

    Beyond that too few are left to tell growth from the steps of others.
    """
    width = max(5.0, memory.period_s)
    longest = max(float(np.median(memory.end_s - memory.start_s)), 4 * width)
    fine = np.arange(0.0, min(20 * width, longest), width)
    coarse = np.geomspace(fine[-1] + width, max(longest, fine[-1] + 2 * width), MAX_BINS - len(fine))
    return np.concatenate([fine, coarse])


def _sampled(n: int) -> Array:
    """True for all steps, or for evenly spread blocks of them where there are very many."""
    if n <= MAX_STEPS:
        return np.ones(n, bool)
    at = np.arange(n)
    return (at % (n // BLOCKS)) < MAX_STEPS // BLOCKS


def _within(time_s: Array, stretches: list[tuple[Array, Array]]) -> Array:
    """True for times in any of the half-open stretches."""
    depth = np.zeros(len(time_s), np.int64)
    for low, high in stretches:
        real = high > low
        depth += np.searchsorted(np.sort(low[real]), time_s, "right")
        depth -= np.searchsorted(np.sort(high[real]), time_s, "right")
    return depth > 0


def _doubts(memory: Memory) -> tuple[Array, Array]:
    return memory.start_s[memory.doubtful], memory.end_s[memory.doubtful]


def _extreme(memory: Memory, low: Array, high: Array, pick: np.ufunc, nothing: float) -> Array:
    """Greatest or least reading in each half-open stretch; ``nothing`` where there is no reading."""
    first, last = np.searchsorted(memory.time_s, low), np.searchsorted(memory.time_s, high)
    padded = np.append(memory.used_mib, nothing)
    found = pick.reduceat(padded, np.column_stack([first, np.maximum(last, first)]).ravel())[::2]
    return np.where(last > first, found, nothing)
