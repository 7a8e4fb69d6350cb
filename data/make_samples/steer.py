"""Readings moved onto stated figures: a stated mean, lowest and highest value, with the course kept."""

from __future__ import annotations

import numpy as np

from gpudiag.simulation.step_function import Array


def steer(
    values: Array, *, mean: float, low: float | None = None, high: float | None = None, step: float = 1.0
) -> Array:
    """``values`` on a grid of ``step`` with exactly that mean, which x n must lie on the grid.

    All values are shifted together, the lowest and the highest become ``low`` and ``high`` where these are
    given, and the others move one step each in a fixed order until the sum is right.
    """
    grid = np.rint(values / step).astype(int)
    target = round(mean * len(values) / step)
    grid += round((target - int(grid.sum())) / len(grid))
    lowest, highest = int(np.argmin(grid)), int(np.argmax(grid))
    floor = int(grid.min()) if low is None else round(low / step)
    ceiling = int(grid.max()) if high is None else round(high / step)
    grid = np.clip(grid, floor, ceiling)
    grid[lowest], grid[highest] = floor, ceiling
    # A stride coprime to the length spreads single steps over the whole course.
    order = [i for i in (np.arange(len(grid)) * 37 % len(grid)).tolist() if i not in (lowest, highest)]
    while missing := target - int(grid.sum()):
        sign = 1 if missing > 0 else -1
        movable = [i for i in order if floor <= grid[i] + sign <= ceiling][: abs(missing)]
        if not movable:
            raise ValueError(f"mean {mean} cannot be reached between {floor * step} and {ceiling * step}")
        grid[movable] += sign
    return np.round(grid * step, 6)
