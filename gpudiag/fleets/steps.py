"""Steps in a short series: where its mean changed, and how often chance alone would look like that.

The statistic is the largest two-sample t over all places that leave at least three values on each side, as of a
likelihood ratio for one change of a normal mean (Hawkins, JASA 72, 1977). Its noise is what is left beside that step
and one more, so that a change that was undone does not hide itself. Its null distribution is drawn for the length of
the series. Neighboring weeks resemble each other, and a test that ignores that cries wolf: of series with correlation
0.5 and 20 values, a plain one calls 38 in 100 a step. So the distribution is drawn for AR(1) series of several
correlations, and these weigh by how well they agree with the correlation that is left beside the steps; none counts for
one half before. Seeds are fixed: the same series gives the same answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np

FEWEST = 10
"""Values from which on a step is looked for: with fewer, none is clear enough among several series."""
SIDE = 3
"""Values on each side of a step, at least: fewer are an outlier."""
DRAWN = 2999
CORRELATIONS = tuple(k / 10 for k in range(10))
WEIGHTS = (0.5, *[0.5 / 9] * 9)
"""What each correlation weighs before the series is seen (a choice: half the series have none)."""


@dataclass(frozen=True)
class Step:
    """A step before the value number ``at``; ``p`` is the chance of one as clear somewhere in a series without any."""

    at: int
    p: float


def steps(values: Sequence[float], level: float, least: float) -> list[Step]:
    """The steps in their order, the clearest first looked for, then others on both sides of it.

    Args:
        values: in the order of time; scaled so that their noise is about even.
        level: chance of a false step that is accepted for the series.
        least: standard deviation that the noise has at least: rounded values may repeat.
    """
    return _within(list(map(float, values)), level, least, 0)


def _within(values: list[float], level: float, least: float, offset: int) -> list[Step]:
    if len(values) < FEWEST:
        return []
    found = clearest(values, least)
    if not found.p < level:
        return []
    before, after = values[: found.at], values[found.at :]
    return [
        *_within(before, level, least, offset),
        Step(found.at + offset, found.p),
        *_within(after, level, least, offset + found.at),
    ]


def clearest(values: Sequence[float], least: float) -> Step:
    """The clearest step of a series of at least FEWEST values, whether it is one or not."""
    import numpy as np

    held = np.asarray(values, float)
    nulls = _nulls(len(held))
    one = _scan(held[None], least)
    size, seen = float(one.size[0]), float(one.correlation[0])
    fit = [w * _density(seen, null.mean, null.spread) for w, null in zip(WEIGHTS, nulls, strict=True)]
    above = [1 + DRAWN - int(np.searchsorted(null.sizes, size)) for null in nulls]
    p = math.fsum(w * k for w, k in zip(fit, above, strict=True)) / (1 + DRAWN) / math.fsum(fit)
    return Step(int(one.at[0]), p)


class _Scanned(NamedTuple):
    """Of each row: how clear its clearest step is, the number of values before it, and the correlation of neighbors
    that is left beside it and a second step.
    """

    size: np.ndarray
    at: np.ndarray
    correlation: np.ndarray


def _scan(values: np.ndarray, least: float = 0.0) -> _Scanned:
    """The clearest step of each row, against the noise beside it and beside the next one: a change that was undone
    would else hide itself.
    """
    import numpy as np

    rows, n = values.shape
    centered = values - values.mean(axis=1, keepdims=True)
    sums = np.concatenate([np.zeros((rows, 1)), centered.cumsum(axis=1)], axis=1)
    whole = np.zeros((rows, 1), int), np.full((rows, 1), n)
    first, at = _best(sums, *whole)
    left, at_left = _best(sums, whole[0], at[:, None])
    right, at_right = _best(sums, at[:, None], whole[1])
    second, place = np.maximum(left, right), np.where(left >= right, at_left, at_right)
    within = np.maximum((centered**2).sum(axis=1) - first - second, (n - 3) * least**2 + 1e-300)
    size = np.sqrt(first * (n - 3) / within)
    edges = np.sort(np.stack([at, np.where(second > 0, place, at)], axis=1), axis=1)
    part = (np.arange(n) >= edges[:, :1]).astype(int) + (np.arange(n) >= edges[:, 1:])
    return _Scanned(size, at, _lag_one(centered, part))


def _best(sums: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the best step between ``low`` and ``high`` takes off the sum of squares of each row, and its place; 0 where
    there is no room for one. ``sums`` are of the values before each place.
    """
    import numpy as np

    k = np.arange(sums.shape[1])
    room = (k - low >= SIDE) & (high - k >= SIDE)
    before, after = np.where(room, k - low, 1), np.where(room, high - k, 1)
    base, top = np.take_along_axis(sums, low, 1), np.take_along_axis(sums, high, 1)
    gain = ((sums - base) / before - (top - sums) / after) ** 2 * before * after / (before + after)
    gain = np.where(room, gain, 0.0)
    place = gain.argmax(axis=1)
    return gain[np.arange(len(gain)), place], place


def _lag_one(values: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Correlation of neighbors, for each row, once the mean of each part is taken away; 0 without noise."""
    import numpy as np

    left = values.copy()
    for number in range(3):
        mine = part == number
        count = np.maximum(mine.sum(axis=1), 1)
        left -= np.where(mine, ((values * mine).sum(axis=1) / count)[:, None], 0.0)
    power = (left**2).sum(axis=1)
    return np.divide((left[:, 1:] * left[:, :-1]).sum(axis=1), power, out=np.zeros(len(values)), where=power > 1e-20)


@dataclass(frozen=True, eq=False)
class _Null:
    """Series without a step: ``sizes`` are largest abs(t) in ascending order; mean and standard deviation of the
    correlation that is left beside the clearest step.
    """

    sizes: np.ndarray
    mean: float
    spread: float


@lru_cache(maxsize=64)
def _nulls(n: int) -> tuple[_Null, ...]:
    """Drawn series of this length, for each of CORRELATIONS."""
    import numpy as np

    out = []
    for correlation in CORRELATIONS:
        one = _scan(_drawn(n, correlation))
        out.append(_Null(np.sort(one.size), float(one.correlation.mean()), float(one.correlation.std())))
    return tuple(out)


def _density(x: float, mean: float, spread: float) -> float:
    """Of a normal distribution, up to a constant; never 0."""
    return math.exp(-min(((x - mean) / spread) ** 2 / 2, 600.0)) / spread


def _drawn(n: int, correlation: float) -> np.ndarray:
    """Stationary AR(1) series of unit innovations, one a row."""
    import numpy as np

    out = np.random.default_rng((n, round(10 * correlation), DRAWN)).standard_normal((DRAWN, n))
    out[:, 0] /= math.sqrt(1 - correlation**2)
    for at in range(1, n):
        out[:, at] += correlation * out[:, at - 1]
    return out
