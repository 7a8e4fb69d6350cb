"""What a slow drift leaves of a series: times that creep up or down over a run, beneath whatever else differs."""

from __future__ import annotations

import math

import numpy as np
import scipy

from gpudiag.comparison.autocorrelation import Dependence

LEAST_WAVES = 2
"""Slowest waves that every series has: two on each of two sides are four degrees of freedom."""
WAVES = 0.2
"""Waves over the size of a series to the power of two thirds: half of what the source takes for milder drifts."""
CHANCE = 0.05
"""Share of independent series whose slowest waves are taken for a drift. Chosen on AR(1) series of 0.9 beneath nearly
as much other noise: of the same against the same 10 to 12 % are called different at 50 values and 17 to 18 % at 20 (19
to 20 and 17 to 24 % without it). At 0.1 hardly fewer are, and what a pair can show grows by half at 20 values.
"""
OUTLIER_MADS = 5.0


def drift(values: np.ndarray) -> Dependence:
    """What is left of values in the order in which they ran if their slowest waves show how the mean wanders.

    The mean square of the first cosines tells the variance of the mean whatever the neighbors look like, with one
    degree of freedom each: E. Lazarus, D. J. Lewis, J. H. Stock and M. W. Watson, Journal of Business & Economic
    Statistics 36 (2018) 541. Outliers are moved to the edge.
    """
    slow, fast = _waves(values)
    size = len(values)
    spread = (float((slow**2).sum()) + float((fast**2).sum())) / max(size - 1, 1)
    if not spread > 0:
        return Dependence(float(size), 1.0)
    return Dependence(len(slow) + 1.0, float((slow**2).mean()) / spread)


def drifts(*series: np.ndarray) -> bool:
    """Whether the slowest waves of series that are thought to be alike in this stand out from the rest."""
    slow, fast = (np.concatenate(waves) for waves in zip(*map(_waves, series), strict=True))
    beneath = float((fast**2).sum())
    if not beneath > 0:
        return bool(slow.any())
    ratio = float((slow**2).mean()) / (beneath / len(fast))
    return ratio > float(scipy.special.fdtri(len(slow), len(fast), 1 - CHANCE))


def usual_drift(*series: np.ndarray) -> float:
    """Factor on the standard error of independent series that are taken for drifting: that of the median of these."""
    slow = sum(_slowest(len(values)) for values in series)
    fast = sum(len(values) - 1 for values in series) - slow
    if not fast:
        return math.inf
    over_fast = float(scipy.special.fdtri(slow, fast, 1 - CHANCE / 2))
    return math.sqrt(over_fast * (slow + fast) / (slow * over_fast + fast))  # the spread holds the slow waves as well


def _waves(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The slowest cosines of a series, and the others but the mean."""
    size = len(values)
    waves = scipy.fft.dct(_without_outliers(values), norm="ortho")[1:] if size else values
    return waves[: _slowest(size)], waves[_slowest(size) :]


def _slowest(size: int) -> int:
    """How many waves of a series of this size tell of a drift."""
    return max(min(max(LEAST_WAVES, round(WAVES * size ** (2 / 3))), size - 1), 0)


def has_outliers(values: np.ndarray) -> bool:
    """A value more than 5 scaled median deviations from the median."""
    low, high = _bulk(values)
    return bool(low < high and (values.min() < low or values.max() > high))


def _without_outliers(values: np.ndarray) -> np.ndarray:
    low, high = _bulk(values)
    return np.clip(values, low, high) if low < high else values


def _bulk(values: np.ndarray) -> tuple[float, float]:
    middle = float(np.median(values))
    reach = OUTLIER_MADS * 1.4826 * float(np.median(np.abs(values - middle)))
    return middle - reach, middle + reach
