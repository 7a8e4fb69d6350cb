"""How many intervals are open at each instant, and which worker each would take."""

from __future__ import annotations

import bisect
import heapq

import numpy as np

from gpudiag.measures._time.microseconds import SECOND_US
from gpudiag.measures._time.trial_intervals import HANDOVER_US


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
    some = end_us > start_us  # one without length holds no time
    order = np.argsort(start_us[some], kind="stable")
    start, until = start_us[some][order], np.maximum.accumulate(end_us[some][order])
    apart = start[1:] > until[:-1]
    return start[np.append(True, apart)[: len(start)]], until[np.append(apart, True)[: len(start)]]


USUAL_WAITS = 10
"""A worker that has been free for longer than this many times the median wait (and for SHORT_US) waits for something
else than its next trial, if it has not left."""
SHORT_US = 5 * SECOND_US
OVERLAP_SHARE = 0.1
OVERLAP_US = 300 * SECOND_US
"""Of both intervals, and at most five minutes: what overlaps by no more may have taken over where nobody was free, as
the next job does while the one before cleans up. A worker more would have waited for nearly all of the run."""


def assign_workers(start_us: np.ndarray, end_us: np.ndarray, most_us: int = HANDOVER_US) -> np.ndarray:
    """Worker (0-based) of each interval; the intervals must be sorted by start.

    Each takes, of the workers that became free a usual wait ago or less, the one that did so first; if there is none,
    the one that did so last; if none is free, the one that is about to be (by OVERLAP_SHARE and
    ``most_us``), else a new one. So the number of workers is the peak of the concurrency, hand-overs aside, and nothing
    runs any more on as many as have left. An interval without length takes no new worker where there is one.
    """
    if (start_us[1:] >= end_us[:-1]).all():
        return np.zeros(len(start_us), np.int64)  # one after the other
    latest, waits = _assigned(start_us, end_us, 0, most_us)
    if not len(waits):
        return latest
    return _assigned(start_us, end_us, max(SHORT_US, int(USUAL_WAITS * np.median(waits))), most_us)[0]


def _assigned(start_us: np.ndarray, end_us: np.ndarray, usual_us: int, most_us: int) -> tuple[np.ndarray, list[int]]:
    """Workers, and how long each interval that took one over found it free."""
    running: list[tuple[int, int]] = []
    free: list[tuple[int, int]] = []  # in order of time
    out, began = [0] * len(start_us), [0] * len(start_us)
    waits: list[int] = []
    n_workers = 0
    for i, (start, end) in enumerate(zip(start_us.tolist(), end_us.tolist(), strict=True)):
        while running and running[0][0] <= start:
            free.append(heapq.heappop(running))
        if free:
            place = bisect.bisect_left(free, (start - usual_us, 0))
            freed, worker = free.pop(min(place, len(free) - 1))
            waits.append(start - freed)
        elif running and end == start:
            out[i] = running[0][1]
            continue
        elif running and _hands_over(began[running[0][1]], running[0][0], start, end, most_us):
            _, worker = heapq.heappop(running)
        else:
            worker = n_workers
            n_workers += 1
        heapq.heappush(running, (end, worker))
        out[i], began[worker] = worker, start
    return np.array(out, np.int64), waits


def _hands_over(began: int, ends: int, start: int, end: int, most_us: int) -> bool:
    """Whether one that begins shortly before another ends may well follow it."""
    return ends < end and ends - start <= min(most_us, OVERLAP_SHARE * min(ends - began, end - start))
