"""Attempts of one run, as a requeued job has them, or jobs in a row: between two, no job held the GPUs.

An attempt is over where recordings of other GPUs begin only behind the end of all before (a job on other nodes), and
where a job ended, as its log or the scheduler says, or a process died that was resumed later, or all steps were done
before another training began, and no GPU was sampled until then. So is a session of a search resumed later: no trial
ran, and no GPU was sampled, for an hour. So is a recording without trials at whose end no process had a GPU, as at the
beginning of the next. In any other gap in telemetry the GPUs count as held and as not observed: a recorder may have
failed while the job ran.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np

from gpudiag.measures._time.microseconds import LONG_AGO, NEVER, SECOND_US
from gpudiag.measures._time.timeline import Intervals
from gpudiag.spans import PAUSE_S, SILENCE_S, Window, overlap

RESTART_S = 60.0
"""A shorter silence is a recorder that was slow (a default without a published source)."""


@dataclass(frozen=True)
class Attempts:
    """``pauses``: from the end of an attempt to the start of the next, in order; ``of_gpu``: the attempts, from 0, in
    which each GPU was sampled.
    """

    pauses: tuple[Window, ...] = ()
    of_gpu: Mapping[str, Sequence[bool]] = field(default_factory=dict)

    def held(self, gpu: str, windows: Sequence[Window]) -> list[Window]:
        """What of the windows lies in attempts that had the GPU; all of them for one that was never sampled."""
        if not self.pauses or gpu not in self.of_gpu:
            return list(windows)
        edges = [LONG_AGO, *chain.from_iterable(self.pauses), NEVER]
        own = [span for span, mine in zip(pairwise(edges), _beside_pauses(self.of_gpu[gpu]), strict=True) if mine]
        return overlap(windows, own)

    def by_attempt(self, gpus: Sequence[str]) -> list[list[str]]:
        """Those of the GPUs that each attempt had, with all that were never sampled."""
        everywhere = [True] * (len(self.pauses) + 1)
        return [[gpu for gpu in gpus if self.of_gpu.get(gpu, everywhere)[at]] for at in range(len(everywhere))]


class Activity(NamedTuple):
    """When trainings are known to have run: ``start_us`` and ``end_us`` of trials, or moments of steps; and when jobs
    are known to have ended.
    """

    start_us: np.ndarray
    end_us: np.ndarray
    job_ends_us: np.ndarray

    def ordered(self) -> Activity:
        """In order of start."""
        order = np.argsort(self.start_us, kind="stable")
        return Activity(self.start_us[order], self.end_us[order], np.sort(self.job_ends_us))


def find_attempts(
    recorded: Mapping[str, tuple[np.ndarray, np.ndarray]],
    activity: Activity,
    trials: Intervals | None = None,
    is_free: Callable[[int, int], bool] = lambda low, high: False,
) -> Attempts:
    """By the stretches (start and end) that each GPU was sampled in, and by what is known of jobs and trainings.
    ``trials``: all that ran, those without an end until they most likely ended; None where their clock is not known.
    ``is_free``: whether no process had a GPU at both ends of a silence, and nothing ran in it by what is logged.
    """
    if not recorded:
        return Attempts()
    first = np.sort([start[0] for start, _ in recorded.values()])
    last = np.sort([end[-1] for _, end in recorded.values()])
    silences, activity = _silences(recorded), activity.ordered()
    reached = np.append(LONG_AGO, np.maximum.accumulate(activity.end_us))  # by what had begun, from nothing on
    others = np.searchsorted(first, silences[:, 1]) == np.searchsorted(last, silences[:, 0], "right")
    # Of each end the first silence that is not over by then.
    behind = np.unique(np.searchsorted(silences[:, 1], activity.job_ends_us, "right"))
    asked = np.union1d(np.flatnonzero(others), behind[behind < len(silences)])
    found = {at: _pause(silences[at].tolist(), activity, reached, others=bool(others[at])) for at in asked.tolist()}
    rests = _rests(silences.tolist(), activity, trials) if trials is not None and len(trials.start_us) else {}
    known = rests | {at: pause for at, pause in found.items() if pause is not None}
    if trials is None:
        known = _between_recordings(silences.tolist(), is_free) | known
    pauses = [known[at] for at in sorted(known)]
    borders = np.array([low for low, _ in pauses], np.int64)
    of_gpu = {}
    for gpu, (start, _) in recorded.items():
        mine = np.zeros(len(pauses) + 1, bool)
        mine[np.searchsorted(borders, start)] = True
        of_gpu[gpu] = mine.tolist()
    return Attempts(tuple(pauses), of_gpu)


def stretches_seen(start_us: np.ndarray, end_us: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cells of one GPU as stretches without a gap."""
    fresh = np.append(True, start_us[1:] > end_us[:-1])[: len(start_us)]
    return start_us[fresh], end_us[np.append(fresh[1:], True)[: len(end_us)]]


def _beside_pauses(mine: Sequence[bool]) -> list[bool]:
    """Attempts and the pauses between them: no GPU is held in a pause."""
    return list(chain.from_iterable((own, False) for own in mine))[:-1]


def _silences(recorded: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Start and end of each time between samples in which no GPU was sampled."""
    start, end = (np.concatenate([stretches[i] for stretches in recorded.values()]) for i in (0, 1))
    order = np.argsort(start, kind="stable")
    start, reached = start[order], np.maximum.accumulate(end[order])
    at = np.flatnonzero(start[1:] > reached[:-1])
    return np.stack([reached[at], start[at + 1]], axis=1)


def _pause(silence: Sequence[int], activity: Activity, reached: np.ndarray, *, others: bool) -> Window | None:
    """What of a silence lies between two attempts: from the end of a job, if that is known, else the longest time in
    it in which nothing is known to have run. None where the job may have gone on.
    """
    low, high = silence
    begins, ended = activity.start_us, int(np.searchsorted(activity.job_ends_us, high))
    if ended:
        end = int(activity.job_ends_us[ended - 1])
        since = max(low, end)
        after = np.searchsorted(begins, (end, since), "right").tolist()
        until = min(high, int(begins[after[1]]) if after[1] < len(begins) else NEVER)
        if after[0] == after[1] and reached[after[1]] <= since < until:
            return since, until
    return _longest_free(low, high, activity) if others else None


def _rests(silences: Sequence[Sequence[int]], activity: Activity, trials: Intervals) -> dict[int, Window]:
    """By place of the silence the time in it between two sessions of a search, as trials before and behind it show."""
    first, last = int(trials.start_us.min()), int(trials.start_us.max())
    start, end = (np.append(*both) for both in ((activity.start_us, trials.start_us), (activity.end_us, trials.end_us)))
    everything = Activity(start, end, activity.job_ends_us)
    out = {}
    for at, (low, high) in enumerate(silences):
        free = _longest_free(low, high, everything) if high - low >= PAUSE_S * SECOND_US else None
        if free is not None and free[1] - free[0] >= PAUSE_S * SECOND_US and first < free[0] and last >= free[1]:
            out[at] = free
    return out


def _between_recordings(silences: Sequence[Sequence[int]], is_free: Callable[[int, int], bool]) -> dict[int, Window]:
    """By place the silences of a minute and more in which nothing ran; those of a night part sessions."""
    return {
        at: (low, high)
        for at, (low, high) in enumerate(silences)
        if RESTART_S * SECOND_US <= high - low <= SILENCE_S * SECOND_US and is_free(low, high)
    }


def _longest_free(low: int, high: int, activity: Activity) -> Window | None:
    meets = (activity.start_us < high) & (activity.end_us > low)
    order = np.argsort(activity.start_us[meets], kind="stable")
    start = np.append(activity.start_us[meets][order], high)
    reached = np.maximum.accumulate(np.append(low, activity.end_us[meets][order]))
    longest = int(np.argmax(start - reached))
    return (int(reached[longest]), int(start[longest])) if start[longest] > reached[longest] else None
