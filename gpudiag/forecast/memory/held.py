"""What a worker's process holds between its trials: a CUDA context and work space that no trial's end frees.

Where one process runs many trials, M(t) = b + c W(t) + sum of m_i(t), with W workers that have run a trial. An end
frees m_i alone, while the trial needs m_i + c with a worker of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gpudiag.forecast.memory.expectation import Board
from gpudiag.forecast.memory.signal import Memory
from gpudiag.measures._time.concurrency import assign_workers
from gpudiag.measures._time.microseconds import SECOND_US
from gpudiag.measures._time.weighted import weighted_quantiles

Array = np.ndarray

LEAST_MIB = 150.0
"""Less than any CUDA context (300 to 600 MiB, METHODS 6; 817 MiB with work space for PyTorch on an H100)."""
FEWEST_LEVELS = 2.0
"""Levels that must tell of it, each counted as far as growth leaves it certain (Kish's effective number)."""
NOISE_MIB = 50.0
MOST_SPREAD, CLOSE = 0.35, 0.05
"""Of what levels show of it, as a share: how far they may scatter, and how near the lowest level must come to it."""


@dataclass(frozen=True)
class Held:
    """``mib`` of one worker's process; 0 where every trial has its own. ``workers`` (n_readings,): how many hold it.
    ``leaves`` (n_trials,): the last trial of a worker. ``added_mib`` (n_trials,): what a trial holds beside what its
    end frees, ``open_mib`` how much more at most.
    """

    mib: float
    workers: Array
    leaves: Array
    added_mib: Array
    open_mib: Array

    def taken_off(self, memory: Memory) -> Memory:
        """The readings without it. With the last trial of a worker its process ends too, or a while later."""
        return replace(
            memory, used_mib=memory.used_mib - self.mib * self.workers, end_sd_mib=self.mib / 2 * self.leaves
        )


def held_by_workers(memory: Memory, board: Board) -> Held:
    """From levels before ends, less what the trials that run then free later, and from the lowest level.

    All workers together never hold less than their processes. Where that leaves room for a context and levels do not
    tell, what a worker holds is open up to it.
    """
    stay, gone, first, last = _warm_workers(memory, board)
    workers, none = stay + gone / 2, np.zeros(len(first))
    left = (memory.used_mib[stay > 0] - board.baseline_mib) / stay[stay > 0]
    lowest = max(float(left.min()), 0.0) if len(left) else 0.0
    shown, sd = _levels_left(board, stay)
    if not lowest >= LEAST_MIB or not len(shown):
        return Held(0.0, workers, last, none, none)
    weight = 1 / (sd + NOISE_MIB) ** 2
    (usual,) = weighted_quantiles(shown, weight, [0.5])
    scatter = 1.4826 * float(np.median(np.abs(shown - usual)))
    certain = float(weight.sum() ** 2 / (weight**2).sum()) >= FEWEST_LEVELS
    if certain and abs(usual - lowest) <= CLOSE * lowest and scatter <= MOST_SPREAD * usual:
        return Held(lowest, workers, last & ~first, lowest * ~first, none)
    return Held(0.0, workers, last, none, none if certain and usual < LEAST_MIB else none + lowest)


def _warm_workers(memory: Memory, board: Board) -> tuple[Array, Array, Array, Array]:
    """By reading the workers that have ended a trial and go on, and those that have ended their last; by trial whether
    it is the first, and the last, of a worker.
    """
    at = board.steps.end_pair
    # An end that no reading shows is written a little early.
    gone_at = np.where(at >= 0, at, np.searchsorted(memory.time_s, memory.end_s)) + 1
    start_us, end_us = ((part * SECOND_US).astype(np.int64) for part in (memory.start_s, memory.end_s))
    lane = assign_workers(start_us, end_us)
    warmed, left = np.zeros((2, len(memory.time_s) + 2))
    first, last = np.zeros((2, len(lane)), bool)
    for number in range(int(lane.max(initial=-1)) + 1):
        own = np.flatnonzero(lane == number)
        own = own[np.argsort(memory.start_s[own], kind="stable")]
        first[own[0]] = last[own[-1]] = True
        if len(own) > 1:
            for trial, change in ((own[0], warmed), (own[-1], left)):
                change[gone_at[trial]] += 1
    gone = np.cumsum(left[:-2])
    return np.cumsum(warmed[:-2]) - gone, gone, first, last


def _levels_left(board: Board, workers: Array) -> tuple[Array, Array]:
    """Levels before ends, less the baseline and what trials hold by what their ends free, for one of the workers; and
    how far each may be off because trials grow earlier or later than others (standard deviation, MiB).
    """
    steps = board.steps
    fall = np.maximum(steps.fall_mib[steps.trial], 0.0)
    share = np.where(steps.ends, 1.0, board.growth.share(steps.young_s))
    n = len(steps.change_mib)
    held = np.bincount(steps.step, share * fall, n)  # NaN where the fall of one is not known
    rough = np.sqrt(np.bincount(steps.step, share * (1 - share) * fall**2, n))
    pair = np.full(n, -1)
    ended = np.flatnonzero(steps.end_step >= 0)
    pair[steps.end_step[ended]] = steps.end_pair[ended]
    used = steps.falls & ~steps.blind & (pair >= 0) & np.isfinite(held)
    used[used] &= workers[pair[used]] > 0
    left = steps.above_mib - board.baseline_mib - held
    return left[used] / workers[pair[used]], rough[used] / workers[pair[used]]
