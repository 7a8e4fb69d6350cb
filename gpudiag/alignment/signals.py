"""What the telemetry shows of trials that come and go, on an even grid of time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

import numpy as np
import pandas as pd

from gpudiag.run import Run
from gpudiag.schema import IDLE_PCT
from gpudiag.spans import seconds

STEPS_S = (1, 2, 3, 4, 5, 6, 9, 10, 12, 15, 18, 20, 25, 30, 36, 45, 50, 60, 75, 90, 100, 150, 180, 225, 300, 450, 900)
"""Possible grid steps: divisors of 15 minutes, so that every candidate offset is a whole number of steps."""
MAX_BINS = 1 << 17
EDGE_S = 40.0
EDGE_SHARE = 0.25
"""An edge is the difference of the means before and after, so that a load that jumps about its level shows none. Each
mean is over 40 s (of 15, 40, 100 and 300 s and of raw levels this found the right offset most often in simulated runs:
92 to 100 % by coverage, raw levels 88 to 97 %), but over no more than a quarter of a typical trial, so that a start or
an end is not averaged with the next."""
SPARSE_S = 10.0
FINE_S = 5.0
"""Samples further apart than 10 s are compared one by one, on a grid of 5 s, so that each keeps its instant."""
MIN_SEEN = 0.6


class Lack(Enum):
    """Why a column is no signal: too few samples for an edge, the same value throughout, memory that is kept."""

    SHORT = "short"
    STEADY = "steady"
    KEPT = "kept"


@dataclass(frozen=True)
class Grid:
    """``n`` bins of ``step_s`` from ``start_s`` (seconds since 1970).

    An edge is the mean of ``reach`` bins from a bin on, less that of the ``reach`` bins that begin ``lag`` earlier.
    """

    start_s: float
    step_s: float
    n: int
    reach: int
    lag: int


@dataclass(frozen=True)
class Signal:
    """``edge``: change around each bin of the grid, 0 where ``seen`` is False (too little telemetry there)."""

    name: str
    edge: np.ndarray
    seen: np.ndarray


def starts_and_ends(trials: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Start and end (s) of each trial that has both and lasted."""
    start, end = seconds(trials["start"]), seconds(trials["end"])
    lasted = end > start
    return start[lasted], end[lasted]


@dataclass(frozen=True)
class SampleTimes:
    """The telemetry as arrays: code of the GPU and time of each row, and the median sampling period (NaN unknown).

    ``step_s`` is the time from each row to the next, ``same`` where both are of one GPU.
    """

    gpu: np.ndarray
    time_s: np.ndarray
    step_s: np.ndarray
    same: np.ndarray
    period_s: float

    @classmethod
    def of(cls, run: Run) -> SampleTimes:
        gpu, time = pd.factorize(run.gpu["gpu"])[0], seconds(run.gpu["time"])
        step, same = np.diff(time), gpu[1:] == gpu[:-1]
        steps = step[same]
        return cls(gpu, time, step, same, float(np.median(steps)) if len(steps) else float("nan"))

    def rows(self) -> Iterator[np.ndarray | slice]:
        """The rows of each GPU; those of a run stand together."""
        edges = [0, *(np.flatnonzero(~self.same) + 1).tolist(), len(self.gpu)]
        count = int(self.gpu.max(initial=-1)) + 1
        if len(edges) == count + 1:
            yield from (slice(low, high) for low, high in pairwise(edges))
        else:
            yield from (np.flatnonzero(self.gpu == code) for code in range(count))


def make_grid(samples: SampleTimes, low_s: float, high_s: float, trial_s: float) -> Grid | None:
    """The grid of the telemetry between two times, for trials that take so long; None where there is none."""
    period, time = samples.period_s, samples.time_s
    near = time[(time >= low_s) & (time <= high_s)]
    if len(near) < 2 or np.isnan(period):
        return None
    first, last = float(near.min()), float(near.max())
    coarsest = (last - first) / MAX_BINS
    sparse = period > SPARSE_S and coarsest <= FINE_S and _even(samples)
    wanted = FINE_S if sparse else max(0.999 * period, coarsest)
    step = float(next((step for step in STEPS_S if step >= wanted), STEPS_S[-1]))
    reach = 1 if sparse else max(1, round(min(EDGE_S, EDGE_SHARE * trial_s) / step))
    return Grid(first, step, int((last - first) / step) + 1, reach, round(period / step) if sparse else reach)


def _even(samples: SampleTimes) -> bool:
    """True if most steps are about as long as the median one."""
    steps = samples.step_s[samples.same]
    return bool(np.mean(np.abs(steps - samples.period_s) <= FINE_S / 2) >= MIN_SEEN)


def trial_signals(run: Run, samples: SampleTimes, grid: Grid) -> tuple[list[Signal], set[Lack]]:
    """Signals that rise and fall with trials (memory, share of active GPUs, utilization), and why others do not.

    Memory is left out where it hardly ever falls: a process that runs many trials keeps it.
    """
    columns = [
        ("memory", "mem_used_mib", None),
        ("activity", "util_pct", IDLE_PCT),
        ("utilization", "util_pct", None),
    ]
    signals, lacking = [], set()
    at = np.floor((samples.time_s - grid.start_s) / grid.step_s)
    inside = (at >= 0) & (at < grid.n)
    bins = np.where(inside, at, 0).astype(np.int64)
    for name, column, threshold in columns:
        if column not in run.gpu:
            continue
        value = run.gpu[column].to_numpy(float)
        known = inside & ~np.isnan(value)
        if threshold is not None:
            value = (value >= threshold).astype(float)
        level, seen = _on_grid(samples, known, bins, value, grid.n)
        signal = _edges(name, level, seen, grid)
        if isinstance(signal, Lack):
            lacking.add(signal)
        elif name == "memory" and _never_falls(signal):
            lacking.add(Lack.KEPT)
        else:
            signals.append(signal)
    return signals, lacking


def covered_s(samples: SampleTimes, low_s: float, high_s: float) -> float:
    """Time between two times that the best observed GPU has samples for, no step counting for more than 3 periods."""
    step = np.minimum(samples.step_s, 3 * samples.period_s)
    counts = samples.same & (samples.time_s[1:] >= low_s) & (samples.time_s[1:] <= high_s)
    return float(np.bincount(samples.gpu[1:][counts], step[counts], minlength=1).max())


def edges(level: np.ndarray, grid: Grid) -> np.ndarray:
    """The edge at each bin, times ``reach``; bins beyond either end count as 0."""
    n, total = len(level), np.concatenate(([0.0], np.cumsum(level)))
    at = np.arange(n)
    before = np.maximum(at - grid.lag, 0)
    after = total[np.minimum(at + grid.reach, n)] - total[at]
    return after - (total[np.minimum(before + grid.reach, at)] - total[before])


def _on_grid(
    samples: SampleTimes, known: np.ndarray, bins: np.ndarray, value: np.ndarray, n: int
) -> tuple[np.ndarray, np.ndarray]:
    """Sum over GPUs of each one's mean in the bin less its median, and which bins hold a sample."""
    level, seen = np.zeros(n), np.zeros(n, bool)
    for rows in samples.rows():
        good, own_bins, own_values = known[rows], bins[rows], value[rows]
        if not good.all():
            own_bins, own_values = own_bins[good], own_values[good]
        count = np.bincount(own_bins, minlength=n)
        there = count > 0
        if not there.any():
            continue
        mean = np.bincount(own_bins, own_values, minlength=n)[there] / count[there]
        level[there] += mean - np.median(mean)
        seen |= there
    return level, seen


def _edges(name: str, level: np.ndarray, seen: np.ndarray, grid: Grid) -> Signal | Lack:
    """The signal's edges where both sides are seen well enough."""
    at = np.arange(grid.n)
    after, after_seen = _means(level, seen, at, grid.reach)
    before, before_seen = _means(level, seen, at - grid.lag, grid.reach)
    good = np.minimum(after_seen, before_seen) >= MIN_SEEN
    edge = np.where(good, after - before, 0.0)
    if good.sum() < 2 * grid.lag:
        return Lack.SHORT
    if not edge[good].std() > 1e-9:
        return Lack.STEADY
    return Signal(name, edge, good)


def _means(level: np.ndarray, seen: np.ndarray, start: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean over the bins seen among ``length`` from each start on, and the share of them that is seen."""
    n = len(level)
    total = np.concatenate(([0.0], np.cumsum(level * seen)))
    count = np.concatenate(([0], np.cumsum(seen)))
    low, high = np.clip(start, 0, n), np.clip(start + length, 0, n)
    there = count[high] - count[low]
    return (total[high] - total[low]) / np.maximum(there, 1), there / length


def _never_falls(signal: Signal) -> bool:
    falls, rises = -signal.edge[signal.edge < 0].sum(), signal.edge[signal.edge > 0].sum()
    return bool(falls < 0.5 * rises)
