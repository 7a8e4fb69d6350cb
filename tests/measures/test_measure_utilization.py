from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from smallruns import T0, gpu, gpus, run, trials

from gpudiag.errors import NotMeasurable
from gpudiag.measures.utilization import measure_utilization
from gpudiag.rules import Evidence
from gpudiag.rules.utilization import gpu_fluctuating


def test_figures_by_hand() -> None:
    use = measure_utilization(run(gpu=gpu(range(10), util_pct=[0, 10, 11, 49, 50, 100, 100, 100, 100, 100])))
    row = use.per_gpu.loc["0"]
    assert row["mean_pct"] == pytest.approx(62.0)
    assert (row["idle_pct"], row["duty_pct"], row["busy_pct"]) == pytest.approx((10, 90, 60))
    assert (row["p5_pct"], row["p50_pct"], row["p95_pct"], row["max_pct"]) == (0, 50, 100, 100)
    assert row["idle_gpu_h"] == pytest.approx(1 / 3600)
    assert (row["first_active"], row["last_active"]) == (T0 + pd.Timedelta("1s"), T0 + pd.Timedelta("9s"))
    assert use.observed_gpu_h == pytest.approx(10 / 3600)


def test_mean_is_that_of_a_one_second_grid() -> None:
    rng = np.random.default_rng(3)
    timestamps = np.cumsum(rng.integers(1, 4, 300)) * 2
    util = rng.integers(0, 101, 300).astype(float)
    seconds = np.arange(timestamps[0], timestamps[-1]) + 0.5
    nearest = np.abs(timestamps[:, None] - seconds).argmin(axis=0)
    use = measure_utilization(run(gpu=gpu(timestamps, util_pct=util)))
    # Edges differ by half a period; within them each second belongs to its nearest timestamp.
    assert use.mean_pct == pytest.approx(util[nearest].mean(), abs=0.3)


def test_while_trials_ran_is_told_apart() -> None:
    table = gpu(range(100), util_pct=[0.0] * 50 + [80.0] * 50)
    use = measure_utilization(run(gpu=table, trials=trials([("COMPLETE", 49.5, 80), ("COMPLETE", 90, 99.5)])))
    row = use.per_gpu.loc["0"]
    assert row["mean_pct"] == pytest.approx(40)
    assert row["trial_mean_pct"] == pytest.approx(80)
    assert row["trial_s"] == pytest.approx(40)
    assert row["trial_idle_gpu_h"] == 0


def test_without_trials_nothing_is_said_of_them() -> None:
    row = measure_utilization(run(gpu=gpu(range(100), util_pct=50.0))).per_gpu.loc["0"]
    assert all(math.isnan(row[name]) for name in ("trial_mean_pct", "trial_s", "trial_idle_gpu_h", "trial_p5_pct"))


def test_open_trials_count_for_as_long_as_their_gpu_is_active() -> None:
    table = gpu(range(101), util_pct=70.0)
    intervals = trials([("RUNNING", 20.5, math.nan), ("COMPLETE", 0.5, 20.5)])
    assert measure_utilization(run(gpu=table, trials=intervals)).per_gpu.at["0", "trial_s"] == pytest.approx(98.5)


def test_a_gpu_without_utilization_has_a_row_of_nan() -> None:
    table = pd.concat([gpu(range(20), "0", util_pct=50.0), gpu(range(20), "1", mem_used_mib=10.0)])
    use = measure_utilization(run(gpu=table))
    assert math.isnan(use.per_gpu.at["1", "mean_pct"]) and use.per_gpu.at["1", "n_samples"] == 0
    assert use.n_gpus == 1 and use.mean_pct == pytest.approx(50)


@pytest.mark.parametrize(
    ("used", "total", "expected"),
    [
        ([100, 400], 1000, True),  # 300 MiB are allowed at least
        ([100, 401], 1000, False),
        ([100, 1328], 24564, True),  # 5 % of 24564 MiB are 1228.2 MiB
        ([100, 1329], 24564, False),
    ],
)
def test_memory_at_baseline(used: list[float], total: float, expected: bool) -> None:
    table = gpu([0, 1], util_pct=0.0, mem_used_mib=used, mem_total_mib=total)
    assert measure_utilization(run(gpu=table)).per_gpu.at["0", "mem_at_baseline"] is expected


def test_unknown_memory_is_no_baseline() -> None:
    assert math.isnan(measure_utilization(run(gpu=gpu([0, 1], util_pct=0.0))).per_gpu.at["0", "mem_at_baseline"])


def test_series_keeps_extremes_means_and_gaps() -> None:
    util = np.full(20_000, 95.0)
    util[7_777] = 0.0
    timestamps = np.arange(20_000.0)
    timestamps[10_000:] += 500
    use = measure_utilization(run(gpu=gpu(timestamps, util_pct=util)))
    assert len(use.series) <= 2001
    assert use.series["util_pct"].min() == 0
    assert use.series["util_pct"].isna().sum() == 1
    gap = use.series.loc[use.series["util_pct"].isna(), "time"].iloc[0]
    assert T0 + pd.Timedelta("9999s") < gap < T0 + pd.Timedelta("10500s")
    # The bin of the dip holds about 20 samples, so its mean stays near 95.
    assert use.series["mean_pct"].min() == pytest.approx(95 * (1 - 1 / 20.5), abs=0.5)


def test_mig_and_an_absent_log_are_different_reasons() -> None:
    with pytest.raises(NotMeasurable, match="MIG"):
        measure_utilization(run(gpu=gpu(range(5), mem_used_mib=3.0)))
    with pytest.raises(NotMeasurable, match="no GPU telemetry") as caught:
        measure_utilization(run(gpus=gpus(gpu=["0"], name=["Tesla T4"])))
    assert "nvidia-smi" in caught.value.remedy


def test_one_gap_between_two_jobs_is_no_alternation() -> None:
    """A quarter of an hour idle between two jobs, no part of the activity, and the same in three waits."""
    timestamps = np.arange(0.0, 3600, 10)
    gap = measure_utilization(run(gpu=gpu(timestamps, util_pct=np.where((timestamps // 900) == 1, 0.0, 95.0))))
    waits = measure_utilization(run(gpu=gpu(timestamps, util_pct=np.where(timestamps % 1000 >= 700, 0.0, 95.0))))
    assert (gap.per_gpu.at["0", "active_idle_phases"], waits.per_gpu.at["0", "active_idle_phases"]) == (0, 3)
    assert gap.per_gpu.at["0", "active_s"] == 2700 and gap.per_gpu.at["0", "active_idle_gpu_h"] == 0
    assert waits.per_gpu.at["0", "active_idle_gpu_h"] == 900 / 3600
    assert not isinstance(gpu_fluctuating.judge(gap), Evidence) and isinstance(gpu_fluctuating.judge(waits), Evidence)


def test_idle_time_between_trials_is_no_phase_of_their_work() -> None:
    timestamps = np.arange(0.0, 1000, 10)
    rows = [("COMPLETE", 0.0, 295.0), ("COMPLETE", 705.0, 1000.0)]
    table = gpu(timestamps, util_pct=np.where((timestamps >= 300) & (timestamps < 700), 0.0, 95.0))
    assert measure_utilization(run(gpu=table, trials=trials(rows))).per_gpu.at["0", "active_idle_phases"] == 0


@pytest.mark.parametrize(("stall_s", "alternates"), [(0, False), (10, True)])
def test_a_search_of_short_trials_alternates_only_where_trials_wait(stall_s: int, alternates: bool) -> None:
    """Trials of 100 s, each after 4 s without one: 6 s of start-up, and a wait in the middle, or none."""
    second = np.arange(0.5, 30 * 104, 1.0)
    within = second % 104 - 4
    idle = (within < 6) | ((within >= 50) & (within < 50 + stall_s))
    table = trials([("COMPLETE", 104 * i + 4, 104 * (i + 1)) for i in range(30)], gpu="0")
    found = measure_utilization(run(gpu=gpu(second, util_pct=np.where(idle, 0.0, 95.0)), trials=table))
    assert found.per_gpu.at["0", "active_p5_pct"] == 0
    assert found.per_gpu.at["0", "idle_in_trials_gpu_h"] == pytest.approx(30 * stall_s / 3600, abs=0.01)
    assert isinstance(gpu_fluctuating.judge(found), Evidence) is alternates
