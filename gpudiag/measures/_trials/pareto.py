"""The Pareto front: trials of several objectives that no other trial betters in all of them."""

from __future__ import annotations

import numpy as np


def pareto_front(losses: np.ndarray) -> np.ndarray:
    """True for each row (a trial's losses, less is better) that no other row dominates.

    One row dominates another if it is nowhere greater and somewhere less; equal rows stand side by side.
    """
    distinct, place = np.unique(losses, axis=0, return_inverse=True)  # sorted: no row is dominated by a later one
    front = np.zeros(len(distinct), dtype=bool)
    left = np.arange(len(distinct))
    while len(left):
        first, rest = left[0], left[1:]
        front[first] = True
        left = rest[(distinct[rest] < distinct[first]).any(axis=1)]
    return front[place.reshape(-1)]
