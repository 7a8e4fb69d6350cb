"""Time per item of a whole run (wall time over items), with an error from its cycles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from gpudiag.comparison.autocorrelation import MIN_UNITS, neighbors
from gpudiag.comparison.intervals import Mean, Ratio, Worth, believed, log_ratio, width
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
    """Wall time per item that did not fail, or per item of one state; ``cycles``: what each cycle of a worker adds.

    ``names``: the item of each cycle; ``tail``: error of the mean by chance of how long workers without a further item
    waited for the last, each wait by its whole length, over the time of all cycles.
    """

    mean: float
    n: int
    cycles: np.ndarray | None
    names: np.ndarray | None = None
    tail: float = 0.0


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
    cycle_us, waited_us = _cycles(start, end)
    cycle = cycle_us / SECOND_US
    if not cycle.mean() > 0:
        return Throughput(mean, n, None)
    residuals = cycle / cycle.mean() - counts / counts.mean()
    return Throughput(mean, n, residuals, known["name"].to_numpy(), waited_us / float(cycle_us.sum()))


def throughput_ratio(
    sides: Sequence[Throughput],
    method: str,
    each: Sequence[float] = (),
    others: Sequence[Mean] = (),
    *,
    paired: bool = False,
) -> Ratio:
    """Ratio of two times per item, or of ``each``, which follow from the times and from ``others``, as energy does
    from time and power; cycles of one run are alike where neighbours in time are. ``paired``: the runs have the same
    items by name, so that only what the cycles of an item differ by is chance, unless that tells less.
    """
    means = list(each) or [side.mean for side in sides]
    series = [side.cycles for side in sides if side.cycles is not None]
    if len(series) < len(sides):
        one, other = (Mean(mean, n=side.n) for mean, side in zip(means, sides, strict=True))
        return log_ratio(one, other, method)
    also = [other.log_se for other in others] or [0.0, 0.0]
    found = neighbors(*series)

    def by(worth: Worth) -> Ratio:
        kept = [worth(cycles) for cycles in series]
        errors = [
            math.hypot(float(cycles.std(ddof=1)) * math.sqrt(left.inflation / len(cycles)), error)
            for cycles, left, error in zip(series, kept, also, strict=True)
        ]
        one, other = (Mean(*parts) for parts in zip(means, errors, [left.size for left in kept], strict=True))
        return log_ratio(one, other, method)

    ratio = believed(found, series, by)
    names = sides[0].names
    if not paired or names is None or len(set(names)) < 2:
        return ratio
    return min(ratio, _paired_ratio(sides, method, means, also), key=width)


def _paired_ratio(sides: Sequence[Throughput], method: str, means: Sequence[float], also: Sequence[float]) -> Ratio:
    """The ratio by what the cycles of an item differ by; of an item tried several times, all of them together.

    Which worker has the last item, and how long the others wait for it, is chance whatever the items: it is no part of
    the cycles, so the wait of each run counts as its own error.
    """
    apart = _apart(*map(_by_item, sides))
    alone = math.hypot(*(side.tail for side in sides), *also)

    def by(worth: Worth) -> Ratio:
        left = worth(apart)
        error = math.hypot(float(apart.std(ddof=1)) * math.sqrt(left.inflation / len(apart)), alone)
        return log_ratio(Mean(means[0], 0.0, left.size), Mean(means[1], error, left.size), f"{method}, paired")

    return believed(neighbors(apart), [apart], by)


def _by_item(side: Throughput) -> pd.Series:
    """What each item adds, as a part of all cycles of the run."""
    cycles = pd.Series(side.cycles)
    return cycles.groupby(pd.Series(side.names), sort=False).sum() / len(cycles)


def _apart(one: pd.Series, other: pd.Series) -> np.ndarray:
    """By how much what an item adds differs, times the number of items, in the order of the first run; what only one
    run has counts whole.
    """
    names = [*one.index, *(name for name in other.index if name not in one.index)]
    return (other.reindex(names, fill_value=0.0) - one.reindex(names, fill_value=0.0)).to_numpy() * len(names)


def _cycles(start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, float]:
    """Microseconds from each start to the next start on its worker, for the last of a worker to its own end; and the
    root of the sum of squares of how long each worker then waited for the last end.
    """
    worker = assign_workers(start, end)
    order = np.lexsort((start, worker))
    out = (end - start).astype(float)
    same = worker[order][1:] == worker[order][:-1]
    out[order[:-1][same]] = (start[order][1:] - start[order][:-1])[same]
    last = end[order][np.append(~same, True)]
    return out, float(np.linalg.norm((end.max() - last).astype(float)))
