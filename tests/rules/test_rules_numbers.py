"""What a finding on several GPUs says: the worst one, by how much, and the hours of all that were found."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd
import pytest
from small_profiles import TIMES, profile, verdict
from test_rules_thresholds import FAULTS, RULE, SHARED, made

from gpudiag.measures.costs import CostsProfile
from gpudiag.measures.memory import MemoryProfile
from gpudiag.measures.parallelism import ParallelismProfile
from gpudiag.measures.power import PowerProfile
from gpudiag.measures.pruning import PruningProfile
from gpudiag.measures.sampling import SamplingProfile
from gpudiag.measures.trials import TrialsProfile
from gpudiag.measures.utilization import UtilizationProfile
from gpudiag.rules._engine.verdict import Severity, Status

SEGMENTS = pd.DataFrame(
    {"gpu": ["0", "1"], "start": [TIMES] * 2, "end": [TIMES] * 2, "mean_pct": [40.0] * 2, "work_s": [900.0] * 2}
)

CASES: list[tuple[str, dict[str, Any], dict[str, Any], float, float | None, float | None]] = [
    # rule, what is worse on GPU 1, what is short of it on GPU 2, margin, hours lost, hours held (times 3600)
    (
        "cpu-bound-input",
        {"starved_pct": 80.0, "soft_starved_pct": 90.0, "work_s": 1800.0, "host_s": 600.0},
        {"starved_pct": 49.0, "soft_starved_pct": 99.0},
        30.0,
        30.0 + 480.0,
        450.0 + 1440.0,
    ),
    (
        "io-wait",
        {"io_starved_pct": 80.0, "work_s": 1800.0},
        {"io_starved_pct": 49.0},
        30.0,
        30.0 + 48.0,
        450.0 + 1440.0,
    ),
    ("batch-or-kernels-small", {"p95_pct": 30.0, "work_s": 3600.0}, {"p95_pct": 70.0}, 40.0, None, 3660.0),
    ("launch-bound", {"hot_pct": 95.0, "host_s": 600.0}, {"hot_pct": 79.0}, 15.0, None, 720.0 + 855.0),
    ("gpu-busy-but-light", {"busy_power_ratio": 0.1}, {"busy_power_ratio": 0.5}, 0.25, None, None),
    ("stalls-periodic", {"lost_pct": 30.0, "work_s": 7200.0}, {"lost_pct": 1.0}, 25.0, 360.0 + 2160.0, None),
    ("stalls-aperiodic", {"stalled_pct": 30.0, "stalled_s": 1080.0}, {"stalled_pct": 1.0}, 20.0, 1440.0, None),
    ("idle-before-work", {"lead_s": 4800.5}, {"lead_s": 1100.0}, 3600.5, 6001.5, 6001.5),
    ("idle-after-work", {"trail_s": 4200.5}, {"trail_s": 500.0}, 3600.5, 4801.5, 4801.5),
    (
        "idle-between-work",
        {"between_s": 5000.0, "longest_between_s": 3000.0},
        {"longest_between_s": 500.0},
        2400.0,
        5601.0,
        None,
    ),
    (
        "gpu-allocated-idle",
        {"allocated_idle_s": 2000.0, "longest_allocated_idle_s": 1500.0},
        {"longest_allocated_idle_s": 500.0},
        900.0,
        2700.0,
        None,
    ),
    ("gpu-level-shift", {"fall_pct": 50.0, "fall_s": 1800.0}, {"fall_pct": 1.0}, 30.0, 20.0 + 900.0, None),
    ("memory-leak", {"rise_pct": 20.0}, {"rise_pct": 1.0}, 15.0, None, None),
    ("memory-residual", {"residual_mib": 1300.0}, {"residual_mib": 10.0}, 1000.0, None, None),
    ("temperature-high", {"hot_s": 300.0, "max_temp_c": 95.0}, {"hot_s": 1.0}, 240.0, None, None),
    ("power-fault-throttling", {"frozen_cap_s": 300.0}, {"frozen_cap_s": 1.0}, 240.0, None, None),
    ("clocks-low", {"busy_clock_mhz": 250.0}, {"busy_clock_mhz": 990.0}, 35.0, None, None),
    ("thermal-throttling", {"thermal_pct": 40.0}, {"thermal_pct": 1.0}, 35.0, None, None),
    ("power-throttling", {"capped_low_pct": 40.0}, {"capped_low_pct": 1.0}, 35.0, None, None),
    ("sensor-stuck", {"stuck_s": 600.0}, {"stuck_s": 1.0}, 540.0, None, None),
    ("sampler-slows-down", {"slow_ratio": 2.05}, {"slow_ratio": 1.0}, 0.75, None, None),
]


def three(rule: str, worse: dict[str, Any], short: dict[str, Any]) -> Any:
    """GPU 0 just past the thresholds of the rule, GPU 1 far past them, GPU 2 short of them."""
    kind, values, _ = FAULTS[rule]
    declared = kind.tables()["per_gpu"].declared()
    row = {name: value for name, value in values.items() if name in declared}
    fields = {name: value for name, value in values.items() if name not in row or name in kind.facts()}
    if "segments" in fields:
        fields["segments"] = SEGMENTS
    return profile(kind, {"0": row, "1": {**row, **worse}, "2": {**row, **short}}, **fields)


@pytest.mark.parametrize(("rule", "worse", "short", "margin", "lost_s", "held_s"), CASES, ids=[one[0] for one in CASES])
def test_the_worst_gpu_and_the_hours_of_all(
    rule: str, worse: dict[str, Any], short: dict[str, Any], margin: float, lost_s: float | None, held_s: float | None
) -> None:
    found = verdict(RULE[rule], three(rule, worse, short))
    assert found.status is Status.FOUND and found.where["gpu"] == "0, 1"
    assert re.search(r"GPUs? (0 and )?1\b", found.summary), "the worst, or both"
    assert found.margin == pytest.approx(margin)
    assert found.lost_gpu_h == (lost_s and pytest.approx(lost_s / 3600))
    assert found.held_gpu_h == (held_s and pytest.approx(held_s / 3600))
    for name in worse.keys() & found.evidence.keys():
        assert found.evidence[name] == pytest.approx(worse[name])


def test_a_soft_lack_of_input_is_held_and_not_lost() -> None:
    soft = {"starved_pct": 10.0, "soft_starved_pct": 75.0, "host_s": 600.0, "work_s": 900.0}
    kind, values, _ = FAULTS["cpu-bound-input"]
    rows = {
        "0": {**values, "starved_pct": 10.0},
        "1": {**values, **soft},
        "2": {**values, "starved_pct": 0.0, "soft_starved_pct": 1.0},
    }
    found = verdict(RULE["cpu-bound-input"], profile(kind, rows))
    assert (found.severity, found.margin, found.lost_gpu_h) == (Severity.NOTE, 25.0, None)
    assert found.held_gpu_h == pytest.approx((450 + 675) / 3600) and "below 50 %" in found.summary
    assert "for 75 % of its work, of the 10 min of it beside which the host was recorded, while" in found.summary


@pytest.mark.parametrize(("other_pct", "status"), [(44.0, Status.OK), (99.0, Status.FOUND)])
def test_a_stated_wait_speaks_for_other_gpus_only_if_all_wait(other_pct: float, status: Status) -> None:
    """A rank that waits for one without data runs the kernels of its collective meanwhile."""
    kind, values, _ = FAULTS["cpu-bound-input"]
    rows = {"0": {**values, "mean_pct": 20.0}, "1": {**values, "mean_pct": other_pct, "soft_starved_pct": 0.0}}
    assert verdict(RULE["cpu-bound-input"], profile(kind, rows, stated_wait_pct=1.0)).status is status


def test_io_wait_beside_steps_that_wait_is_held_and_not_lost() -> None:
    kind, values, _ = FAULTS["io-wait"]
    soft = {**values, "io_starved_pct": 0.0, "host_s": 600.0, "work_s": 900.0}
    rows = {"0": {**soft, "io_wait_pct": 60.0}, "1": {**soft, "io_wait_pct": 90.0}, "2": {**soft, "io_wait_pct": 49.0}}
    found = verdict(RULE["io-wait"], profile(kind, rows, stated_wait_pct=60.0))
    assert (found.margin, found.lost_gpu_h, found.where["gpu"]) == (40.0, None, "0, 1")
    assert found.held_gpu_h == pytest.approx((540 + 810) / 3600)
    assert found.summary.startswith("GPU 1 (the worst of GPUs 0 and 1) worked beside I/O wait above 50 % for 90 % of")
    assert found.summary.endswith("and each step waits 60 % of its time for the data loader.")


@pytest.mark.parametrize("rule", ["cpu-bound-input", "io-wait", "batch-or-kernels-small", "launch-bound"])
def test_a_share_beside_the_host_is_of_the_work_only_if_it_was_recorded_throughout(rule: str) -> None:
    kind, values, _ = FAULTS[rule]
    partly, throughout = (
        verdict(RULE[rule], profile(kind, {"0": {**values, "work_s": 900.0, "host_s": seconds}}))
        for seconds in (600.0, 890.0)
    )
    assert "the 10 min of it beside which the host was recorded" in partly.summary
    assert partly.status is throughout.status is Status.FOUND and "recorded" not in throughout.summary


@pytest.mark.parametrize(
    ("rule", "worse", "said"),
    [
        ("launch-bound", {"power_ratio": 0.125, "hot_pct": 95.0}, "12 % of its power range"),
        ("gpu-busy-but-light", {"busy_power_ratio": 0.125}, "drew 12 % of its power range"),
        (
            "gpu-busy-but-light",
            {"busy_power_ratio": 0.125, "least_busy_power_ratio": 0.1},
            "drew at most 12 % of its power range",
        ),
        ("clocks-low", {"busy_clock_mhz": 250.0}, "25 %"),
    ],
)
def test_ratios_are_said_in_percent(rule: str, worse: dict[str, Any], said: str) -> None:
    assert said in verdict(RULE[rule], three(rule, worse, {})).summary


def test_idle_sms_and_idle_tensor_cores_are_said_in_percent() -> None:
    found = verdict(RULE["sm-activity-low"], three("sm-activity-low", {"busy_sm_pct": 20.0}, {"busy_sm_pct": 90.0}))
    assert "used 20 % of its SMs on average in 5 min" in found.summary
    idle = verdict(RULE["tensor-cores-unused"], three("tensor-cores-unused", {"busy_tensor_pct": 0.0}, {}))
    assert "50 % of its SMs and its tensor cores for 0 % of the cycles" in idle.summary


@pytest.mark.parametrize(
    "unknown", [{"busy_power_ratio": float("nan")}, {"busy_power_ratio": float("nan"), "busy_s": 1.0}]
)
def test_light_kernels_are_not_assessed_only_where_no_busy_gpu_is_known(unknown: dict[str, float]) -> None:
    kind, values, _ = FAULTS["gpu-busy-but-light"]
    known = {**values, "busy_power_ratio": 0.9}
    one = verdict(RULE["gpu-busy-but-light"], profile(kind, {"0": known, "1": {**values, **unknown}}))
    assert one.status is Status.OK
    alone = verdict(RULE["gpu-busy-but-light"], profile(kind, {"1": {**values, **unknown}}))
    assert alone.status is (Status.NOT_APPLICABLE if "busy_s" in unknown else Status.NOT_ASSESSED)


def test_gaps_are_those_of_the_gpu_that_lacks_most() -> None:
    shares = {"0": [3.0, 3.5], "1": [2.0, 4.0, 6.25], "2": [0.5]}
    rows = [
        {"gpu": gpu, "gap_s": 60.0, "trials_ended": 0, "share_pct": part}
        for gpu, parts in shares.items()
        for part in parts
    ]
    seen = profile(SamplingProfile, {gpu: {} for gpu in shares}, gaps=pd.DataFrame(rows), n_gaps=6, longest_gap_s=60.0)
    found = verdict(RULE["sampling-gaps"], seen)
    assert found.summary == "GPU 1 was not observed for 12 % of its span (3 gaps, the longest 1 min)."
    assert (found.margin, found.where["gpu"]) == (7.25, "0, 1, 2")
    assert found.evidence["gap_pct"] == 12.25 and found.evidence["trials_failed_within"] == 0
    assert found.severity is Severity.NOTE


BEYOND: list[tuple[str, dict[str, Any], dict[str, float], float]] = [
    # rule, what is changed of the profile just past its thresholds, thresholds given, margin
    ("gpu-imbalance", {"jain": 0.5}, {}, 0.3),
    ("gpu-straggler", {"clock_ratio": 0.6}, {}, 0.25),
    ("loader-slow", {"of_step_pct": 30.0}, {}, 25.0),
    ("loader-slow", {"avg_ms": 45.5}, {}, 15.5),
    ("loader-workers-cores", {"of_cores_pct": 50.0}, {}, 20.0),
    ("loader-workers-cores", {"of_cores_pct": 250.0}, {}, 50.0),
    ("gpu-lost", {"n_lost": 5}, {"max_events": 2.0}, 3.0),
    ("log-silent", {"silent_s": 800.0}, {}, 200.0),
    ("loss-not-finite", {"n_not_finite": 9.0}, {}, 6.0),
    ("training-failed", {"n_failed": 5}, {"max_trainings": 2.0}, 3.0),
    ("gpu-hardware-errors", {"n_hardware": 5}, {"max_events": 2.0}, 3.0),
    ("failures-poisoned", {"n_fail": 12, "n_events": 3}, {}, 7.0),
    ("failures-after-full-memory", {"fail_before_pct": 95.0}, {}, 10.0),
    ("failures-bimodal", {"p_one_group": 0.004}, {}, 0.6),
    ("failures-bimodal", {"long_s": 30.0}, {}, 0.1),
    ("duplicate-trials", {"n_with_params": 40, "n_duplicates": 10}, {}, 20.0),
    ("worst-value-shared", {"worst": SHARED.assign(n_valued=40)}, {}, 5.0),
    ("trial-duration-drift", {"drift_rho": -0.8}, {}, 0.5),
    ("trial-gap-growth", {"gap_last_s": 12.5}, {}, 7.5),
    ("study-tail", {"tail_pct": 35.5}, {}, 25.5),
    ("pruned-too-early", {"rho_high": 0.05}, {}, 0.25),
    ("stated-counts-differ", {}, {"max_difference_trials": 1.0}, 1.0),
]


@pytest.mark.parametrize(("rule", "changed", "thresholds", "margin"), BEYOND)
def test_the_margin_is_what_lies_beyond_the_threshold(
    rule: str, changed: dict[str, Any], thresholds: dict[str, float], margin: float
) -> None:
    found = verdict(RULE[rule], made(rule, changed), **thresholds)
    assert (found.status, found.margin) == (Status.FOUND, pytest.approx(margin))


FOUR = {"configured": 4.0, "n_timed": 9, "peak": 4}
UNEVEN = {"active_p95_pct": 90.0, "trial_s": 0.0, "active_idle_phases": 3.0}
ELSEWHERE: list[tuple[str, Any, float, float | None, str]] = [
    # rule, profile, margin, hours lost, words of the sentence
    (
        "memory-near-limit",
        profile(MemoryProfile, {"0": {"max_used_pct": 91.0}, "1": {"max_used_pct": 97.5, "max_at": TIMES}}),
        7.5, None, "GPU 1",
    ),
    (
        "memory-headroom",
        profile(MemoryProfile, {"0": {"max_used_pct": 10.0}, "1": {"max_used_pct": 37.5, "total_mib": 2048.0}}),
        12.5, None, "GPU 1 used at most 38 % of its 2.0 GiB",
    ),
    (
        "parallelism-below-configured",
        profile(ParallelismProfile, **FOUR, effective=1.5, effective_low=1.0, effective_high=2.0),
        25.0, None, "50 % of the 4 configured",
    ),
    (
        "parallelism-above-configured",
        profile(ParallelismProfile, configured=4.0, above_configured_s=65.0, peak=6, peak_closed=5),
        60.0, None, "for 1 min 05 s: another worker took part.",
    ),
    (
        "trials-serialised",
        profile(ParallelismProfile, **FOUR, effective=1.0, effective_low=0.9, effective_high=1.1),
        0.1, None, "1 trials ran at once",
    ),
    (
        "pruning-rate-high",
        profile(PruningProfile, n_pruned=90, n_decided=100, of_decided_pct=90.0, of_decided_low_pct=84.5),
        4.5, None, "90",
    ),
    (
        "pruned-before-possible",
        profile(PruningProfile, n_pruned=90, before_possible=5.0, pruner="median()", config_first_report=3.0),
        5.0, None, "cannot prune before report 3; 5 of 90 pruned trials ended earlier.",
    ),
    (
        "failure-rate-high",
        profile(TrialsProfile, n_finished=100, n_fail=20, fail_low_pct=13.5, fail_worker_h=1.5),
        11.5, None, "",
    ),
    (
        "startup-dominated",
        profile(CostsProfile, startup_share_pct=34.5, startup_only_pct=4.0, startup_only_gpu_h=0.25),
        9.5, 0.25, "",
    ),
    (
        "startup-dominated",
        profile(CostsProfile, startup_share_pct=26.0, startup_only_pct=40.5, startup_only_gpu_h=0.25),
        30.5, 0.25, "",
    ),
    (
        "startup-dominated",
        profile(CostsProfile, startup_only_pct=40.5, startup_only_gpu_h=0.25),
        30.5, 0.25, "",
    ),
    (
        "sampling-coverage",
        profile(
            SamplingProfile,
            {"0": {"coverage_pct": 70.0}, "1": {"coverage_pct": 45.5}, "2": {"coverage_pct": 90.0}},
            expected_s=7200.0,
        ),
        34.5, None, "Telemetry of GPU 1 covers 45.5 %",
    ),
    (
        "power-implausible",
        profile(
            PowerProfile,
            {
                "0": {"n_rejected": 1, "max_all_w": 900.0, "plausible_w": 500.0, "limit_w": 300.0},
                "1": {"n_rejected": 3, "max_all_w": 700.0, "plausible_w": 455.0, "limit_w": 300.0},
            },
        ),
        245.0, None, "GPU 1",
    ),
    (
        "gpu-unused",
        profile(
            UtilizationProfile,
            {
                "0": {"max_pct": 0.25, "n_samples": 100, "observed_s": 1800.0},
                "1": {"max_pct": 0.5, "n_samples": 100, "observed_s": 3600.0},
                "2": {"max_pct": 90.0, "n_samples": 100, "observed_s": 3600.0},
            },
        ),
        0.5, 1.5, "GPUs 0 and 1 never rose above 0.5 % utilization in 30 min to 1 h each.",
    ),
    (
        "gpu-low-utilization",
        profile(
            UtilizationProfile,
            {
                "0": {"mean_pct": 30.75, "max_pct": 90.0, "n_samples": 100, "observed_s": 7200.0, "idle_gpu_h": 1.25},
                "1": {"mean_pct": 20.75, "max_pct": 90.0, "n_samples": 100, "observed_s": 3600.0, "idle_gpu_h": 0.5},
                "2": {"mean_pct": 90.0, "max_pct": 90.0, "n_samples": 100, "observed_s": 3600.0, "idle_gpu_h": 0.1},
            },
        ),
        29.25, (0.6925 * 2 + 0.7925),
        "Mean utilization of GPUs 0 and 1 was 21 % to 31 %: no kernel ran for 73 % of the time",
    ),
    (
        "gpu-fluctuating",
        profile(
            UtilizationProfile,
            {
                "0": {**UNEVEN, "active_p5_pct": 1.0, "active_s": 3600.0, "active_idle_gpu_h": 0.25},
                "1": {**UNEVEN, "active_p5_pct": 3.5, "active_s": 7200.0, "active_idle_gpu_h": 0.5},
            },
        ),
        6.5, 0.75, "GPU 1",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "given", "margin", "lost", "said"), ELSEWHERE, ids=[one[0] for one in ELSEWHERE])
def test_the_margin_the_hours_and_the_place(
    rule: str, given: Any, margin: float, lost: float | None, said: str
) -> None:
    found = verdict(RULE[rule], given)
    assert (found.status, found.margin) == (Status.FOUND, pytest.approx(margin))
    assert found.lost_gpu_h == (lost and pytest.approx(lost)) and said in found.summary
