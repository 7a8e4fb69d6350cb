"""A log as a model of its future: what is resampled, and how fast trials would run at each number of workers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpudiag.forecast.parallelism.assignment import Policy
from gpudiag.forecast.parallelism.colocation import LawName
from gpudiag.forecast.parallelism.completing import complete_share, ended_beside
from gpudiag.forecast.parallelism.gpu_sharing import LAWS, best_law, busy_by_level
from gpudiag.forecast.parallelism.levels import Levels
from gpudiag.forecast.parallelism.observed import N_BLOCKS, ObservedLog
from gpudiag.forecast.parallelism.placement import Placement
from gpudiag.forecast.parallelism.process_loss import MOST_LOSS
from gpudiag.forecast.parallelism.processor_sharing import Draws, Futures, resimulate
from gpudiag.measures._time.microseconds import SECOND_US

N_POINT = 60
N_BOOTSTRAP = 160
LONGEST_FUTURE = 300
"""Trials of one future; what comes later adds nothing to a rate but time to compute it."""
LEAST_EACH = 2
"""Trials for each worker of a future, however few the log holds."""
MANY_TRIALS = 2000
"""From here on the noise of the log is nothing beside that of a future: it is drawn from directly."""


@dataclass(frozen=True, eq=False)
class ThroughputModel:
    """Part of a log: ``trials`` and ``blocks`` are positions in ``log``. ``horizon``: trials of one future.

    ``memory_mib``: peak of each trial of the log, for assignment by memory; None where unknown.
    """

    log: ObservedLog
    trials: np.ndarray
    blocks: np.ndarray
    horizon: int
    memory_mib: np.ndarray | None = None
    tick: Callable[[], None] = lambda: None
    _made: dict[tuple[Any, ...], Futures] = field(default_factory=dict, init=False, repr=False)

    @property
    def law(self) -> LawName:
        """The law that goes on where nothing was measured."""
        return best_law(self.levels)

    @property
    def levels(self) -> Levels:
        """How busy a GPU was with how many in training, over all blocks: one log."""
        return self.log.levels.pick(self.blocks[None])

    def point(
        self, placed: Placement, *, policy: Policy = "round robin", startup: float = 1.0, loss: float = 0.0
    ) -> Futures:
        """Futures of the log as it is: no resampling of the log itself. ``placed``: the workers of each GPU.
        ``startup`` scales every start-up, ``loss`` is the speed that each further process takes from all on its GPU, in
        the log as in the future.
        """
        key = "point", placed, policy, startup, loss
        return self._once(
            key,
            lambda: self._futures(self._busy(self.levels, self.law, sum(placed)), placed, policy, startup, loss),
        )

    def _futures(self, busy: np.ndarray, placed: Placement, policy: Policy, startup: float, loss: float) -> Futures:
        """N_POINT futures of the log, each as busy by number in training as one row says."""
        rng = np.random.default_rng(7)
        busy = np.repeat(busy, N_POINT, axis=0)
        picks = self.trials[rng.integers(len(self.trials), size=(N_POINT, self._drawn(placed)))]
        draws = self._draws(picks, busy, rng, startup, loss)
        return resimulate(draws, busy, placed, policy=policy, loss=loss, tick=self.tick)

    def bootstrap(self, placed: Placement, *, startup: float = 1.0) -> Futures:
        """The double bootstrap (METHODS 10): resample the log, then draw a fresh future from it, over both laws of U.

        The seed is the same for every number of workers, so that differences between numbers hold less noise.
        """
        key = "bootstrap", placed, startup
        return self._once(key, lambda: self._bootstrap(placed, startup))

    def _bootstrap(self, placed: Placement, startup: float) -> Futures:
        rng = np.random.default_rng(11)
        n = len(self.trials)
        blocks = self.blocks[rng.integers(len(self.blocks), size=(N_BOOTSTRAP, len(self.blocks)))]
        levels = self.log.levels.pick(blocks)
        half = N_BOOTSTRAP // len(LAWS)
        parts = [slice(i * half, (i + 1) * half) for i in range(len(LAWS))]
        busy = np.concatenate(
            [self._busy(levels.rows(part), law, sum(placed)) for law, part in zip(LAWS, parts, strict=True)]
        )
        picks = rng.integers(n, size=(N_BOOTSTRAP, self._drawn(placed)))
        if n < MANY_TRIALS:
            logs = rng.integers(n, size=(N_BOOTSTRAP, n))
            picks = np.take_along_axis(logs, picks, axis=1)
        draws = self._draws(self.trials[picks], busy, rng, startup)
        return resimulate(draws, busy, placed, tick=self.tick)

    def _drawn(self, placed: Placement) -> int:
        """Trials of one future: the first of each worker do not count, and what is left has to be a rate."""
        return max(self.horizon, LEAST_EACH * sum(placed))

    def solo_work_s(self) -> np.ndarray:
        """Seconds of work of each trial as if alone, in order of start."""
        busy = self._busy(self.levels, self.law, 1)
        number = np.arange(1, self.log.level_s.shape[1])
        return np.asarray(self.log.level_s[self.trials][:, 1:] @ (busy[0, number] / (number * busy[0, 1])))

    def slowed(self, placed: Placement, now: Placement) -> float:
        """The gain of ``placed`` over ``now`` if every process costs the most, over the gain if it costs nothing."""
        most, none = (
            self.point(placed, loss=loss).throughput_h.mean() / self.point(now, loss=loss).throughput_h.mean()
            for loss in (MOST_LOSS, 0.0)
        )
        return float(most / none)

    def complete_share(self, workers: int, *, of_well: bool = False) -> tuple[float, float, float]:
        """Share (0..1) of the trials that end COMPLETE, with its Wilson 95 % interval; ``of_well``: of those that did
        not fail, where there are any.
        """
        state = self.log.state[self.trials]
        well = state != "FAIL"
        counted = well if of_well and well.any() else np.ones(len(state), bool)
        end_us = self.log.first_us + np.round(SECOND_US * self.log.end_s[self.trials]).astype(np.int64)
        beside = ended_beside(self.log.handover, end_us[counted])
        return complete_share(beside, state[counted] == "COMPLETE", workers)

    def undisturbed(self, placed: Placement) -> float:
        """Mean throughput if trials slowed each other down only where the GPU is full, whatever was measured of U(k).

        Pairs measured on a real GPU are nearer to that than to the sharing of their common utilization
        (docs/forecast.md), so that an interval must reach to it.
        """
        made = self._once(("undisturbed", placed), lambda: self._undisturbed(placed))
        return float(made.throughput_h.mean())

    def _undisturbed(self, placed: Placement) -> Futures:
        workers = sum(placed)
        alone = self._busy(self.levels, self.law, workers)[:, 1:2]
        width = max(workers, self.log.level_s.shape[1] - 1)
        return self._futures(np.minimum(1.0, np.arange(width + 1) * alone), placed, "round robin", 1.0, 0.0)

    def _once(self, key: tuple[Any, ...], make: Callable[[], Futures]) -> Futures:
        """A re-simulation is deterministic and the slowest part of a forecast: none is run twice."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def _busy(self, levels: Levels, law: LawName, workers: int) -> np.ndarray:
        return busy_by_level(levels, law, max(workers, self.log.level_s.shape[1] - 1))

    def _draws(
        self, picks: np.ndarray, busy: np.ndarray, rng: np.random.Generator, startup: float, loss: float = 0.0
    ) -> Draws:
        """Seconds before the work, and solo seconds of work: the time at each level times the speed there."""
        levels = np.arange(1, self.log.level_s.shape[1])
        speed = busy[:, levels] / (levels * busy[:, 1:2]) * (1.0 - loss) ** (levels - 1)
        work = np.einsum("fnl,fl->fn", self.log.level_s[picks][:, :, 1:], speed)
        gaps = self.log.handover.gap_s
        gap = gaps[rng.integers(len(gaps), size=picks.shape)] if len(gaps) else np.zeros(picks.shape)
        memory = None if self.memory_mib is None else self.memory_mib[picks]
        return Draws(startup * self.log.startup_s[picks] + gap, work, memory)


def whole(log: ObservedLog, tick: Callable[[], None] = lambda: None) -> ThroughputModel:
    """The model of all of a log."""
    everything = np.arange(log.n)
    return ThroughputModel(log, everything, np.arange(N_BLOCKS), min(log.n, LONGEST_FUTURE), tick=tick)


def part(log: ObservedLog, low: float, high: float, tick: Callable[[], None] = lambda: None) -> ThroughputModel:
    """The model of the trials that ended between two shares (0..1) of the span, and of the blocks there."""
    trials = np.flatnonzero((log.end_s > low * log.span_s) & (log.end_s <= high * log.span_s))
    blocks = np.arange(round(low * N_BLOCKS), round(high * N_BLOCKS))
    return ThroughputModel(log, trials, blocks, min(len(trials), LONGEST_FUTURE), tick=tick)
