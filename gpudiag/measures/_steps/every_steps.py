"""Whether pauses of a training come every so many steps, as what a setting asks for does."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

ENOUGH = 5
"""Pauses that are no chance."""
MOSTLY = 0.8
"""Of the pauses, and of the places where one is expected."""


def every_n_steps(course: pd.DataFrame, paused: pd.DataFrame) -> float:
    """The number of steps at whose multiples pauses come; NaN where they come otherwise, are few, or where the lines
    of the log lie too far apart to show it.

    A pause lies behind a step of its interval: one of those up to the step before its last one.
    """
    last = paused["done"].to_numpy(float)
    before = np.sort(last - paused["n"].to_numpy(float))
    if len(before) < ENOUGH:
        return math.nan
    every = float(np.round(np.median(np.diff(before))))
    if not every > float(course["n"].median()):
        return math.nan
    held = np.floor((last - 1) / every) * every >= last - paused["n"].to_numpy(float)
    expected = float(course["done"].max()) // every
    return every if held.mean() >= MOSTLY and held.sum() >= MOSTLY * (expected - 1) else math.nan
