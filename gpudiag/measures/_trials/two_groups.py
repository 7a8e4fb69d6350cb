"""Durations that form two groups, and the chance that one kind of duration looks so."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

MIN_GROUP = 3
LEAST_S = 0.1
"""Shorter durations count as this: their logarithms would lie far from all others."""
LEAST_SPREAD = 1e-6
"""Of durations that are all equal, within rounding."""
DRAWS, SEED = 2000, 8
MOST_DRAWN = 200
"""More values are taken for so many, which split further by chance."""
ONE_KIND: tuple[Callable[[np.random.Generator, tuple[int, int]], np.ndarray], ...] = (
    lambda rng, size: rng.standard_normal(size),
    lambda rng, size: rng.random(size),
    lambda rng, size: np.log(rng.random(size)),
    lambda rng, size: np.log(rng.standard_exponential(size)),
)
"""Logarithms of lognormal durations, of durations even in their logarithm, of even and of exponential ones."""


def two_groups(seconds: np.ndarray) -> dict[str, Any]:
    """The split of log durations with the least sum of squares within both groups of three or more, as far apart as
    Ashman's D says, and the chance that durations of one kind split so far. A split that is the best of many is always
    far: of 20 even durations every eighth has groups that are 4 standard deviations and a factor of 5 apart.
    """
    logs = np.sort(np.log(np.maximum(seconds[~np.isnan(seconds)], LEAST_S)))
    n = len(logs)
    if n < 2 * MIN_GROUP:
        names = ("split_s", "short_s", "long_s", "ashman_d", "p_one_group")
        return {"short_n": 0, "long_n": 0, **dict.fromkeys(names, math.nan)}
    cuts, distances = _best_splits(logs[np.newaxis])
    cut, distance = int(cuts[0]), float(distances[0])
    low, high = logs[:cut], logs[cut:]
    return {
        "split_s": math.exp((float(low[-1]) + float(high[0])) / 2),
        "short_n": cut,
        "long_n": n - cut,
        "short_s": math.exp(float(low.mean())),
        "long_s": math.exp(float(high.mean())),
        "ashman_d": distance,
        "p_one_group": _chance(distance, min(n, MOST_DRAWN)),
    }


def _best_splits(logs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values of the low group, and Ashman's D, of the best split of each row; rows are sorted."""
    n = logs.shape[1]
    low_n = np.arange(MIN_GROUP, n - MIN_GROUP + 1)
    high_n = n - low_n
    centered = logs - logs.mean(axis=1, keepdims=True)  # or squares would lose digits
    sums, squares = np.cumsum(centered, axis=1), np.cumsum(centered**2, axis=1)
    low, high = sums[:, low_n - 1], sums[:, -1:] - sums[:, low_n - 1]
    within_low = squares[:, low_n - 1] - low**2 / low_n
    within_high = squares[:, -1:] - squares[:, low_n - 1] - high**2 / high_n
    best = np.argmin(within_low + within_high, axis=1)[:, np.newaxis]
    spread = np.sqrt(np.maximum(within_low / (low_n - 1) + within_high / (high_n - 1), LEAST_SPREAD**2))
    distance = math.sqrt(2) * (high / high_n - low / low_n) / spread
    return low_n[best[:, 0]], np.take_along_axis(distance, best, axis=1)[:, 0]


def _chance(distance: float, n: int) -> float:
    """That n values of one kind split at least so far: of the kind that does most often."""
    at_least = [DRAWS - int(np.searchsorted(drawn, distance)) for drawn in _distances(n)]
    return (max(at_least) + 1) / (DRAWS + 1)


@lru_cache(maxsize=32)
def _distances(n: int) -> tuple[np.ndarray, ...]:
    """Ashman's D of n values drawn from each kind, in order."""
    rng = np.random.default_rng(SEED)
    return tuple(np.sort(_best_splits(np.sort(draw(rng, (DRAWS, n)), axis=1))[1]) for draw in ONE_KIND)
