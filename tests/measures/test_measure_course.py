"""Stalls, shifts, leaks, failures, searches and agreement, against values worked out by hand or by another method."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from smallruns import at, gpu, gpus, reports, run, study, trials

from gpudiag._run.directions import with_directions
from gpudiag._run.failure_text import classify
from gpudiag.manifest import DataLoader, Settings
from gpudiag.measures._time.periodicity import find_period
from gpudiag.measures._time.segments import PENALTY, change_points
from gpudiag.measures.agreement import measure_agreement
from gpudiag.measures.balance import measure_balance
from gpudiag.measures.failures import measure_failures
from gpudiag.measures.feed import measure_feed
from gpudiag.measures.idleness import measure_idleness
from gpudiag.measures.leak import _slope, measure_leak
from gpudiag.measures.loader import measure_loader
from gpudiag.measures.recorder import measure_recorder
from gpudiag.measures.search import _trend, measure_search
from gpudiag.measures.shift import measure_shift
from gpudiag.measures.stalls import measure_stalls
from gpudiag.run import Run, RunInfo
from gpudiag.schema import EVENTS, HOST, REPORTS, conform

NAN = math.nan


@pytest.mark.parametrize(("period", "step"), [(70, 1), (70, 5), (120, 10), (40, 5)])
def test_the_period_of_dips_is_found(period: int, step: int) -> None:
    rng = np.random.default_rng(1)
    timestamps = np.arange(0, 3600, step)
    value = np.where(timestamps % period < period / 4, 5.0, 92.0) + rng.normal(0, 3, len(timestamps))
    found = find_period(timestamps * 1_000_000, value, 1e6 * step)
    assert found and found.period_s == pytest.approx(period, rel=0.05)


def test_noise_and_trends_have_no_period() -> None:
    rng = np.random.default_rng(2)
    for seed in range(20):
        noise = np.random.default_rng(seed).normal(90, 5, 90 + 40 * seed)
        assert find_period(np.arange(len(noise)) * 5_000_000, noise, 5e6) is None
    assert find_period(np.arange(500) * 1_000_000, np.arange(500) + rng.normal(0, 1, 500), 1e6) is None
    assert find_period(np.arange(500) * 1_000_000, np.full(500, 7.0), 1e6) is None


def test_stalls_of_a_periodic_gpu_by_hand() -> None:
    timestamps = np.arange(0.0, 3600, 5)
    table = gpu(timestamps, util_pct=np.where(timestamps % 100 < 20, 0.0, 90.0))
    row = measure_stalls(run(gpu=table, trials=trials([("COMPLETE", -60, 3660)]))).per_gpu.loc["0"]
    assert row["period_s"] == 100 and row["width_s"] == pytest.approx(20, abs=5)
    assert row["lost_pct"] == pytest.approx(20, abs=1) and row["depth_pct"] == 90


def brute_force(values: np.ndarray, least: int) -> list[int]:
    """The best of all partitions into up to three segments."""
    n = len(values)
    noise = np.median(np.abs(np.diff(values))) / 0.6745 / 2**0.5

    def cost(cuts: list[int]) -> float:
        edges = [0, *cuts, n]
        parts = [values[a:b] for a, b in pairwise(edges)]
        return sum(((p - p.mean()) ** 2).sum() for p in parts) / noise**2 + PENALTY * math.log(n) * len(cuts)

    one = [[i] for i in range(least, n - least + 1)]
    two = [[i, j] for i in range(least, n) for j in range(i + least, n - least + 1)]
    return min([[], *one, *two], key=cost)


@pytest.mark.parametrize("seed", range(6))
def test_change_points_are_the_best_partition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = np.concatenate([rng.normal(90, 2, 12), rng.normal(60, 2, 9), rng.normal(85, 2, 11)])[: 20 + 2 * seed]
    found = change_points(values, 3)
    if len(found) <= 2:
        assert found == brute_force(values, 3)
    assert change_points(np.full(30, 4.0), 3) == [] and change_points(values[:5], 3) == []


def test_the_last_level_holds_the_small_steps_within_it() -> None:
    """Forty minutes at 90 %, then twenty at 50 and twenty at 50.4 %: nearly without noise each is a level of PELT."""
    level = np.repeat([90.0, 50.0, 50.4], [240, 120, 120])
    util = level + np.tile(np.repeat([0.0, 0.02], 6), 40)
    row = measure_shift(run(gpu=gpu(np.arange(480) * 10.0, util_pct=util))).per_gpu.loc["0"]
    assert row["n_segments"] == 2 and row["fall_s"] == pytest.approx(2400, abs=60)
    assert row["fall_pct"] == pytest.approx(90 - 50.2, abs=0.5)


def test_two_sides_of_a_hole_are_no_period() -> None:
    """Trainings at 100 % and 50 %, idle at their ends, 24 min apart: little of one has a partner so much later."""
    value = np.concatenate([np.full(1490, 100.0), np.zeros(20), np.zeros(63), np.full(1490, 50.0)])
    time = np.append(np.arange(1510), 2921 + np.arange(1553))
    assert find_period(time * 1_000_000, value, 1e6) is None


def test_leak_is_the_slope_of_a_straight_line() -> None:
    timestamps = np.arange(0.0, 7200, 10)
    rising = gpu(timestamps, mem_used_mib=4000 + timestamps, mem_total_mib=24000.0)
    row = measure_leak(run(gpu=rising)).per_gpu.loc["0"]
    assert row["slope_pct_h"] == pytest.approx(100 * 3600 / 24000, rel=1e-6)
    assert row["p_rise"] == pytest.approx(stats.norm.sf((190 - 1) / math.sqrt(20 * 19 * 45 / 18)), rel=1e-9)
    flat = gpu(timestamps, mem_used_mib=4000.0, mem_total_mib=24000.0)
    assert measure_leak(run(gpu=flat)).per_gpu.at["0", "p_rise"] == 1.0


def test_trials_of_differing_size_one_after_another_are_no_leak() -> None:
    """Three levels that happen to rise fill twenty blocks: the order of three is chance, one in six."""
    steps = gpu(range(0, 7200, 20), mem_used_mib=np.repeat([4000.0, 5000.0, 6000.0], 120), mem_total_mib=24000.0)
    noisy = steps.assign(mem_used_mib=steps["mem_used_mib"] + np.random.default_rng(4).normal(0, 20, 360))
    row = measure_leak(run(gpu=noisy)).per_gpu.loc["0"]
    assert row["p_rise"] > 0.01 and row["slope_pct_h"] > 1
    for shape in (np.square, np.sqrt, lambda x: np.maximum(0, 2 * x - 1)):
        curved = noisy.assign(mem_used_mib=4000 + 2000 * shape(np.linspace(0, 1, 360)))
        assert measure_leak(run(gpu=curved)).per_gpu.at["0", "p_rise"] < 0.01, "a leak need not be a straight line"
    grows = noisy.assign(mem_used_mib=np.linspace(4000, 6000, 360) + np.random.default_rng(4).normal(0, 200, 360))
    assert measure_leak(run(gpu=grows)).per_gpu.at["0", "p_rise"] < 0.001


def search_of(at_once: int, kept_mib: float, seed: int = 0) -> Run:
    """90 trials of 3 sizes that free all at their end, but for ``kept_mib`` that their workers gather meanwhile."""
    rng = np.random.default_rng(seed)
    free, rows, size = 7.0 * np.arange(at_once), [], []
    for _ in range(90):
        worker = int(free.argmin())
        end = free[worker] + rng.uniform(150, 250)
        rows.append(("COMPLETE", float(free[worker]), float(end)))
        size.append(rng.choice([20000.0, 30000.0, 50000.0]) / at_once)
        free[worker] = end + 3
    last = max(end for _, _, end in rows)
    timestamps = np.arange(-20.0, last + 10, 2)
    used = 500 + kept_mib * np.clip(timestamps / last, 0, 1)
    for (_, start, end), mib in zip(rows, size, strict=True):
        used += np.where((timestamps >= start + 28) & (timestamps < end), mib, 0)
    return run(gpu=gpu(timestamps, mem_used_mib=used, mem_total_mib=81559.0), trials=trials(rows))


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_what_trials_free_at_their_end_is_no_leak_and_hides_none(at_once: int) -> None:
    """However the sizes of those that run together happen to follow each other."""
    for seed in range(2):
        found = measure_leak(search_of(at_once, 0.0, seed))
        assert found.per_gpu.at["0", "rise_pct"] < 5, "they grow in no run"
        assert found.freed_pct > 50
        row = measure_leak(search_of(at_once, 16000.0, seed)).per_gpu.loc["0"]
        assert row["p_rise"] < 0.01 and row["rise_mib"] == pytest.approx(16000 * 0.9, rel=0.2)


def test_memory_that_a_process_keeps_is_not_freed_at_the_ends() -> None:
    rows = [("COMPLETE", 100.0 * i, 100.0 * i + 95) for i in range(40)]
    kept = gpu(np.arange(-20.0, 4100, 5), mem_used_mib=8000.0, mem_total_mib=24000.0)
    assert measure_leak(run(gpu=kept, trials=trials(rows))).freed_pct == 0
    assert math.isnan(measure_leak(run(gpu=kept)).freed_pct)


def test_one_long_trial_that_grows_is_a_leak() -> None:
    """It frees all at its end; until then memory grew."""
    timestamps = np.arange(0.0, 7200, 10)
    used = np.where(timestamps < 7150, 4000 + timestamps, 300.0)
    log = gpu(timestamps, mem_used_mib=used, mem_total_mib=24000.0)
    row = measure_leak(run(gpu=log, trials=trials([("COMPLETE", 0.0, 7150.0)]))).per_gpu.loc["0"]
    assert row["p_rise"] < 1e-6 and row["rise_mib"] == pytest.approx(0.855 * 7150, rel=0.01)


def test_memory_that_stays_after_the_last_trial() -> None:
    timestamps = np.arange(0.0, 400, 5)
    used = np.where(timestamps < 50, 300.0, np.where(timestamps < 300, 9000.0, 2300.0))
    leak = measure_leak(run(gpu=gpu(timestamps, mem_used_mib=used), trials=trials([("COMPLETE", 50, 300)])))
    assert leak.ended and leak.per_gpu.at["0", "residual_mib"] == 2000.0


@pytest.mark.parametrize(
    ("works_until_s", "left_mib", "most_mib"), [(300, 2000.0, 2000.0), (350, 0.0, 0.0), (500, NAN, 2000.0)]
)
def test_memory_of_work_after_the_last_trial_is_not_left_over(
    works_until_s: float, left_mib: float, most_mib: float
) -> None:
    """Another job holds 2,000 MiB beside the last trial and after it, and frees them with its work."""
    timestamps = np.arange(0.0, 400, 5)
    held = np.where(timestamps < (works_until_s if works_until_s > 300 else 500), 2300.0, 300.0)
    used = np.where(timestamps < 50, 300.0, np.where(timestamps < 300, 9000.0, held))
    util = np.where((timestamps >= 50) & (timestamps < works_until_s), 80.0, 0.0)
    made = run(gpu=gpu(timestamps, mem_used_mib=used, util_pct=util), trials=trials([("COMPLETE", 50, 300)]))
    row = measure_leak(made).per_gpu.loc["0"]
    assert row["residual_mib"] == pytest.approx(left_mib, nan_ok=True)
    assert row["residual_high_mib"] == most_mib and row["after_s"] == pytest.approx(87.5, abs=5)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("RuntimeError: CUDA error: device-side assert triggered", "device_assert"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", "oom"),
        ("CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate", "oom"),
        ("an illegal memory access was encountered", "illegal_access"),
        ("Killed", "host_killed"),
        ("worker exited with code 137", "host_killed"),
        ("NCCL error: unhandled system error", "nccl"),
        ("GPU is lost", "gpu_lost"),
        ("ValueError: loss is NaN", "nan"),
        ("Trial 7 failed because of the following error: The value nan is not acceptable.", "nan"),
        ("RuntimeError: Function 'PowBackward0' returned nan values in its 0th output", "nan"),
        ("FloatingPointError: Loss became infinite or NaN at iteration=7!", "nan"),
        ("Loss is inf, stopping training", "nan"),
        ("ValueError: no loss information was given", "other"),
        (
            "RuntimeError: DataLoader worker (pid 9) is killed by signal: Bus error. It is possible that dataloader's "
            "workers are out of shared memory. Please try to raise your shared memory limit.",
            "shm",
        ),
        ("RuntimeError: DataLoader worker (pid 9) is killed by signal: Killed.", "host_killed"),
        ("RuntimeError: unable to write to file </torch_9_2>: No space left on device (28)", "shm"),
        ("triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 131072", "other"),
        ("KeyError: 'nanmean'", "other"),
        ("CANCELLED AT 2026-03-01T10:00:00 DUE TO TIME LIMIT ***", "time_limit"),
        ("TIMEOUT, exit code 0:15", "time_limit"),
        ("NCCL watchdog: collective operation timeout, walltime 600000", "nccl"),
        ("requests.exceptions.ConnectTimeout: timed out", "other"),
        ("OUT_OF_MEMORY, exit code 0:125", "host_killed"),
        ("skilled workers", "other"),
        ("KeyboardInterrupt", "stopped"),
        ("Traceback (most recent call last):\n  File 'nccl.py'\nKeyboardInterrupt\n", "stopped"),
        ("Trial 3 failed because of the following error: KeyboardInterrupt().", "stopped"),
        ("ray.exceptions.TaskCancelledError: Task was cancelled", "stopped"),
        ("ray.exceptions.RayCancellationError", "stopped"),
        ("CANCELLED by 1000, exit code 0:15", "stopped"),
        ("cancelled", "stopped"),
        ("exit code 130", "stopped"),
        ("exit code 1300", "other"),
        ("KeyError: 'interrupted by a user'", "other"),
        ("RuntimeError: the server canceled our request", "other"),
        ("CUDA out of memory, then SIGINT", "oom"),
        ("", "unknown"),
        (None, "unknown"),
    ],
)
def test_classes_of_failure_are_kept_apart(text: str | None, kind: str) -> None:
    assert classify(text) == kind


def test_a_poisoned_worker_is_one_event() -> None:
    rows = [("COMPLETE", 0, 300), ("FAIL", 300, 500), ("FAIL", 501, 503), ("FAIL", 504, 506), ("FAIL", 400, 402)]
    text = [None, *["device-side assert triggered"] * 4]
    found = measure_failures(run(trials=trials(rows, worker=["a", "a", "a", "a", "b"], detail=text)))
    assert (found.n_fail, found.n_events) == (4, 2)
    assert found.failures["follows"].tolist() == [False, True, True, False]
    alone = measure_failures(run(trials=trials(rows[:4], detail=text[:4])))
    assert alone.n_events == 1


@pytest.mark.slow
def test_a_failed_trial_was_alone_if_none_on_its_gpu_ran_at_its_end() -> None:
    rows = [("FAIL", 0, 100), ("FAIL", 100, 200), ("COMPLETE", 150, 190), ("FAIL", 300, 400), ("COMPLETE", 350, 450)]

    def alone(more: tuple[str, float, float] | None = None, **columns: Any) -> list[bool]:
        table = trials([*rows, *([more] if more else [])], **columns)
        return measure_failures(run(trials=table)).failures["alone"].tolist()

    assert alone() == [True, True, False]
    assert alone(gpu=["0", "0", "0", "0", "1"]) == [True, True, True]
    assert alone(gpu=["0", "0", "0", "0", None]) == [True, True, False], "it may have been on the same one"
    assert alone(gpu=["0", "0", "0", "0,1", "1"]) == [True, True, False]
    assert alone(("RUNNING", 250, math.nan)) == [True, True, False]
    assert alone(("RUNNING", 50, math.nan)) == [False] * 3
    assert alone(("WAITING", math.nan, math.nan)) == [True, True, False]


def test_memory_before_failures_agrees_with_mann_whitney() -> None:
    ends = np.arange(100.0, 2100, 100)
    states = ["FAIL" if i % 3 == 0 else "COMPLETE" for i in range(20)]
    timestamps = np.arange(0.0, 2200, 5)
    used = np.array([9600.0 if states[min(int(t // 100), 19)] == "FAIL" else 5000.0 + t for t in timestamps - 1])
    table = gpu(timestamps, mem_used_mib=used, mem_total_mib=10000.0)
    rows = [(state, end - 90, end) for state, end in zip(states, ends, strict=True)]
    found = measure_failures(run(gpu=table, trials=trials(rows)))
    assert found.fail_before_pct == pytest.approx(96) and found.full_pct == 100 and found.p_memory < 0.01


def test_repeats_drift_and_stated_counts() -> None:
    rows = [("COMPLETE", 100 * i, 100 * i + 50 + i) for i in range(30)]
    lr = [0.1, 0.1, *np.linspace(0.2, 0.9, 28)]
    found = measure_search(run(trials=trials(rows, **{"params.lr": lr}), studies=study("MINIMIZE")))
    assert (found.n_duplicates, found.n_with_params) == (1, 30)
    assert found.duplicate_worker_h == pytest.approx(51 / 3600)
    assert found.drift_rho == 1.0 and found.drift_ratio == pytest.approx((50 + 24.5) / (50 + 4.5))
    assert measure_search(run(trials=trials(rows, **{"params.lr": lr}))).n_with_params == 0


@pytest.mark.parametrize(
    ("recorded", "stated", "values", "unknown", "used"),
    [
        ("", (), {"value": [1.0, 2.0]}, 1, ""),
        ("", ("minimize",), {"value": [1.0, 2.0]}, 0, "MINIMIZE"),
        ("MAXIMIZE", ("minimize",), {"value": [1.0, 2.0]}, 0, "MAXIMIZE"),  # the file knows
        ("", ("minimize", "maximize"), {"value": [1.0, 2.0]}, 1, ""),  # for two objectives
        (",", ("minimize", "maximize"), {"value_0": [1.0, 2.0], "value_1": [1.0, 1.0]}, 0, "MINIMIZE,MAXIMIZE"),
        ("", ("minimize",), {"value": [1.0, 1.0]}, 0, ""),  # a training, or a batch: there is no best
        ("", ("minimize",), {}, 0, ""),
    ],
)
def test_a_stated_direction_is_of_studies_that_have_none(
    recorded: str, stated: tuple[str, ...], values: dict[str, list[float]], unknown: int, used: str
) -> None:
    table = trials([("COMPLETE", 0.0, 10.0), ("COMPLETE", 10.0, 20.0)], **values)
    told = with_directions(run(trials=table, studies=study(recorded)), stated)
    assert told.studies["directions"].tolist() == [used]
    assert measure_search(told).n_undirected == unknown
    assert bool(told.info.notes) == (bool(stated) and used.lower() != ",".join(stated))


def test_studies_of_different_length_are_no_drift() -> None:
    slow = trials([("COMPLETE", 600 * i, 600 * i + 590) for i in range(30)], study="slow")
    fast = trials([("COMPLETE", 20000 + 60 * i, 20000 + 60 * i + 58) for i in range(30)], study="fast")
    found = measure_search(run(trials=pd.concat([slow, fast], ignore_index=True)))
    assert (found.drift_rho, found.drift_p, found.drift_ratio, found.n_drift) == (0.0, 1.0, 1.0, 30)


def test_the_study_that_drifts_is_named_and_pays_for_the_choice() -> None:
    noise = np.random.default_rng(5).normal(0, 4, 30)
    rising = [("COMPLETE", 100 * i, 100 * i + 50 + i + noise[i]) for i in range(30)]
    steady = trials([("COMPLETE", 100 * i, 100 * i + 50) for i in range(30)], study="steady")
    found = measure_search(run(trials=pd.concat([steady, trials(rising, study="rising")], ignore_index=True)))
    alone = stats.spearmanr(range(30), [end - start for _, start, end in rising])
    assert found.drift_study == "rising" and found.drift_p == pytest.approx(2 * alone.pvalue)
    assert found.drift_rho == pytest.approx(alone.statistic)


def test_studies_with_other_gaps_do_not_slow_down() -> None:
    """Gaps of about 1 s, then of about 30 s: the sampler of neither gets slower."""
    rng = np.random.default_rng(3)
    parts, at = [], 0.0
    for name, gap_s in (("quick", 1.0), ("slow", 30.0)):
        rows = []
        for _ in range(40):
            rows.append(("COMPLETE", at, at + 60))
            at += 60 + gap_s * rng.uniform(0.8, 1.2)
        parts.append(trials(rows, study=name))
    found = measure_search(run(trials=pd.concat(parts, ignore_index=True)))
    assert found.gap_p > 0.05 and found.gap_last_s < 2 * found.gap_first_s and found.n_gaps == 39
    one = measure_search(run(trials=pd.concat(parts, ignore_index=True).assign(study="one", trial=range(80))))
    assert one.gap_p < 0.01 and one.gap_last_s > 10 and one.gap_study == ""


def test_outliers_are_named_with_their_study_where_there_are_several() -> None:
    rows = [("COMPLETE", 100 * i, 100 * i + 50) for i in range(20)] + [("COMPLETE", 0, 9000)]
    alone = measure_search(run(trials=trials(rows))).outliers
    both = measure_search(run(trials=pd.concat([trials(rows, "a"), trials(rows[:3], "b")], ignore_index=True))).outliers
    assert alone["name"].tolist() == ["20"] and both["name"].tolist() == ["a/20"]


def test_a_failure_that_hung_is_an_outlier_and_one_of_usual_length_is_none() -> None:
    pruned = [("PRUNED", 100 * i, 100 * i + 10 + i % 3) for i in range(40)]
    rows = [*pruned, ("COMPLETE", 0, 900), ("COMPLETE", 0, 1000), ("FAIL", 0, 950), ("FAIL", 0, 46 * 3600)]
    found = measure_search(run(trials=trials(rows))).outliers
    assert found[["trial", "state", "duration_s"]].to_numpy().tolist() == [[43, "FAIL", 46 * 3600.0]]
    assert found["median_s"].tolist() == [pytest.approx(np.median([end - start for _, start, end in rows]), rel=0.1)]


def test_waits_of_workers_that_remain_are_theirs() -> None:
    four = [("COMPLETE", 100 * k + w, 100 * k + 98 + w) for k in range(5) for w in range(2)]
    two = [("COMPLETE", 2000 + 100 * k, 2000 + 100 * k + 97) for k in range(25)]
    found = measure_search(run(trials=trials(four + two)))
    assert found.gap_last_s == 3.0


def test_the_tail_is_the_time_of_the_last_trial_alone() -> None:
    found = measure_search(run(trials=trials([("COMPLETE", 0, 100), ("COMPLETE", 0, 600)])))
    assert (found.tail_s, found.peak, found.tail_pct) == (500, 2, pytest.approx(100 * 500 / 600))


def test_agreement_is_spearmans() -> None:
    rng = np.random.default_rng(3)
    early, last = rng.random(20), rng.random(20)
    table = pd.concat(
        [
            reports({i: [1, 5] for i in range(20)}).assign(value=np.column_stack([early, last]).ravel()),
            reports({20: [1]}),
        ]
    )
    rows = [("COMPLETE", i, i + 1) for i in range(20)] + [("PRUNED", 20, 21)]
    found = measure_agreement(run(trials=trials(rows), reports=conform(table, REPORTS)))
    assert (found.cut_step, found.n) == (1, 20)
    assert found.rho == pytest.approx(stats.spearmanr(early, last).statistic)
    assert found.rho_low < found.rho < found.rho_high
    failed = [("FAIL", 0, 1)] * 6 + rows[6:]
    few = measure_agreement(run(trials=trials(failed), reports=conform(table, REPORTS)))
    assert few.n == 14 and math.isnan(few.rho)


def test_jain_and_gini_by_hand() -> None:
    table = pd.concat([gpu(range(100), "0", util_pct=3.0), gpu(range(100), "1", util_pct=20.0)])
    found = measure_balance(run(gpu=table))
    assert found.jain == pytest.approx(23**2 / (2 * 409)) and found.gini == pytest.approx(17 / 46)


def test_a_starved_gpu_is_seen_even_where_it_never_works() -> None:
    timestamps = np.arange(0.0, 600, 5)
    host = conform(pd.DataFrame({"time": at(timestamps), "cpu_max_core_pct": 99.0, "cpu_pct": 8.0}), HOST)
    table = gpu(timestamps, util_pct=4.0, mem_used_mib=900.0, mem_total_mib=8192.0)
    row = measure_feed(run(gpu=table, trials=trials([("COMPLETE", 0, 600)]), host=host)).per_gpu.loc["0"]
    assert row["starved_pct"] == 100 and row["p95_cpu_pct"] == 99


@pytest.mark.parametrize(("hole_s", "seen_s"), [(0, 3600), (300, 3300), (340, 1800), (1500, 1800)])
def test_an_idle_end_reaches_to_a_hole_that_may_hide_work(hole_s: int, seen_s: int) -> None:
    """An hour of idleness with a hole in its middle: a tenth of what is seen idle is let pass."""
    timestamps = np.arange(0.0, 3600 + 600 + 3600, 5)
    for idle in (timestamps < 3600, timestamps >= 4200):
        middle = timestamps[idle].mean()
        later = idle & (timestamps > middle) if idle[-1] else idle & (timestamps < middle)
        sign = -1 if idle[-1] else 1  # the half at the work loses hole_s
        hidden = idle & ~later & (sign * (timestamps - middle) < hole_s)
        table = gpu(timestamps[~hidden], util_pct=np.where(idle, 0.0, 90.0)[~hidden])
        row = measure_idleness(run(gpu=table)).per_gpu.loc["0"]
        assert row["trail_s" if idle[-1] else "lead_s"] == pytest.approx(seen_s, abs=15)


def test_every_end_of_a_fall_counts_as_one_that_frees_memory() -> None:
    """Four trials a round end in the same second and free all; a fifth of the trials ended before the record began."""
    times = np.arange(0, 1000, 2.0)
    used = np.where((times % 100) < 90, 8000.0, 500.0)
    rounds = [("COMPLETE", 100.0 * k, 100.0 * k + 90.0) for k in range(10) for _ in range(4)]
    before = [("COMPLETE", -100.0, -10.0)] * 10
    table = gpu(times, util_pct=50.0, mem_used_mib=used, mem_total_mib=80_000.0)
    assert measure_leak(run(gpu=table, trials=trials(before + rounds))).freed_pct == 100


def test_loader_lines_are_read_from_events() -> None:
    told = ["[TRAIN PROFILE] DataLoader avg: 25.3ms, max: 78.1ms", "time: 11.3min | 30.0 batch/s"]
    events = conform(pd.DataFrame({"time": at([0, 1]), "kind": "log", "detail": told}), EVENTS)
    found = measure_loader(run(events=events))
    assert found.avg_ms == 25.3 and found.of_step_pct == pytest.approx(25.3 * 30 / 10)


def test_a_stuck_sensor_and_a_slow_sampler() -> None:
    steps = np.where(np.arange(400) % 40 < 20, 2.0, 5.0)
    util = np.where(np.arange(400) % 40 < 20, 0.0, 95.0)
    table = gpu(np.cumsum(np.roll(steps, 1)), util_pct=util, power_w=55.0, power_limit_w=450.0)
    row = measure_recorder(run(gpu=table)).per_gpu.loc["0"]
    assert row["slow_ratio"] == 2.5 and row["stuck_s"] == pytest.approx(400 * 3.5, rel=0.02)
    assert measure_recorder(run(gpu=table)).constants["column"].tolist() == ["power_w"]
    noisy = table.assign(power_w=np.where(util > 50, 300.0, 30.0))
    assert measure_recorder(run(gpu=noisy)).per_gpu.at["0", "stuck_s"] == 0


@pytest.mark.parametrize(("cpu_pct", "found"), [(100.0, 0), (99.0, 1), (0.0, 1), (57.0, 1)])
def test_a_cpu_that_is_saturated_throughout_is_no_placeholder(cpu_pct: float, found: int) -> None:
    host = conform(pd.DataFrame({"time": at(range(60)), "cpu_pct": cpu_pct}), HOST)
    profile = measure_recorder(run(gpu=gpu(range(60), util_pct=5.0), host=host))
    assert len(profile.constants) == found and profile.n_judged == 1


def test_one_card_under_two_indices_is_named() -> None:
    both = gpus(gpu=["0", "1"], uuid=["GPU-a", "GPU-a"])
    found = measure_recorder(run(gpu=gpu(range(5), util_pct=5.0), gpus=both))
    assert found.mixed.to_numpy().tolist() == [["0, 1", "shared", "uuid", 1]]


@pytest.mark.parametrize(
    ("names", "uuids", "shared"),
    [
        (["0", "1"], [None, None], ["0, 1"]),
        (["0", "1"], ["GPU-a", "GPU-a"], ["0, 1", "0, 1"]),
        (["0", "0b"], ["GPU-a", "GPU-b"], []),
        (["n1/0", "n2/0"], [None, None], []),
        (["n1/0", "n1/1"], [None, None], ["n1/0, n1/1"]),
    ],
)
def test_a_bus_id_is_one_of_a_machine(names: list[str], uuids: list[str | None], shared: list[str]) -> None:
    both = gpus(gpu=names, uuid=uuids, bus_id=["0000:01:00.0"] * 2)
    found = measure_recorder(run(gpu=gpu(range(5), util_pct=5.0), gpus=both))
    assert found.mixed["gpu"].tolist() == shared


def test_the_loader_s_workers_and_cores_are_those_of_pytorch_s_warning() -> None:
    line = (
        "UserWarning: This DataLoader will create {} worker processes in total. Our suggested max number of worker in "
        "current system is {}, which is smaller than what this DataLoader is going to create."
    )
    told = pd.DataFrame(
        {"time": at([0, 1]), "kind": "loader_workers", "detail": [line.format(8, 4), line.format(6, 4)]}
    )
    events = conform(told, EVENTS)
    found = measure_loader(run(events=events))
    assert (found.workers_per_trial, found.cores, found.n_warned) == (8, 4, 2)
    stated = RunInfo(settings=Settings(cpu_cores=16), dataloader=DataLoader(num_workers=2))
    found = measure_loader(Run(events=events, info=stated))
    assert (found.workers_per_trial, found.cores) == (2, 16)


@given(values=st.lists(st.integers(0, 9) | st.floats(-1e3, 1e3), min_size=6, max_size=60))
def test_trends_are_those_of_scipy(values: list[float]) -> None:
    x, y = np.cumsum(np.arange(1.0, len(values) + 1)), np.array(values, float)
    assert _slope(x, y) == pytest.approx(stats.theilslopes(y, x).slope)
    if np.ptp(y) > 0:
        rho, p, *_ = _trend(y, 6)
        found = stats.spearmanr(np.arange(len(y)), y)
        assert (rho, p) == pytest.approx((found.statistic, found.pvalue), abs=1e-9)
