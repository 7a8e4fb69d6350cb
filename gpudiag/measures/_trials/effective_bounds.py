"""The least and the most trials at once, wherever the open ones ended."""

from __future__ import annotations

import numpy as np

from gpudiag.measures._time.concurrency import count_at
from gpudiag.measures._time.microseconds import distinct
from gpudiag.measures._time.weighted import weighted_sum

ROUNDING = 1e-12
HALVINGS = 24
"""Steps that find the least to 1e-7 of itself."""


def effective_bounds(
    start_us: np.ndarray, end_us: np.ndarray, first_us: np.ndarray, low_us: np.ndarray, high_us: np.ndarray
) -> tuple[float, float]:
    """Bounds of the sum of the lengths over the length of the union; NaN without any length.

    Closed trials run from `start_us` to `end_us`; open ones from `first_us` to somewhere in [`low_us`, `high_us`]. The
    least is reached; the most is reached where no more open trials go on after a time without any than before it.
    """
    times = distinct(start_us, end_us, first_us, low_us, high_us)
    held = np.diff(times)
    sure = count_at(times, np.concatenate([start_us, first_us]), np.concatenate([end_us, low_us]))[:-1]
    more = count_at(times, low_us, high_us)[:-1]
    bare = sure == 0
    lived, busy = weighted_sum(sure, held), float(held[~bare].sum())
    if not busy and not more.any():
        return float("nan"), float("nan")
    begin, stop = np.searchsorted(times, low_us), np.searchsorted(times, high_us)
    return _least(held, bare, begin, stop, lived, busy), _most(held, bare, more, lived, busy)


def _least(held: np.ndarray, bare: np.ndarray, begin: np.ndarray, stop: np.ndarray, lived: float, busy: float) -> float:
    """The ratio r at which no ends bring lived - r * busy below zero: found by halving, since that falls with r."""
    order = np.argsort(begin, kind="stable")

    def below(ratio: float) -> bool:
        worth = np.concatenate([[0.0], np.cumsum((ratio * bare - 1) * held)])
        return lived * (1 + ROUNDING) - ratio * busy < _best_gain(worth, begin[order], stop[order])

    low, high = 1.0, max(lived / busy, 1.0) if busy else 1.0
    if not below(high):
        return high
    for _ in range(HALVINGS):
        ratio = (low + high) / 2
        low, high = (low, ratio) if below(ratio) else (ratio, high)
    return low


def _best_gain(worth: np.ndarray, begin: np.ndarray, stop: np.ndarray) -> float:
    """Most that living on brings; `worth` sums up to each time. Two never need to live on at once: what the earlier
    one covers, the later one covers too.
    """
    best = np.zeros(len(worth))
    for i, j in zip(begin, stop, strict=True):
        np.maximum.accumulate(best[: i + 1], out=best[: i + 1])
        np.maximum(best[i : j + 1], best[i] + worth[i : j + 1] - worth[i], out=best[i : j + 1])
    return float(best.max())


def _most(held: np.ndarray, bare: np.ndarray, more: np.ndarray, lived: float, busy: float) -> float:
    """Open trials live on wherever another runs anyway, and elsewhere where more of them do than the mean."""
    lived += float((more * held)[~bare].sum())
    alone = np.flatnonzero(bare & (more > 0))
    alone = alone[np.argsort(-more[alone], kind="stable")]
    all_lived = lived + np.concatenate([[0.0], np.cumsum((more * held)[alone])])
    all_busy = busy + np.concatenate([[0.0], np.cumsum(held[alone])])
    return float((all_lived[all_busy > 0] / all_busy[all_busy > 0]).max())
