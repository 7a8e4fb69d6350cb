"""Who took which trial next: gaps between trials, and how many workers there were when."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpudiag.measures._time.microseconds import SECOND_US
from gpudiag.measures._time.window import TimedTrials
from gpudiag.run import Run

LONGEST_GAP_S = 600.0
"""A worker that took nothing for longer had stopped: an interruption, which no forecast of throughput holds
(a default without a published source)."""


@dataclass(frozen=True, eq=False)
class Handover:
    """``gap_s`` of each trial that a worker took after another. ``workers_us``: when the number of workers changes,
    ``workers``: the number from then on. Interruptions are left out of both.
    """

    gap_s: np.ndarray
    workers_us: np.ndarray
    workers: np.ndarray

    def worker_s(self, low_us: float, high_us: float) -> np.ndarray:
        """Seconds from ``low_us`` to ``high_us`` with 0, 1, 2 ... workers."""
        edges = np.clip(np.append(self.workers_us, max(high_us, self.workers_us[-1])), low_us, high_us)
        return np.bincount(self.workers, np.diff(edges) / SECOND_US)

    def workers_at(self, times_us: np.ndarray) -> np.ndarray:
        """The number of workers at each time."""
        place = np.searchsorted(self.workers_us, times_us, "right") - 1
        return np.where(place >= 0, self.workers[place], 0)

    def periods(self, workers: int) -> tuple[np.ndarray, np.ndarray]:
        """Begins and ends of the stretches with that many workers."""
        held = self.workers[:-1] == workers
        return self.workers_us[:-1][held], self.workers_us[1:][held]

    @property
    def usual(self) -> int:
        """The number of workers that most of the time had."""
        return int(self._seconds().argmax())

    @property
    def most(self) -> int:
        """The greatest number of workers that a twentieth of the time had: beyond it, forecasts extrapolate."""
        seconds = self._seconds()
        return int(np.flatnonzero(seconds >= 0.05 * seconds.sum()).max())

    def _seconds(self) -> np.ndarray:
        seconds = self.worker_s(self.workers_us[0], self.workers_us[-1])
        seconds[0] = 0
        return seconds


def handovers(run: Run, trials: TimedTrials) -> Handover:
    """Match each start with the end before it: of the same worker where workers are recorded, else the latest one.

    Trials without an end are left out: nobody knows how long they held their worker. With the latest end the mean gap
    is right while workers come and go, because ends of workers that stopped stay unmatched.
    """
    order = np.argsort(trials.start_us, kind="stable")
    order = order[~trials.rows["open"].to_numpy()[order]]
    start, end = trials.start_us[order], trials.end_us[order]
    before = _same_worker(run, trials, order) if _has_workers(run, trials) else _latest_end(start, end)
    gap_us = np.where(before >= 0, start - np.append(end, 0)[before], -1)
    near = (before >= 0) & (gap_us >= 0) & (gap_us <= LONGEST_GAP_S * SECOND_US)
    held_from = np.where(near, start - gap_us, start)
    times, number = np.unique(np.concatenate([held_from, end]), return_inverse=True)
    change = np.zeros(len(times), np.int64)
    np.add.at(change, number[: len(start)], 1)
    np.add.at(change, number[len(start) :], -1)
    # A trial taken over at once changes nothing; the last timestamp, where nobody works any more, always stays.
    changes = np.flatnonzero(change)
    return Handover(gap_us[near] / SECOND_US, times[changes], np.cumsum(change)[changes])


def _has_workers(run: Run, trials: TimedTrials) -> bool:
    return "worker" in run.trials and bool(run.trials["worker"].iloc[trials.rows.index].notna().all())


def _same_worker(run: Run, trials: TimedTrials, order: np.ndarray) -> np.ndarray:
    """Position of the trial before on the same worker, -1 for none; in order of start."""
    names = run.trials["worker"].iloc[trials.rows.index].astype(str).to_numpy()[order]
    last: dict[str, int] = {}
    out = np.full(len(order), -1)
    for place, name in enumerate(names.tolist()):
        out[place] = last.get(name, -1)
        last[name] = place
    return out


def _latest_end(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Position of the unmatched trial that ended last before each start, -1 for none; each is matched once."""
    out = np.full(len(start), -1)
    ends = np.argsort(end, kind="stable").tolist()
    free: list[int] = []
    place = 0
    for i, now in enumerate(start.tolist()):
        while place < len(ends) and end[ends[place]] <= now:
            free.append(ends[place])
            place += 1
        if free:
            out[i] = free.pop()
    return out
