"""Time per item of a whole run (wall time over items), with an error from its cycles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpudiag.comparison.autocorrelation import MIN_UNITS, neighbors
from gpudiag.comparison.intervals import Mean, Ratio, Worth, believed, log_ratio
from gpudiag.comparison.side import Side
from gpudiag.measures._time.concurrency import assign_workers
from gpudiag.measures._time.microseconds import SECOND_US, microseconds


def time_per_item_s(side: Side) -> float:
    """Wall time over the items that did not fail; with end times alone, over those that ended after the first item."""
    n = len(side.results)
    if not side.has_starts:
        n -= int((side.finished["state"].iloc[:1] != "FAIL").sum())
    return side.wall_s / n if n > 0 and side.wall_s > 0 else math.nan


@dataclass(frozen=True, eq=False)
class Throughput:
    """Wall time per item that did not fail, or per item of one state; ``cycles``: what each cycle of a worker adds."""

    mean: float
    n: int
    cycles: np.ndarray | None


def throughput(side: Side, state: str = "") -> Throughput:
    """Wall time per item that did not fail, or per item of ``state``, with what its error follows from.

    A worker's cycle is the time from the start of an item to the start of the next. Time per item is a ratio of sums
    over cycles (time, and whether the item counts), so its error follows from the residuals of that ratio.
    """
    known = side.finished[side.finished["duration_s"].notna() & side.finished["start"].notna()]
    counts = (known["state"] == state if state else known["state"] != "FAIL").to_numpy()
    n = int((side.finished["state"] == state).sum()) if state else len(side.results)
    mean = side.wall_s / n if n and side.has_starts and side.wall_s > 0 else math.nan
    if not state and not side.has_starts:
        mean = time_per_item_s(side)
    if counts.sum() < MIN_UNITS or math.isnan(mean):
        return Throughput(mean, n, None)
    start, end = microseconds(known["start"]), microseconds(known["end"].fillna(known["start"]))
    cycle = _cycles(start, end) / SECOND_US
    if not cycle.mean() > 0:
        return Throughput(mean, n, None)
    return Throughput(mean, n, cycle / cycle.mean() - counts / counts.mean())


def throughput_ratio(
    sides: Sequence[Throughput], method: str, each: Sequence[float] = (), others: Sequence[Mean] = ()
) -> Ratio:
    """Ratio of two times per item, or of ``each``, which follow from the times and from ``others``, as energy does
    from time and power; cycles of one run are alike where neighbours in time are.
    """
    means = list(each) or [side.mean for side in sides]
    series = [side.cycles for side in sides if side.cycles is not None]
    if len(series) < len(sides):
        one, other = (Mean(mean, n=side.n) for mean, side in zip(means, sides, strict=True))
        return log_ratio(one, other, method)
    found = neighbors(*series)
    also = [other.log_se for other in others] or [0.0, 0.0]

    def by(worth: Worth) -> Ratio:
        kept = [worth(cycles) for cycles in series]
        errors = [
            math.hypot(float(cycles.std(ddof=1)) * math.sqrt(left.inflation / len(cycles)), error)
            for cycles, left, error in zip(series, kept, also, strict=True)
        ]
        one, other = (Mean(*parts) for parts in zip(means, errors, [left.size for left in kept], strict=True))
        return log_ratio(one, other, method)

    return believed(found, series, by)


def _cycles(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Microseconds from each start to the next start on its worker, for the last of a worker to its own end."""
    worker = assign_workers(start, end)
    order = np.lexsort((start, worker))
    out = (end - start).astype(float)
    same = worker[order][1:] == worker[order][:-1]
    out[order[:-1][same]] = (start[order][1:] - start[order][:-1])[same]
    return out
