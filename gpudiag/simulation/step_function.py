"""Piecewise constant signals in continuous time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class StepFunction:
    """``values[i]`` holds from ``times[i]`` on, ``before`` earlier; ``area`` is the integral up to each time."""

    times: Array
    values: Array
    before: float
    area: Array

    @classmethod
    def of(cls, changes: Sequence[tuple[float, float]], before: float) -> StepFunction:
        """From (time, new value) pairs in order of time."""
        pairs = np.array(changes or [(0.0, before)], dtype=float)
        times, values = pairs[:, 0], pairs[:, 1]
        area = np.concatenate(([0.0], np.cumsum(np.diff(times) * values[:-1])))
        return cls(times, values, before, area)

    def at(self, when: Array) -> Array:
        """The value at each time; at a step, the new one."""
        index = np.searchsorted(self.times, when, side="right") - 1
        return np.where(index < 0, self.before, self.values[np.maximum(index, 0)])

    def integral(self, when: Array) -> Array:
        """Integral from the first step to each time."""
        index = np.maximum(np.searchsorted(self.times, when, side="right") - 1, 0)
        held = np.where(when < self.times[0], self.before, self.values[index])
        return self.area[index] + held * (when - self.times[index])

    def mean(self, start: Array, end: Array) -> Array:
        """Mean over each [start, end], start < end."""
        return (self.integral(end) - self.integral(start)) / (end - start)
