"""Time per item of a whole run (wall time over items), with an error from its cycles."""

from __future__ import annotations

import math

import numpy as np

from gpudiag.comparison.autocorrelation import dependence, neighbor_correlation, surely_alike
from gpudiag.comparison.intervals import MIN_UNITS, Mean
from gpudiag.comparison.side import Side
from gpudiag.measures._time.concurrency import assign_workers
from gpudiag.measures._time.microseconds import SECOND_US, microseconds


def time_per_item_s(side: Side) -> float:
    """Wall time over finished items. With end times alone, time between the first and the last over n - 1."""
    n = len(side.finished)
    if not side.has_starts:
        n -= 1
    return side.wall_s / n if n > 0 and side.wall_s > 0 else math.nan


def throughput_mean(side: Side, state: str = "") -> Mean:
    """Wall time per finished item, or per item of ``state``, with the error of its logarithm.

    A worker's cycle is the time from the start of an item to the start of the next. Time per item is a ratio of sums
    over cycles (time, and whether the item counts), so its error follows from the residuals of that ratio; cycles of
    one run are alike where neighbours in time are, which leaves fewer of them.
    """
    known = side.finished[side.finished["duration_s"].notna() & side.finished["start"].notna()]
    counts = (known["state"] == state).to_numpy() if state else np.ones(len(known), bool)
    n = int((side.finished["state"] == state).sum()) if state else len(side.finished)
    mean = side.wall_s / n if n and side.has_starts and side.wall_s > 0 else math.nan
    if not state and not side.has_starts:
        mean = time_per_item_s(side)
    if counts.sum() < MIN_UNITS or math.isnan(mean):
        return Mean(mean, n=n)
    start, end = microseconds(known["start"]), microseconds(known["end"].fillna(known["start"]))
    cycle = _cycles(start, end) / SECOND_US
    if not cycle.mean() > 0:
        return Mean(mean, n=n)
    residual = cycle / cycle.mean() - counts / counts.mean()
    alike = neighbor_correlation(residual)
    worth = dependence(residual, alike)
    if worth.size < MIN_UNITS and surely_alike(alike, len(residual)):
        return Mean(mean, n=worth.size)
    return Mean(mean, float(residual.std(ddof=1)) * math.sqrt(worth.inflation / len(residual)), worth.size)


def _cycles(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Microseconds from each start to the next start on its worker, for the last of a worker to its own end."""
    worker = assign_workers(start, end)
    order = np.lexsort((start, worker))
    out = (end - start).astype(float)
    same = worker[order][1:] == worker[order][:-1]
    out[order[:-1][same]] = (start[order][1:] - start[order][:-1])[same]
    return out
