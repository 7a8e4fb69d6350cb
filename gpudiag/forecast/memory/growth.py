"""At which age a trial takes its memory, as the log itself shows it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from gpudiag.forecast.memory.signal import Memory, Steps, ranges

Array = np.ndarray

FINE_BINS, MAX_BINS = 20, 40
MAX_ROWS = 24_000
FALL_WEIGHT = 0.3
"""A step in which a trial ends tells of growth only as far as peaks do not scatter."""
SETTLED_SHARE = 0.94
"""A trial has reached its peak as a rule once it holds so much of it."""
BLOCKS = 12
ROUNDS = 20
JUMPS_KNOWN = 0.5
"""Jumps of a whole peak that are taken for seen at each age, where few were."""
LEAST_SHARE = 0.02
"""Of all growth that is spread evenly over a life: no age is surely without any."""


@dataclass(frozen=True)
class Growth:
    """``edges_s`` (n + 1,): borders of ages; ``rate_mib_s`` and ``jump_mib`` (n,): how fast trials of that age grow,
    and by how much at a time; ``whole_mib``: what a trial holds at its end.
    """

    edges_s: Array
    rate_mib_s: Array
    jump_mib: Array
    whole_mib: float

    @property
    def settled_s(self) -> float:
        """The age at which trials hold 94 % of their memory, in the mean."""
        grown = np.cumsum(self.rate_mib_s * np.diff(self.edges_s))
        return float(self.edges_s[1 + int(np.searchsorted(grown, SETTLED_SHARE * grown[-1]))])

    def share(self, age_s: Array) -> Array:
        """What a trial holds at an age, of what it holds at last (0 to 1)."""
        grown = np.concatenate([[0.0], np.cumsum(self.rate_mib_s * np.diff(self.edges_s))])
        return np.interp(age_s, self.edges_s, grown / max(grown[-1], 1e-9))

    def settled_share(self, duration_s: Array) -> Array:
        """Share of a life of that length in which a trial holds what it holds at last."""
        age = np.linspace(0.0, 1.0, 101)[None, :] * duration_s[:, None]
        held = self.share(age)
        return np.where(held[:, -1] > 0, held.mean(axis=1) / np.maximum(held[:, -1], 1e-9), 1.0)

    def between(self, young_s: Array, old_s: Array) -> tuple[Array, Array, Array]:
        """What a trial grows by from one age to another: mean and variance, MiB, and the number of jumps expected."""
        spent = overlap(young_s, old_s, self.edges_s)
        spent[:, -1] += np.maximum(old_s - np.maximum(young_s, self.edges_s[-1]), 0.0)
        mean = spent * self.rate_mib_s
        return mean.sum(axis=1), (mean * self.jump_mib).sum(axis=1), (mean / self.jump_mib).sum(axis=1)


def overlap(young_s: Array, old_s: Array, edges_s: Array) -> Array:
    """Seconds of each stretch of ages that lie between the borders (n, len(edges) - 1)."""
    return np.diff(np.clip(edges_s[None], young_s[:, None], old_s[:, None]), axis=1)


def measured_growth(memory: Memory, steps: Steps, baseline_mib: float) -> Growth:
    """Rates by age from all changes at once, by non-negative least squares, then by expectation and maximisation.

    What an end frees is one unknown more, and levels before ends count as well where the baseline is known: growth that
    hides behind the end of another trial shows there.
    """
    edges = _age_edges(memory)
    spent, change, released = _rows(memory, steps, edges)
    weigh = np.where(released > 0, FALL_WEIGHT, 1.0)
    system, sides = [np.column_stack([spent, -released]) * weigh[:, None]], [change * weigh]
    whole = 10 / max(len(change), 1) ** 0.5  # of the sum of all changes; there may be none
    system.append(whole * system[0].sum(axis=0, keepdims=True))
    sides.append(whole * sides[0].sum(keepdims=True))
    if not np.isnan(baseline_mib):
        lived, above = _level_rows(steps, edges, baseline_mib)
        system.append(np.column_stack([lived, np.zeros(len(lived))]))
        sides.append(above)
    design = np.vstack(system)
    scale = np.maximum(np.sqrt((design**2).sum(axis=0)), 1e-9)
    found = scipy.optimize.nnls(design / scale, np.concatenate(sides), maxiter=100 * design.shape[1])[0] / scale
    falls = steps.fall_mib[~np.isnan(steps.fall_mib)]
    size = float(max(found[-1], falls.mean() if len(falls) else 0.0, 1.0))
    least = LEAST_SHARE * size / max(float(np.median(memory.end_s - memory.start_s)), 1.0)
    rate, hidden = found[:-1] + least, spent[released > 0].sum(axis=0)
    shown = (released == 0) & (change > 0)
    for _ in range(ROUNDS):
        share = change[shown] / np.maximum(spent[shown] @ rate, 1e-9)
        grown = rate * (share @ spent[shown])
        rate = np.maximum((grown + rate * hidden) / np.maximum(spent.sum(axis=0), 1e-9), least)
    # The size of a jump at an age is that of the rises that it had part in.
    grown_square = rate * ((share * change[shown]) @ spent[shown])
    jump = (grown_square + JUMPS_KNOWN * size**2) / (grown + JUMPS_KNOWN * size)
    return Growth(edges, rate, jump, size)


def _rows(memory: Memory, steps: Steps, edges: Array) -> tuple[Array, Array, Array]:
    """One row a pair of readings: seconds spent at each age by all trials, the change, and how many trials ended."""
    n = len(memory.time_s) - 1
    at, ends = steps.end_pair, np.zeros(n)
    np.add.at(ends, at[at >= 0], 1.0)
    picked = (_sampled(n)) & (np.diff(memory.time_s) <= 3 * memory.period_s) & ~steps.blind_pairs
    change = np.diff(steps.level_mib)
    first = np.maximum(np.searchsorted(memory.time_s, memory.start_s, "right") - 1, 0)
    trial, pair = ranges(first, np.maximum(np.minimum(steps.until + 1, n), first))
    kept = picked[pair]
    trial, pair = trial[kept], pair[kept]
    start, over = memory.start_s[trial], np.maximum(memory.end_s - memory.start_s, 0.0)[trial]
    young = np.maximum(memory.time_s[pair] - start, 0.0)
    old = np.clip(memory.time_s[pair + 1] - start, young, np.maximum(over, young))
    place = np.cumsum(picked) - 1
    spent = np.zeros((int(picked.sum()), len(edges) - 1))
    np.add.at(spent, place[pair], overlap(young, old, edges))
    return spent, change[picked], ends[picked]


def _level_rows(steps: Steps, edges: Array, baseline_mib: float) -> tuple[Array, Array]:
    """Levels before falls, each divided by the trials that ran, and seconds that these had spent at each age."""
    used = steps.falls & ~steps.blind
    mine = used[steps.step]
    count = np.bincount(steps.step[mine], minlength=len(used))
    lived = np.zeros((len(used), len(edges) - 1))
    np.add.at(lived, steps.step[mine], overlap(np.zeros(int(mine.sum())), steps.young_s[mine], edges))
    weigh = FALL_WEIGHT / np.maximum(count, 1)[used]
    return lived[used] * weigh[:, None], (steps.above_mib[used] - baseline_mib) * weigh


def _age_edges(memory: Memory) -> Array:
    """Borders of age bins: as fine as the readings at first, then wider, to the age that one trial in ten reaches."""
    width = max(1.0, memory.period_s)
    longest = max(float(np.quantile(memory.end_s - memory.start_s, 0.9)), 4 * width)
    fine = np.arange(0.0, min(FINE_BINS * width, longest), width)
    coarse = np.geomspace(fine[-1] + width, max(longest, fine[-1] + 2 * width), MAX_BINS - len(fine))
    return np.concatenate([fine, coarse])


def _sampled(n: int) -> Array:
    """True for all pairs, or for evenly spread blocks of them where there are very many."""
    if n <= MAX_ROWS:
        return np.ones(n, bool)
    return (np.arange(n) % (n // BLOCKS)) < MAX_ROWS // BLOCKS
