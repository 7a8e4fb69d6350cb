"""Sums, means and quantiles of samples that each stand for a stretch of time."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

FEW_LEVELS = 1000
"""Whole numbers up to this, or to the number of values, are counted, not sorted."""


def weighted_sum(values: ArrayLike, weights: ArrayLike) -> float:
    """Sum of weight times value. NumPy's ``@`` would wait for threads of BLAS, a hundred times as long where others use
    the cores, and its last digits depend on how many there are.
    """
    return float(np.sum(np.multiply(values, weights, dtype=float)))


def _by_level(value: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The values that occur, in order, and the weight of each; among them may be some that do not, of no weight."""
    if value.min() >= 0 and value.max() <= max(FEW_LEVELS, len(value)):
        whole = value.astype(np.intp)
        if (whole == value).all():  # most samples are whole percents
            held = np.bincount(whole, weight)
            return np.arange(len(held), dtype=float), held
    code, levels = pd.factorize(value, sort=True, use_na_sentinel=False)
    return levels, np.bincount(code, weight)


def weighted_mean(values: ArrayLike, weights: ArrayLike) -> float:
    """Sum of weight times value over sum of weights; NaN where no weight is positive.

    Never outside of the values, where rounding would put it: samples that are all 100 % are not "> 99 %".
    """
    value, weight = np.asarray(values), np.asarray(weights, float)
    if value.dtype != bool:
        value = value.astype(float, copy=False)
    total = weight.sum()
    if not total > 0:
        return float("nan")
    return float(np.clip(weighted_sum(value, weight) / total, value.min(), value.max()))


def known_median(values: np.ndarray) -> float:
    """The median of what is known; NaN where nothing is."""
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else math.nan


def weighted_quantiles(values: ArrayLike, weights: ArrayLike, shares: ArrayLike) -> list[float]:
    """For each share, the smallest value at or below which at least that share of the weight lies.

    It is always a value that was measured; NaN where no weight is positive. NumPy's weighted ``quantile`` with
    ``method="inverted_cdf"`` has this definition, but no tolerance: where samples of equal weight meet a share exactly
    (19 of 20 for 0.95), rounding of the summed weights moves it to the next value (7 % of 2,000 random cases).
    """
    value, weight = np.asarray(values, float), np.asarray(weights, float)
    wanted = np.asarray(shares, float)
    if not weight.sum() > 0:
        return [float("nan")] * len(wanted)
    levels, held = _by_level(value, weight)
    reached = np.cumsum(held)
    # The tolerance keeps a share that is met exactly from being missed; what has no weight is never meant.
    at = np.searchsorted(reached, np.maximum(wanted * reached[-1] * (1 - 1e-12), np.nextafter(0.0, 1.0)))
    return [float(x) for x in levels[np.minimum(at, len(levels) - 1)]]
