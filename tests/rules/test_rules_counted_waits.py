"""What waits cost that samples count: the truth lies in the range that is told, or no cost is."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from smallruns import gpu, run

from gpudiag.measures.stalls import measure_stalls
from gpudiag.memo import MemoRun
from gpudiag.rules._engine.counted import Cost
from gpudiag.rules._engine.evidence import Evidence
from gpudiag.rules._engine.verdict import Severity
from gpudiag.rules.stalls import stalls_aperiodic, stalls_periodic

DRAWS = 20


def waited(seed: int, period_s: float) -> tuple[float, Evidence | None]:
    """Irregular waits of irregular lengths in some hours of work at 96 %, sampled as nvidia-smi does, a second back:
    their share of the work, or that of all time without a kernel where single samples show them; and what is found.
    """
    rng = np.random.default_rng([seed, int(period_s)])
    span_s, usual_s, share = rng.uniform(3600, 4 * 3600), rng.choice([20, 40, 90, 200]), rng.uniform(0.15, 0.4)
    waits, now = [], 30.0
    while now < span_s - 600:
        length = min(usual_s * math.exp(rng.normal(0, 0.5)), 550)
        waits.append((now, now + length))
        now += length + rng.exponential(usual_s * (1 - share) / share)
    start, end = np.array(waits).T
    ticks = np.arange(rng.uniform(1, 1 + period_s), span_s, period_s)
    idle = [np.clip(until[:, None] - start, 0, end - start).sum(axis=1) for until in (ticks - 1, ticks)]
    sampled = run(gpu=gpu(ticks, util_pct=np.rint(96 * (1 - (idle[1] - idle[0])))))
    table = measure_stalls(MemoRun.of(sampled))  # what its parts need is made once
    row = table.per_gpu.loc["0"]
    true_pct = 100 * float((end - start).sum()) / float(row["work_s"])
    return true_pct + 0.04 * (100 - true_pct) * bool(row["is_single"]), stalls_aperiodic.judge(table)


@pytest.mark.slow
@pytest.mark.parametrize("period_s", [1.0, 10.0, 30.0, 60.0])
def test_the_truth_lies_in_the_range_that_is_told(period_s: float) -> None:
    told = [(true_pct, found) for true_pct, found in (waited(seed, period_s) for seed in range(DRAWS)) if found]
    assert len(told) > DRAWS / 2
    within = [found.extra["least_pct"] <= true_pct <= found.extra["most_pct"] for true_pct, found in told]  # type: ignore[operator]
    assert np.mean(within) >= 0.93  # of 95 %, in so few draws
    rough = np.mean([bool(found.extra["is_rough"]) for _, found in told])
    assert rough == 0 if period_s == 1 else rough > 0.9 if period_s == 60 else True


def test_a_few_waits_in_single_samples_have_no_cost() -> None:
    """Six single samples of 60 s: 6 min, or 2 to 13."""
    waits = np.isin(np.arange(40), [3, 9, 14, 22, 27, 36])
    found = stalls_aperiodic.judge(
        measure_stalls(run(gpu=gpu(np.arange(40) * 60.0, util_pct=np.where(waits, 0.0, 100.0))))
    )
    assert found is not None and found.lost_gpu_h is None
    assert found.held_gpu_h is not None and 0.2 < found.held_gpu_h < 0.25
    assert found.extra["is_rough"] and 5 < float(found.extra["least_pct"]) < 7  # type: ignore[arg-type]


def test_counted_waits_vary_as_poisson() -> None:
    """Of 9 that were met the exact interval is 4.1 to 17.1 (scipy.stats.chi2)."""
    one = Cost.of(*(pd.Series([value], ["0"]) for value in (1000.0, 90.0, 9.0)), 10.0)
    assert one.least_pct["0"] == pytest.approx(4.1, abs=0.1) and one.most_pct["0"] == pytest.approx(17.1, abs=0.1)
    assert one.lost_gpu_h is None
    many = Cost.of(*(pd.Series([value], ["0"]) for value in (10_000.0, 900.0, 90.0)), 10.0)
    assert many.lost_gpu_h == pytest.approx(0.25)


@pytest.mark.parametrize(("work_s", "severity"), [(500, Severity.NOTE), (700, None)])
def test_waits_in_short_work_are_a_note(work_s: int, severity: Severity | None) -> None:
    """Its start-up may be much of it."""
    util = np.full(work_s, 96.0)
    for start in (20, 70, 130, 260, 300, 410):
        util[start : start + 20] = 0
    found = stalls_aperiodic.judge(measure_stalls(run(gpu=gpu(np.arange(len(util)) * 1.0, util_pct=util))))
    assert found is not None and found.severity is severity and found.extra["short"] is (severity is not None)


@pytest.mark.parametrize(("spread", "told"), [(0.7, True), (0.0, False)])
def test_regular_waits_of_other_lengths_are_told_with_all_idle_time(spread: float, told: bool) -> None:
    """One begins every minute; drops of more than twice the usual length are none of the regular ones."""
    rng, util = np.random.default_rng(1), np.full(5400, 96.0)
    for start in range(60, len(util) - 60, 60):
        util[start : start + min(int(10 * math.exp(rng.normal(0, spread))), 45)] = 0
    found = stalls_periodic.judge(measure_stalls(run(gpu=gpu(np.arange(len(util)) * 1.0, util_pct=util))))
    assert found is not None
    all_pct = float(found.extra["all_pct"])  # type: ignore[arg-type]
    assert all_pct == pytest.approx(100 * np.mean(util == 0), rel=0.05) if told else math.isnan(all_pct)
