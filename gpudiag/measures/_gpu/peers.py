"""What the other GPUs of the same board have."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd


def of_peers(values: pd.Series, names: pd.Series) -> pd.Series:
    """For each GPU the median of the values of the others of the same name; NaN without one."""
    out = pd.Series(math.nan, values.index)
    for _, own in values.dropna().groupby(names):
        if len(own) > 1:
            out[own.index] = _median_of_others(own.to_numpy())
    return out


def _median_of_others(values: np.ndarray) -> np.ndarray:
    """For each of two values or more the median of all but itself."""
    ordered, n = np.sort(values), len(values)
    rank = np.empty(n, int)
    rank[np.argsort(values)] = np.arange(n)
    low, high = (n - 2) // 2, (n - 1) // 2  # of the middle among the others, who move up from its own rank on
    return (ordered[low + (low >= rank)] + ordered[high + (high >= rank)]) / 2
