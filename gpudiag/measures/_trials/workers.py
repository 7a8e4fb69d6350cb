"""Which worker each trial ran on, and how many workers there were."""

from __future__ import annotations

import numpy as np

from gpudiag._run.worker_names import are_workers
from gpudiag.measures._time.concurrency import OVERLAP_US, assign_workers, count_at
from gpudiag.measures._time.microseconds import NEVER, distinct
from gpudiag.measures._time.trial_intervals import HANDOVER_US

HELD_PCT = 5.0
"""A number of workers that holds for less of the time is a worker that comes a little later or goes earlier."""


def workers_of(start_us: np.ndarray, end_us: np.ndarray, names: np.ndarray) -> np.ndarray:
    """Worker (0-based, by first start) of each interval, sorted by start: by name where every one has one.

    A name that runs several trials at once is several workers. Without names see :func:`assign_workers`.
    """
    if not are_workers(names):
        return assign_workers(start_us, end_us, OVERLAP_US)
    out = np.zeros(len(start_us), np.int64)
    n_workers = 0
    for name in dict.fromkeys(names.tolist()):
        own = np.flatnonzero(names == name)
        start = start_us[own]
        late = np.append(start[1:], NEVER)
        end = np.where(end_us[own] - late <= HANDOVER_US, np.minimum(end_us[own], late), end_us[own])
        worker = assign_workers(start, end, OVERLAP_US)
        out[own] = n_workers + worker
        n_workers += int(worker.max()) + 1
    return out


def workers_over_time(start_us: np.ndarray, end_us: np.ndarray, worker: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Times (µs) from which on a number of workers holds, and the numbers: a worker is there from its first start to
    its last end. Left out are numbers that hold for less than HELD_PCT of the time.
    """
    order = np.argsort(worker, kind="stable")
    of_one = np.flatnonzero(np.diff(worker[order], prepend=np.nan) != 0)
    first, last = np.minimum.reduceat(start_us[order], of_one), np.maximum.reduceat(end_us[order], of_one)
    left = len(start_us) - np.searchsorted(np.sort(start_us), last)
    last = np.where(left < len(first), last.max(), last)
    times = distinct(first, last)
    number = count_at(times, first, last)
    held = np.diff(times, append=times[-1]) >= HELD_PCT / 100 * (times[-1] - times[0])
    times, number = times[held], number[held]
    new = np.diff(number, prepend=-1) != 0
    return times[new], number[new]
