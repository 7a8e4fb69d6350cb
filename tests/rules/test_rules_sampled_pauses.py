"""What pauses cost that samples meet or miss: the truth lies in the range that is told, or no cost is."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from smallruns import gpu, run, steps_of

from gpudiag.measures.steps import StepsProfile, measure_steps
from gpudiag.memo import MemoRun
from gpudiag.rules._engine.evidence import Evidence
from gpudiag.rules.steps import steps_paused
from gpudiag.run import Run

DRAWS = 8
LINE_S, STEPS = 10.0, 10


def paused(seed: int, period_s: float, *, hours: float = 3.0) -> tuple[Run, float]:
    """Steps at 100 %, and pauses of about 40 s behind every 12 lines, in half of which the GPU works; a sample shows
    the second before it. And the hours for which it did not.
    """
    rng = np.random.default_rng([seed, int(period_s)])
    end, pauses, now = [], [], 30.0
    while now < 3600 * hours:
        now += LINE_S + rng.normal(0, 0.05)
        end.append(now)
        if len(end) % 12 == 0:
            pauses.append((now, now + rng.uniform(25, 55)))
            now = pauses[-1][1]
    idle = np.array(pauses)[rng.random(len(pauses)) < 0.5]
    ticks = np.arange(rng.uniform(1, 1 + period_s), end[-1], period_s)
    before = [
        np.clip(until[:, None] - idle[:, 0], 0, idle[:, 1] - idle[:, 0]).sum(axis=1) for until in (ticks - 1, ticks)
    ]
    util = np.rint(100 * (1 - (before[1] - before[0])))
    lines = [(round(at, 3), STEPS * n) for n, at in enumerate(end, 1)]
    one = run(gpu=gpu(ticks, util_pct=util), steps=steps_of(lines))
    return one, float((idle[:, 1] - idle[:, 0]).sum()) / 3600


def told(one: Run) -> tuple[StepsProfile, Evidence]:
    steps = measure_steps(MemoRun.of(one))  # what its parts need is made once
    found = steps_paused.judge(steps)
    assert isinstance(found, Evidence)
    return steps, found


@pytest.mark.slow
@pytest.mark.parametrize("period_s", [30.0, 60.0])
def test_the_truth_lies_in_the_range_that_is_told(period_s: float) -> None:
    within = []
    for seed in range(DRAWS):
        one, idle_h = paused(seed, period_s)
        steps, found = told(one)
        assert found.extra["is_rough"] and found.extra["sampling_period_s"] == period_s
        least, most = (
            float(found.extra[name]) * steps.recorded_pauses_s / 360_000 for name in ("least_pct", "most_pct")
        )  # type: ignore[arg-type]
        within.append(least <= idle_h <= most)
    assert np.mean(within) >= 0.85  # of 95 %, in so few draws


@pytest.mark.slow
def test_samples_close_to_each_other_leave_no_range() -> None:
    one, idle_h = paused(1, 2.0)
    _, found = told(one)
    assert not found.extra["is_rough"] and found.lost_gpu_h == pytest.approx(idle_h, rel=0.05)


def test_a_cost_that_may_be_three_times_what_it_is_at_least_is_none() -> None:
    one, _ = paused(3, 60.0, hours=0.5)
    steps, found = told(one)
    assert found.lost_gpu_h is None and found.held_gpu_h is not None
    assert found.held_gpu_h <= steps.recorded_pauses_s / 3600 + 1e-9


def test_without_telemetry_there_is_neither() -> None:
    one, _ = paused(1, 60.0)
    _, found = told(replace(one, gpu=one.gpu.iloc[:0]))
    assert found.lost_gpu_h is None and found.held_gpu_h is None
    assert not found.extra["is_rough"] and math.isnan(float(found.extra["least_pct"]))  # type: ignore[arg-type]
