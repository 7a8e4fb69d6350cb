"""Samples as even buckets of time: least, mean and greatest of what was observed in each, and how much of it was."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gpudiag.measures._time.bins import BIN_STEPS_S
from gpudiag.measures._time.microseconds import SECOND_US

SEEN_FULLY = 255


@dataclass(frozen=True, eq=False)
class Raster:
    """Even buckets from ``start_us`` on, each ``width_us`` wide."""

    start_us: int
    width_us: int
    n: int

    @property
    def edges_us(self) -> np.ndarray:
        """The borders, one more than there are buckets."""
        return self.start_us + self.width_us * np.arange(self.n + 1, dtype=np.int64)

    @classmethod
    def of(cls, low_us: int, high_us: int, period_us: int, most: int) -> Raster:
        """At most ``most`` buckets of a round width, and none much finer than a quarter of the sampling period: from
        there on most buckets hold one sample alone, and what it says is not blurred with its neighbour.
        """
        least, finest = max(math.ceil((high_us - low_us) / most), 1), period_us // 4
        width = round_width(finest, up=False) if finest > least else round_width(least, up=True)
        return cls(low_us, width, max(-(-(high_us - low_us) // width), 1))


def round_width(us: int, *, up: bool) -> int:
    """The next round width up, or down: 1, 2 or 5 in a decade below a second, days above a day."""
    fine = [digit * 10**power for power in range(6) for digit in (1, 2, 5)]
    steps = [*fine, *(step * SECOND_US for step in BIN_STEPS_S)]
    if us >= steps[-1]:
        days = us // steps[-1]
        return steps[-1] * (days + (up and us % steps[-1] > 0))
    return next(step for step in steps if step >= us) if up else max(step for step in steps if step <= us)


@dataclass(frozen=True, eq=False)
class Buckets:
    """One column of one GPU by bucket. ``seen`` is how much of a bucket was observed, in 255ths, never rounded to 0;
    where it is 0 nothing is known, and the three values are NaN.
    """

    low: np.ndarray
    mean: np.ndarray
    high: np.ndarray
    seen: np.ndarray


def bucketed(start_us: np.ndarray, end_us: np.ndarray, value: np.ndarray, raster: Raster) -> Buckets:
    """The cells of samples (sorted, none over another) in buckets; a cell counts in each bucket by what lies in it."""
    if not len(value):
        unknown = np.full(raster.n, np.nan)
        return Buckets(unknown, unknown, unknown, np.zeros(raster.n, np.uint8))
    edges = raster.edges_us
    first = np.searchsorted(end_us, edges[:-1], "right")
    last = np.searchsorted(start_us, edges[1:], "left")
    some = last > first
    # Pairs of borders: every second piece is a bucket's. The row added at the end lets a piece reach to the end.
    pieces = np.column_stack([first, last]).ravel()
    padded = np.append(value, np.nan)
    low, high = (reduce.reduceat(padded, pieces)[::2] for reduce in (np.fmin, np.fmax))
    observed, area = _up_to(edges, start_us, end_us, value)
    seen_us, mass = np.diff(observed), np.diff(area)
    some &= seen_us > 0
    low, high = np.where(some, low, np.nan), np.where(some, high, np.nan)
    mean = np.clip(mass / np.where(some, seen_us, np.nan), low, high)
    seen = np.where(some, np.ceil(SEEN_FULLY * seen_us / raster.width_us), 0).clip(0, SEEN_FULLY)
    return Buckets(low, mean, high, seen.astype(np.uint8))


def _up_to(
    edges_us: np.ndarray, start_us: np.ndarray, end_us: np.ndarray, value: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """At each edge the observed time before it (µs), and the values integrated over that time."""
    length = end_us - start_us
    before = np.concatenate([[0], np.cumsum(length)])
    mass = np.concatenate([[0.0], np.cumsum(length * value)])
    at = np.searchsorted(start_us, edges_us, "right") - 1  # the last cell that has begun; -1: none
    held = np.maximum(at, 0)
    inside = np.where(at < 0, 0, np.minimum(edges_us - start_us[held], length[held]))
    return before[held] + inside, mass[held] + inside * value[held]
