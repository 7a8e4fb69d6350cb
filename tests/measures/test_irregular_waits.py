"""Waits that come at uneven times have no period, however few they are; those of a clock have one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from smallruns import gpu, run

from gpudiag.analysis import Analysis
from gpudiag.measures.stalls import measure_stalls
from gpudiag.rules._engine.judging import judge_all
from gpudiag.rules._engine.rule import check_thresholds
from gpudiag.rules._engine.verdict import Status
from gpudiag.rules.stalls import stalls_periodic
from gpudiag.run import Run

STEP_S = 5.0
Draw = Callable[[np.random.Generator], float]


def recorded(seed: int, n: int, busy: Draw, idle: Draw) -> Run:
    """A GPU that is busy and idle by turns, ``n`` times, seen each five seconds."""
    rng = np.random.default_rng(seed)
    lengths = [length for _ in range(n) for length in (busy(rng), idle(rng))] + [busy(rng)]
    edges = np.append(0.0, np.cumsum(lengths))
    at = np.arange(STEP_S, edges[-1], STEP_S)
    works = (np.searchsorted(edges, at, "right") - 1) % 2 == 0
    return run(gpu=gpu(at, util_pct=np.where(works, 85.0 + rng.normal(0, 4, len(at)), 0.0)))


def is_told(one: Run) -> bool:
    (verdict,) = judge_all([stalls_periodic], Analysis(one), check_thresholds([stalls_periodic], {}))
    return verdict.status is Status.FOUND


@pytest.mark.parametrize("seed", [9, 15, 19, 42, 45, 53])
def test_uneven_waits_have_no_period(seed: int) -> None:
    """Busy for 20 s to 5 min, idle for 30 s to 9 min, 16 times: the mean distance of waits is no period, though
    the autocorrelation has a peak there.
    """
    one = recorded(seed, 16, lambda rng: rng.uniform(20, 300), lambda rng: rng.uniform(30, 550))
    assert not is_told(one)
    assert measure_stalls(one).per_gpu["n_stalls"].iloc[0] > 10


@pytest.mark.parametrize(("n", "scatter"), [(5, 0.02), (5, 0.05), (12, 0.1), (40, 0.15)])
def test_waits_that_come_about_as_often_have_one(n: int, scatter: float) -> None:
    def about(seconds: float) -> Draw:
        return lambda rng: seconds * (1 + scatter * rng.normal())

    for seed in range(2):
        one = recorded(seed, n, about(300), about(60))
        assert is_told(one)
        assert measure_stalls(one).per_gpu["period_s"].iloc[0] == pytest.approx(360, rel=0.15)
