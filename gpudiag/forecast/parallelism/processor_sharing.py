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
    rows = np.arange(n_futures)
    counted = np.zeros(n_futures, np.int64)
    cycles = np.zeros(n_futures)
    active = np.zeros(n_futures)
    lasted = np.zeros(n_futures)
    events = 0
    while (counted < n_trials - first).any():
        if events % TICK_EVENTS == 0:
            tick()
        events += 1
        going = counted < n_trials - first
        training = state.training_by_gpu()
        rate = np.where(state.trains, np.take_along_axis(speeds[rows[:, None], training], state.gpu, axis=1), 1.0)
        wait = state.left / rate
        worker = wait.argmin(axis=1)
        step = wait[rows, worker]
        lasted += np.where(going, step, 0.0)
        active += np.where(going, step * reached[rows[:, None], training].mean(axis=1), 0.0)
        state.now += step
        state.left -= rate * step[:, None]
        state.left[rows, worker] = 0.0
        ends = state.trains[rows, worker]
        begun = rows[~ends]
        state.trains[begun, worker[begun]] = True
        state.left[begun, worker[begun]] = draws.work_s[begun, state.trial[begun, worker[begun]]]
        done = rows[ends]
        number = state.number[done, worker[done]]
        new = (number >= first) & (number < n_trials)
        cycles[done[new]] += (state.now - state.since[rows, worker])[done[new]]
        counted[done[new]] += 1
        state.take(done, worker[done], draws, policy)
    return Futures(3600.0 * workers * counted / cycles, 100.0 * active / lasted)


def _speeds(busy: np.ndarray, workers: int) -> np.ndarray:
    """Speed of a trial by future and number of training trials, 0 to ``workers``; at level 0 nobody asks."""
    levels = np.arange(workers + 1)
    reached = busy[:, np.minimum(levels, busy.shape[1] - 1)]
    return np.asarray(reached / np.maximum(levels, 1) / busy[:, 1:2] + (levels == 0))


@dataclass
class _State:
    """Workers of all futures, shape (n_futures, workers) each, and the clock of each future."""

    left: np.ndarray
    trains: np.ndarray
    trial: np.ndarray
    number: np.ndarray
    since: np.ndarray
    gpu: np.ndarray
    now: np.ndarray
    taken: np.ndarray
    gpus: int

    @classmethod
    def fresh(cls, draws: Draws, placed: Placement) -> _State:
        n_futures, n_trials = draws.work_s.shape
        workers = sum(placed)
        number = np.broadcast_to(np.arange(workers), (n_futures, workers)).copy()
        trial = number % n_trials
        left = np.take_along_axis(draws.pause_s, trial, axis=1)
        return cls(
            left=left,
            trains=np.zeros((n_futures, workers), bool),
            trial=trial,
            number=number,
            since=np.zeros((n_futures, workers)),
            gpu=np.broadcast_to(gpu_of_workers(placed), (n_futures, workers)).copy(),
            now=np.zeros(n_futures),
            taken=np.full(n_futures, workers),
            gpus=len(placed),
        )

    def training_by_gpu(self) -> np.ndarray:
        """Number of training trials, shape (n_futures, gpus)."""
        return np.stack([(self.trains & (self.gpu == gpu)).sum(axis=1) for gpu in range(self.gpus)], axis=1)

    def take(self, rows: np.ndarray, workers: np.ndarray, draws: Draws, policy: Policy) -> None:
        """The workers ``workers`` of the futures ``rows`` take their next trials."""
        number = self.taken[rows]
        trial = number % draws.work_s.shape[1]
        self.taken[rows] += 1
        self.number[rows, workers], self.trial[rows, workers] = number, trial
        self.trains[rows, workers] = False
        self.left[rows, workers] = draws.pause_s[rows, trial]
        self.since[rows, workers] = self.now[rows]
        if self.gpus > 1 and policy != "round robin":
            held = None if draws.memory_mib is None else np.take_along_axis(draws.memory_mib, self.trial, axis=1)[rows]
            self.gpu[rows, workers] = choose_gpu(policy, self.gpu[rows], workers, held, self.gpus)
