"""The pace of a training: what its steps usually take, in all of it and around each interval."""

from __future__ import annotations

import math

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from gpudiag.measures._time.weighted import weighted_quantiles

CLOCK_S = 2.0
"""What two times by a clock of whole seconds differ by at most, beside what they truly differ by."""
ENOUGH = 3
"""Intervals from which on only they say what is usual."""
BESIDE = 5
"""Intervals before one, and as many behind it, whose median is the pace there. A change of pace shows at the next
interval, and up to four with a wait of their own do not move it."""


def usual_s(took: np.ndarray, n: np.ndarray, *, coarse: bool) -> float:
    """Median time of a step over intervals, weighted by steps; by a clock of whole seconds the mean of those that
    differ from it by no more than the clock: what it rounds away of one interval it gives to the next.
    """
    if not len(n):
        return math.nan
    (middle,) = weighted_quantiles(took / n, n, (0.5,))
    near = np.abs(took - n * middle) <= CLOCK_S
    return float(took[near].sum() / n[near].sum()) if coarse and 2 * near.sum() > len(n) else middle


def pace_s(took: np.ndarray, n: np.ndarray, plain: np.ndarray, *, coarse: bool) -> np.ndarray:
    """By interval, the median of the plain ones beside it, of which one that is short by steps and by time counts less;
    where the pace changes just there, the mean of before and after. By a clock of whole seconds as in :func:`usual_s`.
    """
    at = np.flatnonzero(plain)
    if len(at) < ENOUGH:
        return np.full(len(n), usual_s(took[plain], n[plain], coarse=coarse))
    took, steps = took[at], n[at]
    weight = np.minimum(np.maximum(took / max(np.median(took), 1e-9), steps / np.median(steps)), 1.0)
    took, steps, weight = (sliding_window_view(np.pad(of, BESIDE), 2 * BESIDE) for of in (took, steps, weight))
    middle = _middle(np.divide(took, steps, out=np.full(steps.shape, np.inf), where=steps > 0), weight)
    if coarse:
        near = (np.abs(took - steps * middle[:, None]) <= CLOCK_S) & (steps > 0)
        enough = 2 * near.sum(axis=1) > (steps > 0).sum(axis=1)
        mean = (took * near).sum(axis=1) / np.maximum((steps * near).sum(axis=1), 1)
        middle = np.where(enough, mean, middle)
    return middle[np.searchsorted(at, np.arange(len(n)))]


def _middle(each_s: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Weighted median of each row: the mean of two values where half of the weight lies on each side."""
    order = np.argsort(each_s, axis=1)
    each_s, reached = (np.take_along_axis(each_s, order, axis=1), np.cumsum(np.take_along_axis(weight, order, 1), 1))
    half = reached[:, -1:] / 2
    ends = [np.argmax(side, axis=1) for side in (reached >= half * (1 - 1e-12), reached > half * (1 + 1e-12))]
    low, high = (np.take_along_axis(each_s, end[:, None], axis=1)[:, 0] for end in ends)
    return (low + high) / 2
