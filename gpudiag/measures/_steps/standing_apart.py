"""Which intervals took so much longer than their steps that the spread of the others does not reach there."""

from __future__ import annotations

import math

import numpy as np

CHANCE = 0.01
"""That the longest of as many intervals without a pause lie so far beyond the others (a default without a published
source)."""
LEVELS = (0.5, 0.75, 0.9, 0.95, 0.98, 0.99)
"""Shares of the shorter intervals beyond which their tail is looked at: the heaviest of these tails counts."""
FEWEST = 5
"""Shorter intervals that show a tail beyond the first level, and no fewer than there are longer ones."""
ROUNDED = 1 / 3
"""Of a tick of the clock, which times differ by in the mean where it alone makes them differ."""

NO_TIME = 1e-9


def least_apart(times: np.ndarray, tick: np.ndarray, least: float) -> float:
    """The least of ``times`` (how many times as long as their steps intervals took) from which on they stand apart
    from the others; infinite where none do. ``tick``: of the clock, on the same scale.

    Where a tail falls as a power of the time, as the heaviest do, k times the logarithm of the ratio of the k-th
    longest to the next is exponential, with the mean of the tail's own logarithms (Rényi's representation); other
    tails fall faster, and leave smaller gaps. That mean is Hill's estimate from the intervals below
    the gap, those above it taken as no longer. The
    lowest gap counts that is as unlikely as ``CHANCE`` among all gaps that are looked at: those with a quarter of the
    intervals below, and beyond which half took ``least`` or more, and all its square root.
    """
    ordered = np.sort(times)
    x = np.log(np.maximum(ordered, NO_TIME))
    begin, half = np.searchsorted(x, [math.log(least) / 2, math.log(least)]).tolist()
    at = np.arange(max(begin, 2 * half - len(x), len(x) // 4, 2), len(x))  # the first above each gap
    if not len(at):
        return math.inf
    floor = ROUNDED * float(np.median(tick))
    gap, above = x[at] - x[at - 1], len(x) - at
    summed = np.append(0.0, np.cumsum(x))
    unlikely = np.full(len(at), np.inf)
    for level in LEVELS:
        low = (level * at).astype(int)
        n = at - low
        beyond = summed[at] - summed[low] + above * x[at - 1] - (n + above) * x[low]  # those above the gap reach to it
        mean = np.maximum(beyond / n, floor)
        # the mean of n logarithms is itself uncertain
        score = n * np.log1p(above * gap / np.maximum(mean, NO_TIME) / n)
        unlikely = np.where(
            (n >= np.maximum(above, FEWEST)) | (level == LEVELS[0]), np.minimum(unlikely, score), unlikely
        )
    found = np.flatnonzero(unlikely >= math.log(len(at) / CHANCE))
    return float(ordered[at[found[0]]]) if len(found) else math.inf
