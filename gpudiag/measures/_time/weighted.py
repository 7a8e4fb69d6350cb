"""Means and quantiles of samples that each stand for a stretch of time."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def weighted_mean(values: ArrayLike, weights: ArrayLike) -> float:
    """Sum of weight times value over sum of weights; NaN where no weight is positive."""
    value, weight = np.asarray(values, float), np.asarray(weights, float)
    total = weight.sum()
    return float(value @ weight / total) if total > 0 else float("nan")


def weighted_quantiles(values: ArrayLike, weights: ArrayLike, shares: ArrayLike) -> list[float]:
    """For each share, the smallest value at or below which at least that share of the weight lies.

    It is always a value that was measured; NaN where no weight is positive.
    """
    value, weight = np.asarray(values, float), np.asarray(weights, float)
    wanted = np.asarray(shares, float)
    if not weight.sum() > 0:
        return [float("nan")] * len(wanted)
    order = np.argsort(value)
    reached = np.cumsum(weight[order])
    # The tolerance keeps a share that is met exactly from being missed by a rounding error.
    at = np.searchsorted(reached, wanted * reached[-1] * (1 - 1e-12))
    return [float(x) for x in value[order][np.minimum(at, len(value) - 1)]]
