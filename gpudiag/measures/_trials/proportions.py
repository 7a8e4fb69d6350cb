"""Confidence intervals of a share, and the chance of a streak."""

from __future__ import annotations

import math

import scipy

CONFIDENCE = 0.95
"""Of every interval that is given."""
NAN = float("nan")


def wilson_pct(hits: int, n: int) -> tuple[float, float]:
    """95 % bounds of a share, in percent, for display; NaN for n = 0.

    E. B. Wilson, JASA 22 (1927) 209: the score interval, which stays inside 0-100 and holds its
    coverage at small n and near the borders.
    """
    if n <= 0:
        return NAN, NAN
    z2, share = float(scipy.special.ndtri((1 + CONFIDENCE) / 2)) ** 2, hits / n
    middle, half = share + z2 / (2 * n), math.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n * n)))
    low, high = ((middle + side * half) / (1 + z2 / n) for side in (-1, 1))
    return 100 * (low if hits else 0.0), 100 * (high if hits < n else 1.0)


def clopper_pearson_pct(hits: int, n: int, level: float = CONFIDENCE) -> tuple[float, float]:
    """Bounds of a share, in percent, that hold for certain; NaN for n = 0.

    C. J. Clopper and E. S. Pearson, Biometrika 26 (1934) 404: beta quantiles, never short of ``level``. SciPy's
    ``proportion_ci(method="exact")`` finds the same bounds by a root search: 14 times slower, good to 1e-10.
    """
    if n <= 0:
        return NAN, NAN
    tail = (1 - level) / 2
    low = float(scipy.special.betaincinv(hits, n - hits + 1, tail)) if hits > 0 else 0.0
    high = float(scipy.special.betaincinv(hits + 1, n - hits, 1 - tail)) if hits < n else 1.0
    return 100 * low, 100 * high


def streak_probability(chance: float, n: int, length: int) -> float:
    """Probability of at least one run of ``length`` or more hits among ``n`` independent trials.

    The Markov recursion on the first time such a run is complete: it is complete for the first time
    at i if it was not complete at i - length - 1, a miss followed, then ``length`` hits. All terms
    are positive, so small probabilities keep their digits.
    """
    if length <= 0:
        return 1.0
    if length > n or chance <= 0:
        return 0.0
    run = chance**length
    done = [0.0] * length + [run]
    step = run * (1 - chance)
    for i in range(length + 1, n + 1):
        done.append(done[-1] + (1 - done[i - length - 1]) * step)
    return min(done[n], 1.0)
