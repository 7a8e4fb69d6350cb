"""The two comparisons that people made by hand, from data alone: what holds, what does not, and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudiag.comparison.compare import Comparison, compare
from gpudiag.load import load_run
from gpudiag.report._render.terminal import render
from gpudiag.report.comparison import text
from gpudiag.run import Run


@pytest.fixture(scope="module")
def idle(samples: Path) -> Comparison:
    folder = samples / "idle-second-gpu"
    return compare(folder / "baseline", folder / "experiment")


@pytest.fixture(scope="module")
def starved(samples: Path) -> Comparison:
    folder = samples / "starved-input-pipeline"
    return compare(load_run(folder / "before"), load_run(folder / "after"))


def status(pair: Comparison) -> dict[str, str]:
    return {check.check: check.status for check in pair.gate}


def claim(pair: Comparison, name: str) -> dict[str, float]:
    return {one.claim: one.values for one in pair.consistency}[name]


@pytest.mark.slow
def test_the_idle_gpu_comparison_is_invalid_and_says_why_in_order(idle: Comparison) -> None:
    assert idle.verdict == "invalid" and idle.invalid
    assert [check.check for check in idle.reasons][:3] == ["not-a-subset", "parameters-applied", "same-workload"]
    subset, params, items = idle.reasons[:3]
    assert "span 4 min 20 s, in which 340 other items ended" in str(subset.evidence)
    assert "num_leaves 255, max_depth 15, n_estimators 1000, gpu_use_dp true" in str(params.evidence)
    assert "576 items there, 36 here, 36 in both" in str(items.evidence)
    assert status(idle)["telemetry-covers-job"] == "fail" and status(idle)["equal-success"] == "fail"


@pytest.mark.slow
def test_no_ratio_stands_in_its_headline(idle: Comparison) -> None:
    head = idle.headline
    assert head["verdict"].startswith("INVALID") and head["level"] == "critical"
    assert "1.22" not in " ".join([head["verdict"], *head["sentences"]])
    assert {q.verdict for q in idle.quantities if q.kind in ("time", "speed", "price")} == {"invalid"}


@pytest.mark.slow
def test_it_is_slower_by_wall_time_over_n_not_faster(idle: Comparison) -> None:
    time = idle.quantity("time_per_item")
    results = 576 - 17, 36 - 2  # what failed is no result
    assert (time.baseline, time.experiment) == pytest.approx((400.3 / results[0], 29.8 / results[1]), rel=1e-3)
    assert time.ratio == pytest.approx(1.224, abs=0.005) and time.low < time.ratio < time.high
    assert idle.quantity("throughput").ratio == pytest.approx(1 / time.ratio)
    assert claim(idle, "span of the shared items")["naive_speedup"] == pytest.approx(260.0 / 29.8, rel=1e-3)


def test_it_is_not_called_impossible(idle: Comparison) -> None:
    work = claim(idle, "time against work")
    assert work["work_low"] == pytest.approx(2.0) and work["work_high"] == pytest.approx(2 * 255 / 127)
    assert {one.claim: one.status for one in idle.consistency}["time against work"] == "consistent"
    told = render(text(idle.document), 500).lower()
    assert "not impossible" in told and "is impossible" not in told


def test_the_telemetry_cannot_belong_to_the_job(idle: Comparison) -> None:
    needed = claim(idle, "telemetry of idle-second-gpu experiment")
    assert needed["needed_util_pct"] == pytest.approx(28 * 394 / 29.8, abs=1.5)
    assert idle.quantity("utilization").verdict == "invalid"
    assert idle.quantity("utilization_peak").verdict == "invalid"


def test_two_failures_of_36_are_no_evidence(idle: Comparison) -> None:
    failures = idle.quantity("failures")
    assert failures.p == pytest.approx(0.31, abs=0.005) and failures.verdict == "no evidence"
    assert "2 of 36" in str(failures.note) and "17 of 576" in str(failures.note)


@pytest.mark.slow
def test_the_record_with_end_timestamps_alone_is_invalid_for_its_unit_too(samples: Path) -> None:
    folder = samples / "idle-second-gpu"
    bare = Run.from_files(
        telemetry=folder / "experiment" / "gpu.csv",
        artifacts=[folder / "experiment" / "teacher_runs.json"],
        timezone="Asia/Kolkata",
    )
    pair = compare(folder / "baseline", bare)
    assert pair.verdict == "invalid"
    assert status(pair)["same-unit"] == "fail" and status(pair)["not-a-subset"] == "fail"
    assert pair.quantity("time_per_item").experiment == pytest.approx(29.8 / 36, rel=0.15)


@pytest.mark.slow
def test_seven_times_the_utilization_is_no_gain(starved: Comparison) -> None:
    assert starved.verdict == "invalid" and [check.check for check in starved.reasons] == ["same-unit"]
    busy = claim(starved, "GPU work per item")
    assert busy["busy_s_baseline"] == pytest.approx(76, rel=0.03)
    assert busy["busy_s_experiment"] == pytest.approx(349, rel=0.03)
    assert busy["busy_ratio"] == pytest.approx(4.6, abs=0.15)
    assert busy["constant_work_util_pct"] == pytest.approx(17, abs=0.5)


@pytest.mark.slow
def test_samples_a_second_contradict_the_time_of_an_epoch(starved: Comparison) -> None:
    rate = claim(starved, "samples against time")
    assert rate["samples_per_s_ratio"] == pytest.approx(2.42, abs=0.02)
    assert rate["time_ratio"] == pytest.approx(0.65, abs=0.01)
    assert rate["samples_per_item_ratio"] == pytest.approx(2.42 * 0.65, abs=0.03)
    changes = {(d.group, d.name): (d.baseline, d.experiment) for d in starved.differences}
    assert changes["dataloader", "batch_size"] == (5632, 8192) and changes["dataloader", "num_workers"] == (4, 8)
