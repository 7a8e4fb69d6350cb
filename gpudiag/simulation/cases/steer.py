"""Readings moved onto stated figures: a stated mean, lowest and highest value, with the course kept."""

from __future__ import annotations

import numpy as np

from gpudiag.simulation.signals import Array


def steer(values: Array, *, mean: float, low: float, high: float, step: float = 1.0) -> Array:
    """``values`` on a grid of ``step`` between ``low`` and ``high``, reaching both, with exactly that mean.

    The lowest and the highest value become ``low`` and ``high``; the others are shifted together, then
    one step each in a fixed order until the sum is right. ``mean`` x n must lie on the grid.
    """
    grid = np.rint(values / step).astype(int)
    floor, ceiling = round(low / step), round(high / step)
    target = round(mean * len(values) / step)
    lowest, highest = int(np.argmin(grid)), int(np.argmax(grid))
    fixed = np.zeros(len(grid), dtype=bool)
    fixed[[lowest, highest]] = True
    shift = round((target - grid.sum()) / len(grid))
    grid = np.clip(grid + shift, floor, ceiling)
    grid[lowest], grid[highest] = floor, ceiling
    # A stride coprime to the length spreads single steps over the whole course.
    order = [i for i in (np.arange(len(grid)) * 37 % len(grid)).tolist() if not fixed[i]]
    missing = target - int(grid.sum())
    while missing:
        sign = 1 if missing > 0 else -1
        movable = [i for i in order if floor < grid[i] + sign < ceiling]
        for i in movable[: abs(missing)]:
            grid[i] += sign
        missing -= sign * min(abs(missing), len(movable))
        if not movable:
            raise ValueError(f"mean {mean} cannot be reached between {low} and {high}")
    return np.round(grid * step, 6)
