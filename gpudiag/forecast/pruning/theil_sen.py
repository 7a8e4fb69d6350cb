"""The line through points that few outliers do not move (Theil-Sen), with the interval of its slope (Sen 1968).

As ``scipy.stats.theilslopes``; the import of ``scipy.stats`` takes longer than the forecasts of a small report.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy

Array = np.ndarray


class Line(NamedTuple):
    """``at_zero`` is y where x is 0; the slope lies from ``flat`` to ``steep``."""

    slope: float
    at_zero: float
    flat: float
    steep: float


def theil_sen(x: Array, y: Array, confidence: float) -> Line:
    """The median of the slopes between all pairs of points (n of ``x`` and ``y``, two values of x at the least).

    NaN bound the slope where so many values are equal that its variance is unknown.
    """
    later = x[:, None] > x
    slopes = np.sort((y[:, None] - y)[later] / (x[:, None] - x)[later])
    slope = float(np.median(slopes))
    at_zero = float(np.median(y) - slope * np.median(x))
    variance = (_orders(np.array([len(x)])) - _orders(_ties(x)) - _orders(_ties(y))) / 18
    if variance < 0:
        return Line(slope, at_zero, float("nan"), float("nan"))
    away = -float(scipy.special.ndtri((1 - confidence) / 2)) * math.sqrt(variance)
    low, high = round((len(slopes) - away) / 2) - 1, round((len(slopes) + away) / 2)
    return Line(slope, at_zero, float(slopes[max(low, 0)]), float(slopes[min(high, len(slopes) - 1)]))


def _ties(values: Array) -> Array:
    return np.unique(values, return_counts=True)[1]


def _orders(counts: Array) -> float:
    """Eighteen times the variance of Kendall's count over orders of so many (Kendall 1970, ch. 4)."""
    k = counts[counts > 1].astype(float)
    return float(np.sum(k * (k - 1) * (2 * k + 5)))
