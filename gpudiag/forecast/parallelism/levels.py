"""How busy a GPU is with so many trials in training, where nobody records when a trial's training begins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpudiag.measures._time.concurrency import assign_workers
from gpudiag.measures._time.microseconds import SECOND_US
from gpudiag.measures._time.timeline import Intervals, Samples

LOOK_BACK_US = SECOND_US // 2
"""utilization.gpu is the mean of up to a second before its timestamp."""
MAX_SAMPLES = 200_000


@dataclass(frozen=True, eq=False)
class Levels:
    """The normal equations of utilization on the probability of 0, 1, 2 ... trials in training, weighted by seconds.

    ``gram`` (n, levels, levels) and ``moment`` (n, levels) for n blocks of time, or n resampled logs. Solving them
    gives the busy share by level. The sum of a row of ``gram`` is the expected number of seconds at that level.
    """

    gram: np.ndarray
    moment: np.ndarray

    @classmethod
    def empty(cls, n: int, levels: int) -> Levels:
        """Nothing observed."""
        return cls(np.zeros((n, levels, levels)), np.zeros((n, levels)))

    @property
    def seen_s(self) -> np.ndarray:
        """Expected seconds at each level, shape (n, levels)."""
        return np.asarray(self.gram.sum(axis=2))

    def pick(self, blocks: np.ndarray) -> Levels:
        """The sums over some blocks; ``blocks`` (logs, number) are positions, and each row makes one log."""
        return Levels(self.gram[blocks].sum(axis=1), self.moment[blocks].sum(axis=1))

    def rows(self, which: slice) -> Levels:
        """Some of the logs."""
        return Levels(self.gram[which], self.moment[which])

    def __add__(self, other: Levels) -> Levels:
        return Levels(self.gram + other.gram, self.moment + other.moment)


def measure_levels(
    samples: Samples,
    intervals: Intervals,
    startup_s: np.ndarray,
    spread_s: np.ndarray,
    edges_us: np.ndarray,
    levels: int,
) -> Levels:
    """Read one GPU's samples, in the blocks between ``edges_us``.

    A trial trains from its start-up on: its own where it was seen (``startup_s``, NaN unseen), else one of ``spread_s``
    (sorted), each as likely as the next. At each sample the number in training then has a distribution, not a value.
    """
    every = max(1, -(-len(samples.time_us) // MAX_SAMPLES))
    known = np.flatnonzero(~np.isnan(samples.value))[::every]
    at = samples.time_us[known] - LOOK_BACK_US
    weight = every * (samples.end_us - samples.start_us)[known] / SECOND_US
    chance = _chance_by_level(at, intervals, startup_s, spread_s, levels)
    block = np.searchsorted(edges_us, at, "right")
    out = Levels.empty(len(edges_us) + 1, levels)
    for index in range(len(edges_us) + 1):
        part = chance[block == index]
        weighted = part * weight[block == index][:, None]
        out.gram[index] = weighted.T @ part
        out.moment[index] = weighted.T @ (samples.value[known][block == index] / 100)
    return out


def _chance_by_level(
    at: np.ndarray, intervals: Intervals, startup_s: np.ndarray, spread_s: np.ndarray, levels: int
) -> np.ndarray:
    """Probability of each number of trials in training at each time, shape (times, levels); the last holds more too."""
    order = np.lexsort((intervals.end_us, intervals.start_us))
    start, end, own = intervals.start_us[order], intervals.end_us[order], startup_s[order]
    worker = assign_workers(start, end)
    out = np.zeros((len(at), levels))
    out[:, 0] = 1.0
    for index in range(int(worker.max()) + 1 if len(worker) else 0):
        held = worker == index
        trial = np.searchsorted(start[held], at, "right") - 1
        inside = (trial >= 0) & (at < np.append(end[held], 0)[trial])
        age_s = np.where(inside, (at - np.append(start[held], 0)[trial]) / SECOND_US, -1.0)
        seen = np.append(own[held], np.nan)[trial]
        likely = np.searchsorted(spread_s, age_s, "right") / len(spread_s)
        trains = np.where(inside, np.where(np.isnan(seen), likely, age_s >= seen), 0.0)
        top = out[:, -1] * trains
        out[:, 1:] = out[:, 1:] * (1 - trains)[:, None] + out[:, :-1] * trains[:, None]
        out[:, 0] *= 1 - trains
        out[:, -1] += top
    return out
