"""How many intervals are open at each instant, and which worker each would take."""

from __future__ import annotations

import heapq

import numpy as np


def count_at(times_us: np.ndarray, start_us: np.ndarray, end_us: np.ndarray) -> np.ndarray:
    """Number of half-open intervals [start, end) that hold each time.

    Ends count before starts at equal timestamps, so a hand-over is not an overlap, and an interval
    without length holds no time at all.
    """
    begun = np.searchsorted(np.sort(start_us), times_us, "right")
    ended = np.searchsorted(np.sort(end_us), times_us, "right")
    return (begun - ended).astype(np.int64)


def busy_stretches(start_us: np.ndarray, end_us: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Left and right borders of the stretches of time with at least one interval, in order."""
    times = np.unique(np.concatenate([start_us, end_us]))
    busy = np.concatenate([[0], count_at(times, start_us, end_us) > 0]).astype(np.int8)
    turn = np.diff(busy)
    return times[turn == 1], times[turn == -1]


def fifo_workers(start_us: np.ndarray, end_us: np.ndarray) -> np.ndarray:
    """Worker (0-based) of each interval; the intervals must be sorted by start.

    Each takes the worker that has been free for longest, or a new one; the number of workers is then the
    peak of the concurrency. METHODS 4 measured that this order gives the right mean gap. An interval
    without length takes no new worker where there is one already.
    """
    free: list[tuple[int, int]] = []
    out = np.zeros(len(start_us), np.int64)
    n_workers = 0
    for i, (start, end) in enumerate(zip(start_us.tolist(), end_us.tolist(), strict=True)):
        if free and (free[0][0] <= start or (end == start)):
            freed, worker = heapq.heappop(free)
            heapq.heappush(free, (max(end, freed), worker))
        else:
            worker = n_workers
            n_workers += 1
            heapq.heappush(free, (end, worker))
        out[i] = worker
    return out
