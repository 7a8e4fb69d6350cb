"""What a trial's parameters let expect of its memory, and how far trials scatter about that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from gpudiag.forecast.memory.features import Design, choose
from gpudiag.forecast.memory.growth import Growth
from gpudiag.forecast.memory.signal import Steps

Array = np.ndarray

MIN_FALLS, MANY_FALLS = 8, 30
USUAL_SPREAD = 0.1
"""Of peaks about what their parameters let expect, as a share of a peak, until the log shows it."""
LEAST_ERROR = 0.004
"""No reading is trusted to less than this share of a typical peak."""
SIGMA95 = 1.959963984540054


@dataclass(frozen=True)
class Board:
    """One GPU: its changes, growth by age, its baseline (MiB, NaN unknown) and which of all trials are on it."""

    steps: Steps
    growth: Growth
    baseline_mib: float
    places: Array


class Expectation:
    """A regression on clean falls, and on levels before falls with the shares of their peaks that trials then hold."""

    def __init__(self, boards: Sequence[Board], n_trials: int) -> None:
        parts, levels, counts, rough = [], [], [], []
        for board in boards:
            steps = board.steps
            if np.isnan(board.baseline_mib):
                continue
            used = steps.falls & ~steps.blind
            number = np.cumsum(used) - 1
            mine = used[steps.step]
            share = board.growth.share(steps.young_s[mine])
            at = (number[steps.step[mine]], board.places[steps.trial[mine]])
            parts.append(scipy.sparse.csr_matrix((share, at), (int(used.sum()), n_trials)))
            levels.append(steps.above_mib[used] - board.baseline_mib)
            counts.append(np.bincount(at[0], share, int(used.sum())))
            # A trial that has not settled holds all or nothing: the variance of that, in peaks squared.
            rough.append(np.bincount(at[0], share * (1 - share), int(used.sum())))
        empty = scipy.sparse.csr_matrix((0, n_trials))
        self.rows = scipy.sparse.vstack(parts).tocsr() if parts else empty
        self.level_mib = np.concatenate(levels) if levels else np.empty(0)
        self.count, self.rough = (np.concatenate(part) if part else np.empty(0) for part in (counts, rough))
        kept = self.count > 0.5
        self.rows, self.level_mib, self.count, self.rough = (
            part[kept] for part in (self.rows, self.level_mib, self.count, self.rough)
        )

    def _stacked(
        self, anchors: Array, fall: Array, spread: float = USUAL_SPREAD
    ) -> tuple[scipy.sparse.csr_matrix, Array, Array]:
        """Rows, their targets, and weights 1/sd in shares of a peak; ``spread`` of peaks about their parameters."""
        known = np.flatnonzero(anchors)
        ones, shape = np.ones(len(known)), (len(known), len(anchors))
        picked = scipy.sparse.csr_matrix((ones, (np.arange(len(known)), known)), shape)
        level = 1 / np.sqrt(4 * self.count * spread**2 + self.rough + LEAST_ERROR**2)
        weigh = np.concatenate([np.full(len(known), 1 / spread), level])
        return scipy.sparse.vstack([picked, self.rows]).tocsr(), np.concatenate([fall[known], self.level_mib]), weigh

    def design(self, anchors: Array, fall: Array, columns: dict[str, Array]) -> Design:
        """The parameters that explain falls and levels best."""
        rows, target, weigh = self._stacked(anchors, fall)
        if len(target) < 4 * MIN_FALLS or not columns:
            return Design(np.ones((len(anchors), 1)), ())
        return choose(columns, weigh, rows, target)

    def of(self, design: Design, anchors: Array, fall: Array) -> tuple[Array, float]:
        """Peaks expected, and their standard deviation about that (infinite where nothing tells)."""
        share, free, n = USUAL_SPREAD, design.columns.shape[1], int(anchors.sum())
        expected, spread = np.zeros(len(anchors)), np.inf
        for _ in range(2):  # the second time with falls trusted as far as they scatter
            rows, target, weigh = self._stacked(anchors, fall, share)
            if not len(target):
                return expected, np.inf
            beta = np.linalg.lstsq((rows @ design.columns) * weigh[:, None], target * weigh, rcond=None)[0]
            expected = np.maximum(design.columns @ beta, 0.0)
            typical = float(np.mean(expected))
            if n >= MIN_FALLS + free:
                spread = _predicted_sd(fall[anchors] - expected[anchors], free)
            elif len(target) > free:
                # What trials scatter by and where they are in their growth are not told apart: an upper estimate.
                several = np.concatenate([np.ones(n), np.sqrt(self.count)])
                spread = max(_robust_sd((target - rows @ expected) / several), USUAL_SPREAD * typical)
            spread = max(spread, LEAST_ERROR * typical)
            if n >= MANY_FALLS:
                share = float(np.clip(spread / max(typical, 1.0), LEAST_ERROR, USUAL_SPREAD))
        return expected, spread


def _predicted_sd(left: Array, free: int) -> float:
    """The standard deviation of a normal whose 95 % hold one value more, after so many coefficients (Student's t)."""
    n = len(left)
    sd = float(np.sqrt((left**2).sum() / (n - free)))
    if n >= MANY_FALLS:
        sd = min(sd, _robust_sd(left) * (n / (n - free)) ** 0.5)  # some falls are not what they seem
    return sd * float(scipy.special.stdtrit(n - free, 0.975)) / SIGMA95 * (1 + free / n) ** 0.5


def _robust_sd(values: Array) -> float:
    """1.4826 x median absolute deviation, but not below half the standard deviation: errors have long tails."""
    middle = np.median(values)
    return float(max(1.4826 * np.median(np.abs(values - middle)), 0.5 * np.std(values)))
