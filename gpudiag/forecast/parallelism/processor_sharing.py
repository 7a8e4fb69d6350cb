"""Workers that share GPUs, re-simulated: many futures at once, each with its own trials and its own speeds.

A trial is a pause and a start-up that no other trial slows down, then work that proceeds at the speed that the number
of training trials on its GPU allows (METHODS 10). The arrays of all futures move together from event to event.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gpudiag.forecast.parallelism.assignment import Policy, choose_gpu
from gpudiag.forecast.parallelism.placement import Placement, gpu_of_workers

TICK_EVENTS = 64


@dataclass(frozen=True)
class Futures:
    """``throughput_h`` (trials per hour) and ``busy_pct`` (mean over GPUs) of each future, shape (n_futures,)."""

    throughput_h: np.ndarray
    busy_pct: np.ndarray


@dataclass(frozen=True)
class Draws:
    """What happens in each future, shape (n_futures, n_trials): seconds before the work and solo seconds of work.

    ``memory_mib`` is each trial's peak, for assignment by memory alone.
    """

    pause_s: np.ndarray
    work_s: np.ndarray
    memory_mib: np.ndarray | None = None


def resimulate(
    draws: Draws,
    busy: np.ndarray,
    placed: Placement,
    *,
    policy: Policy = "round robin",
    loss: float = 0.0,
    tick: Callable[[], None] = lambda: None,
) -> Futures:
    """Run the workers ``placed`` on GPUs over the trials of each future.

    ``busy`` (n_futures, levels): busy share of a GPU with 0, 1, 2 ... training trials; beyond the last it stays. A
    trial's speed at level j is busy[j] / (j busy[1]), times (1 - ``loss``)^(j - 1). Workers go on with the first trials
    again until all have ended under full load, so that neither the beginning nor the end distorts: throughput = workers
    / mean cycle (Little's law), over all trials but the first of each worker. ``tick`` is called now and then and may
    raise to cancel.
    """
    n_futures, n_trials = draws.work_s.shape
    workers = sum(placed)
    first = min(workers, n_trials - 1)
    state = _State.fresh(draws, placed)
    speeds = _speeds(busy, workers) * (1.0 - loss) ** np.maximum(np.arange(workers + 1) - 1, 0)
    reached = np.column_stack([busy, np.repeat(busy[:, -1:], max(0, workers + 1 - busy.shape[1]), axis=1)])
    row = np.arange(n_futures)
    speed_at, reached_at = (row[:, None] * table.shape[1] for table in (speeds, reached))
    speeds, reached = speeds.ravel(), reached.ravel()
    counted = np.zeros(n_futures, np.int64)
    cycles = np.zeros(n_futures)
    active = np.zeros(n_futures)
    lasted = np.zeros(n_futures)
    events = 0
    while (going := counted < n_trials - first).any():
        if events % TICK_EVENTS == 0:
            tick()
        events += 1
        rate = np.where(state.trains, speeds[speed_at + state.training[state.gpu]], 1.0)
        wait = state.left / rate
        next_at = state.first + wait.argmin(axis=1)
        step = wait.ravel()[next_at]
        passed = np.where(going, step, 0.0)
        lasted += passed
        active += passed * (reached[reached_at + state.training.reshape(n_futures, -1)].sum(axis=1) / len(placed))
        state.now += step
        state.left -= rate * step[:, None]
        ends = state.trains.ravel()[next_at]
        state.begin(row[~ends], next_at[~ends], draws)
        done, at = row[ends], next_at[ends]
        number = state.number[at]
        new = (number >= first) & (number < n_trials)
        cycles[done[new]] += (state.now[done] - state.since[at])[new]
        counted[done[new]] += 1
        state.take(done, at, draws, policy)
    return Futures(3600.0 * workers * counted / cycles, 100.0 * active / lasted)


def _speeds(busy: np.ndarray, workers: int) -> np.ndarray:
    """Speed of a trial by future and number of training trials, 0 to ``workers``; at level 0 nobody asks."""
    levels = np.arange(workers + 1)
    reached = busy[:, np.minimum(levels, busy.shape[1] - 1)]
    return np.asarray(reached / np.maximum(levels, 1) / busy[:, 1:2] + (levels == 0))


@dataclass
class _State:
    """Workers of all futures, and the clock of each future.

    ``left`` and ``trains`` have the shape (n_futures, workers) and lie row by row, so that ``ravel`` copies nothing.
    ``trial``, ``number`` and ``since`` are of the same workers in one row, of which those of the i-th future begin at
    ``first[i]``. ``training``: trials that train by future and GPU, in one row; ``gpu``: where in it a worker's GPU
    stands, shape (n_futures, workers).
    """

    left: np.ndarray
    trains: np.ndarray
    trial: np.ndarray
    number: np.ndarray
    since: np.ndarray
    gpu: np.ndarray
    training: np.ndarray
    first: np.ndarray
    now: np.ndarray
    taken: np.ndarray

    @classmethod
    def fresh(cls, draws: Draws, placed: Placement) -> _State:
        n_futures, n_trials = draws.work_s.shape
        workers = sum(placed)
        number = np.tile(np.arange(workers), n_futures)
        trial = number % n_trials
        rows = np.arange(n_futures)
        return cls(
            left=np.ascontiguousarray(draws.pause_s[:, trial[:workers]]),
            trains=np.zeros((n_futures, workers), bool),
            trial=trial,
            number=number,
            since=np.zeros(n_futures * workers),
            gpu=gpu_of_workers(placed) + rows[:, None] * len(placed),
            training=np.zeros(n_futures * len(placed), np.int64),
            first=rows * workers,
            now=np.zeros(n_futures),
            taken=np.full(n_futures, workers),
        )

    def begin(self, rows: np.ndarray, at: np.ndarray, draws: Draws) -> None:
        """The workers at ``at``, of the futures ``rows``, begin to train."""
        self.trains.ravel()[at] = True
        self.left.ravel()[at] = draws.work_s[rows, self.trial[at]]
        self.training[self.gpu.ravel()[at]] += 1

    def take(self, rows: np.ndarray, at: np.ndarray, draws: Draws, policy: Policy) -> None:
        """The workers at ``at``, of the futures ``rows``, have ended a trial and take their next ones."""
        number = self.taken[rows]
        trial = number % draws.work_s.shape[1]
        self.taken[rows] += 1
        self.number[at], self.trial[at] = number, trial
        self.trains.ravel()[at] = False
        self.training[self.gpu.ravel()[at]] -= 1
        self.left.ravel()[at] = draws.pause_s[rows, trial]
        self.since[at] = self.now[rows]
        if self.gpus > 1 and policy != "round robin":
            self._choose(rows, at - self.first[rows], draws, policy)

    def _choose(self, rows: np.ndarray, workers: np.ndarray, draws: Draws, policy: Policy) -> None:
        """The GPUs of the trials just taken; each future is one row, so that no GPU is chosen twice at once."""
        trial = self.trial.reshape(self.left.shape)[rows]
        held = None if draws.memory_mib is None else draws.memory_mib[rows[:, None], trial]
        gpu = self.gpu[rows] - rows[:, None] * self.gpus
        self.gpu[rows, workers] = choose_gpu(policy, gpu, workers, held, self.gpus) + rows * self.gpus

    @property
    def gpus(self) -> int:
        return len(self.training) // len(self.now)
