"""Which worker each trial ran on, and how many workers there were."""

from __future__ import annotations

import numpy as np

from gpudiag._run.worker_names import are_workers
from gpudiag.measures._time.concurrency import OVERLAP_US, USUAL_WAITS, assign_workers, busy_stretches, count_at
from gpudiag.measures._time.microseconds import NEVER, SECOND_US, distinct
from gpudiag.measures._time.trial_intervals import HANDOVER_US
from gpudiag.spans import PAUSE_S, held_within

HELD_PCT = 5.0
"""A number of workers that holds for less of the run is a worker that comes a little later or goes earlier."""


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
    its last end, but where it is away.

    It is away where it has no trial for PAUSE_S or more, and much longer than usual, in HELD_PCT of the run or more.
    Left out are numbers that hold for less than HELD_PCT of the run; where none holds so long, all but the longest.
    """
    first, last = _stays(start_us, end_us, worker)
    times = distinct(first, last)
    number = count_at(times, first, last)
    held = _passed(start_us, end_us, times[:-1], times[1:], number[:-1])
    keep = np.append(held >= min(HELD_PCT / 100, held.max(initial=0.0)), len(times) == 1)
    times, number = times[keep], number[keep]
    changed = np.diff(number, prepend=-1) != 0
    return times[changed], number[changed]


def _stays(start_us: np.ndarray, end_us: np.ndarray, worker: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """From when to when a worker was there, for each time that one was. Whoever finds no more trials has not left."""
    order = np.lexsort((start_us, worker))
    start, end, name = start_us[order], end_us[order], worker[order]
    new = np.append(True, name[1:] != name[:-1])
    latest = np.concatenate([np.maximum.accumulate(own) for own in np.split(end, np.flatnonzero(new)[1:])])
    waits_us = start[1:] - latest[:-1]
    usual_us = float(np.median(waits_us[~new[1:]])) if not new[1:].all() else 0.0
    away = waits_us >= max(PAUSE_S * SECOND_US, USUAL_WAITS * usual_us)
    away &= _passed(start_us, end_us, latest[:-1], start[1:], 0) >= HELD_PCT / 100
    begins = np.flatnonzero(new | np.append(False, away))
    first, last = start[begins], latest[np.append(begins[1:], len(end)) - 1]
    left = len(start_us) - np.searchsorted(np.sort(start_us), last)
    return first, np.where((left < new.sum()) & np.append(new[begins[1:]], True), last.max(), last)


def _passed(
    start_us: np.ndarray, end_us: np.ndarray, since_us: np.ndarray, until_us: np.ndarray, first: np.ndarray | int
) -> np.ndarray:
    """How much of a run lies between two times: of the time in which any trial ran, or of the starts; the greater.

    ``first``: of the starts, how many are those with which workers come.
    """
    busy_since, busy_until = busy_stretches(start_us, end_us)
    held_us = held_within(since_us, until_us, busy_since, busy_until)
    began = np.searchsorted(np.sort(start_us), until_us) - np.searchsorted(np.sort(start_us), since_us) - first
    return np.asarray(np.maximum(held_us / max((busy_until - busy_since).sum(), 1), began / len(start_us)))
