"""The greatest or the least of the values between pairs of positions."""

from __future__ import annotations

import numpy as np


def reduced(ufunc: np.ufunc, values: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """A reduction over the values from each ``low`` to before each ``high``; NaN where there is none."""
    low, high = np.minimum(low, len(values)), np.minimum(high, len(values))
    padded = np.append(values, 0.0)  # so that a position may be that behind the last
    out = ufunc.reduceat(padded, np.column_stack([low, np.maximum(high, low)]).ravel())[::2]
    return np.where(high > low, out, np.nan)
