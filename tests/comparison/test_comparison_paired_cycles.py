"""Wall time per item of the same items by name: pauses between them are as comparable as the items are."""

from __future__ import annotations

import heapq
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from batchruns import T0, batch

from gpudiag.comparison._quantities.wall_time import wall_time_per_item
from gpudiag.comparison.compare import Comparison, compare
from gpudiag.comparison.match import match
from gpudiag.comparison.side import as_side
from gpudiag.run import Run

SIZES = np.random.default_rng(77).lognormal(4, 0.6, 24)


def tasks(name: str, seed: int, pause_s: float, workers: int = 2, order: np.ndarray | None = None) -> Run:
    """The items of SIZES with noise of 4 % on a pool of workers, and a pause behind each."""
    rng = np.random.default_rng(seed)
    places = np.arange(len(SIZES)) if order is None else order
    seconds = (SIZES * rng.lognormal(0, 0.04, len(SIZES)))[places]
    free = [0.0] * workers
    heapq.heapify(free)
    starts = []
    for one in seconds:
        starts.append(heapq.heappop(free))
        heapq.heappush(free, starts[-1] + one + pause_s)
    start = T0 + pd.to_timedelta(np.round(starts, 3) + 1e6 * (seed % 1000), unit="s")
    run = batch(name, seconds, items=[f"item {i}" for i in places], params={"p": 1})
    trials = run.trials.assign(start=start, end=start + pd.to_timedelta(np.round(seconds, 3), unit="s"))
    return replace(run, trials=trials, info=replace(run.info, settings=type(run.info.settings)()))


def wall_s(run: Run) -> float:
    return float((run.trials["end"].max() - run.trials["start"].min()).total_seconds())


@pytest.mark.slow
def test_a_longer_pause_between_the_same_items_is_slower() -> None:
    one, other = tasks("a", 1, 1.0), tasks("b", 2, 40.0)
    found = compare(one, other)
    assert isinstance(found, Comparison)
    held = found.quantity("time_per_item")
    assert held.ratio == pytest.approx(wall_s(other) / wall_s(one)) and held.method.endswith("paired")
    assert found.verdict == "slower" and found.quantity("duration").verdict not in ("slower", "faster")
    back = compare(other, one)
    assert isinstance(back, Comparison) and back.verdict == "faster"
    inverse = back.quantity("time_per_item")
    assert (1 / inverse.high, 1 / inverse.low) == pytest.approx((held.low, held.high), rel=1e-6)


@pytest.mark.many
@pytest.mark.slow
@pytest.mark.parametrize(("workers", "shuffled"), [(1, False), (2, False), (2, True), (4, False)])
def test_intervals_of_the_same_against_the_same_hold_one(workers: int, shuffled: bool) -> None:
    """Of 60 pairs a nominal 95 % leaves out more than 7 once in a hundred times."""
    held = 0
    for seed in range(60):
        order = np.random.default_rng(seed).permutation(len(SIZES)) if shuffled else None
        sides = [
            as_side(tasks("a", seed, 5.0, workers), "a"),
            as_side(tasks("b", 1000 * seed + 7, 5.0, workers, order), "b"),
        ]
        time, *_ = wall_time_per_item(*sides, match(*sides))
        held += math.isnan(time.low) or time.low <= 1 <= time.high
    assert held >= 53
