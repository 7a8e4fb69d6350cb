"""Rules over utilization, memory, power and sampling, just below and just above each threshold."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest
from small_profiles import NAN, TIMES, profile, verdict

from gpudiag.measures.memory import MemoryProfile
from gpudiag.measures.power import PowerProfile
from gpudiag.measures.sampling import SamplingProfile
from gpudiag.measures.utilization import UtilizationProfile
from gpudiag.rules._engine.verdict import Severity, Status
from gpudiag.rules.memory import memory_headroom, memory_near_limit
from gpudiag.rules.power import power_implausible
from gpudiag.rules.sampling import sampling_coverage, sampling_gaps
from gpudiag.rules.utilization import gpu_fluctuating, gpu_idle_beside_busy, gpu_low_utilization, gpu_unused

FOUND, OK, NOT_ASSESSED, NOT_APPLICABLE = Status.FOUND, Status.OK, Status.NOT_ASSESSED, Status.NOT_APPLICABLE
CRITICAL, WARNING, NOTE = Severity.CRITICAL, Severity.WARNING, Severity.NOTE


def use(**gpu: Any) -> UtilizationProfile:
    return profile(UtilizationProfile, {"0": {"n_samples": 1000, **gpu}})


IDLE = {"max_pct": 0.0, "mean_pct": 0.0, "n_samples": 78, "observed_s": 390.0, "mem_at_baseline": True}


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({}, FOUND),
        ({"max_pct": 1.0}, FOUND),
        ({"max_pct": 1.1}, OK),
        ({"n_samples": 10}, FOUND),
        ({"n_samples": 9}, NOT_ASSESSED),
        ({"observed_s": 60.0}, FOUND),
        ({"observed_s": 59.0}, NOT_ASSESSED),
        ({"mem_at_baseline": NAN}, FOUND),
        ({"mem_at_baseline": False}, OK),
        ({"max_pct": NAN, "mean_pct": NAN}, NOT_ASSESSED),
    ],
)
def test_unused(changed: dict[str, Any], status: Status) -> None:
    assert verdict(gpu_unused, use(**{**IDLE, **changed})).status is status


def test_unused_names_the_gpu_and_what_it_cost() -> None:
    busy = {"max_pct": 80.0, "mean_pct": 28.0, "n_samples": 78, "observed_s": 390.0}
    found = verdict(gpu_unused, profile(UtilizationProfile, {"0": IDLE, "1": busy}))
    assert (found.severity, found.where, found.lost_gpu_h) == (CRITICAL, {"gpu": "0"}, pytest.approx(390 / 3600))
    assert found.summary == "GPU 0 never rose above 0 % utilization in 6 min 30 s."
    both = verdict(gpu_unused, profile(UtilizationProfile, {"0": IDLE, "3": IDLE, "1": busy}))
    assert both.where == {"gpu": "0, 3"} and both.lost_gpu_h == pytest.approx(780 / 3600)
    none = verdict(gpu_unused, profile(UtilizationProfile, {"0": IDLE, "1": IDLE}))
    assert none.remedy.startswith("No GPU was used at all.") and found.remedy == both.remedy != none.remedy


def test_mig_is_not_unused() -> None:
    found = verdict(gpu_unused, use(mem_at_baseline=True))
    assert found.status is NOT_ASSESSED and "MIG" in found.reason and "DCGM" in found.remedy


@pytest.mark.parametrize(
    ("mean", "seconds", "expected"),
    [
        (15.0, 1800, CRITICAL),
        (15.1, 1800, WARNING),
        (24.9, 1800, WARNING),
        (25.0, 1800, NOTE),
        (49.9, 1800, NOTE),
        (50.0, 1800, None),
        (11.4, 1799, NOTE),
    ],
)
def test_low_utilization(mean: float, seconds: float, expected: Severity | None) -> None:
    found = verdict(gpu_low_utilization, use(mean_pct=mean, max_pct=60.0, observed_s=seconds, idle_gpu_h=0.25))
    assert found.status is (FOUND if expected else OK)
    if expected:
        assert found.severity is expected
        assert found.lost_gpu_h == pytest.approx((100 - mean) / 100 * seconds / 3600)
        assert ("The run is short" in found.summary) is (seconds < 1800)
        part = 0.25 / (0.5 * (100 - mean) / 100)
        some = "in short waits and, for 50 %, idle (below 10 %)."
        how = some if part <= 0.9 else "nearly all of it idle (below 10 %)."
        assert f"no kernel ran for {100 - mean:.2g} % of the time, {how}" in found.summary


@pytest.mark.parametrize(
    ("idle_gpu_h", "said"),
    [
        (0.034, "71 % of the time, in short waits: hardly a sample was below 10 %."),
        (0.036, "71 % of the time, in short waits and, for 7.2 %, idle (below 10 %)."),
        (0.33, "71 % of the time, nearly all of it idle (below 10 %)."),
        (math.nan, "71 % of the time."),
    ],
)
def test_low_utilization_says_once_how_long_no_kernel_ran(idle_gpu_h: float, said: str) -> None:
    """Of 0.5 GPU-h no kernel ran in 0.355."""
    seen = use(mean_pct=29.0, max_pct=60.0, observed_s=1800, idle_gpu_h=idle_gpu_h)
    assert verdict(gpu_low_utilization, seen).summary == f"Mean utilization of GPU 0 was 29 %: no kernel ran for {said}"


def test_low_utilization_is_judged_while_trials_ran() -> None:
    idle_before = {"mean_pct": 8.0, "max_pct": 99.0, "observed_s": 9000.0, "trial_s": 1800.0, "idle_gpu_h": 2.0}
    assert verdict(gpu_low_utilization, use(**idle_before, trial_mean_pct=90.0)).status is OK
    found = verdict(gpu_low_utilization, use(**idle_before, trial_mean_pct=20.0, trial_idle_gpu_h=0.3))
    assert (
        found.severity is WARNING
        and found.lost_gpu_h == pytest.approx(0.8 * 0.5)
        and "while trials ran" in found.summary
    )


def test_an_unused_gpu_is_not_reported_twice() -> None:
    assert verdict(gpu_low_utilization, use(**IDLE)).status is NOT_APPLICABLE


CASE_3 = {
    "0": {
        "mean_pct": 3.0, "max_pct": 6.0, "duty_pct": 0.0, "n_samples": 78, "observed_s": 390.0, "mem_at_baseline": True,
    },
    "1": {"mean_pct": 20.0, "max_pct": 37.0, "duty_pct": 95.0, "n_samples": 78, "observed_s": 390.0},
}  # fmt: skip


def beside(idle: dict[str, Any] | None = None, busy: dict[str, Any] | None = None) -> UtilizationProfile:
    return profile(UtilizationProfile, {"0": {**CASE_3["0"], **(idle or {})}, "1": {**CASE_3["1"], **(busy or {})}})


@pytest.mark.parametrize(
    ("idle", "busy", "status"),
    [
        ({}, {}, FOUND),
        ({"max_pct": 9.9}, {}, FOUND),
        ({"max_pct": 10.0}, {}, OK),
        ({"mem_at_baseline": NAN}, {}, FOUND),
        ({"mem_at_baseline": False}, {}, OK),
        ({}, {"duty_pct": 10.0}, FOUND),
        ({}, {"duty_pct": 9.9}, OK),
        ({"n_samples": 10}, {}, FOUND),
        ({"n_samples": 9}, {}, NOT_ASSESSED),
        ({"observed_s": 60.0}, {}, FOUND),
        ({"observed_s": 59.9}, {}, NOT_ASSESSED),
        ({"max_pct": NAN, "mean_pct": NAN}, {}, NOT_ASSESSED),
        ({}, {"duty_pct": NAN, "mean_pct": NAN, "max_pct": NAN}, NOT_ASSESSED),
    ],
)
def test_idle_beside_busy(idle: dict[str, Any], busy: dict[str, Any], status: Status) -> None:
    assert verdict(gpu_idle_beside_busy, beside(idle, busy)).status is status


def test_idle_beside_busy_names_the_gpu_the_causes_and_the_time_that_it_costs() -> None:
    in_trials = {"0": {"trial_s": 30.0}, "1": {"trial_s": 60.0, "trial_mean_pct": 44.0}, "2": {"trial_s": 60.0}}
    three = profile(
        UtilizationProfile, {gpu: {**CASE_3["1" if gpu == "1" else "0"], **more} for gpu, more in in_trials.items()}
    )
    found = verdict(gpu_idle_beside_busy, beside())
    assert (found.severity, found.where, found.lost_gpu_h) == (CRITICAL, {"gpu": "0"}, pytest.approx(390 / 3600))
    assert found.summary == ("GPU 0 was idle for 6 min 30 s (at most 6 %), while GPU 1 averaged 20 %.")
    assert verdict(gpu_idle_beside_busy, three).summary == (
        "GPUs 0 and 2 were idle for 6 min 30 s each (at most 6 %), 30 s to 1 min of it with trials, "
        "while GPU 1 averaged 44 % during the trials."
    )
    assert verdict(gpu_idle_beside_busy, three).lost_gpu_h == pytest.approx((30 + 60) / 3600)
    for cause in ("CUDA_VISIBLE_DEVICES", "gpu_device_id", "one entry", "too few tasks"):
        assert cause in found.remedy


def test_one_gpu_is_beside_none() -> None:
    assert verdict(gpu_idle_beside_busy, use(**CASE_3["0"])).status is NOT_APPLICABLE


def test_low_utilization_leaves_the_idle_gpu_to_its_own_rule() -> None:
    assert verdict(gpu_low_utilization, beside()).where == {"gpu": "1"}
    assert verdict(gpu_low_utilization, beside(busy={"mean_pct": 90.0})).status is OK


EVEN = {"mean_pct": 60.0, "observed_s": 300.0, "idle_gpu_h": 0.01, "max_pct": 100.0}


@pytest.mark.parametrize(
    ("p5", "p95", "seconds", "status"),
    [(9.9, 70, 300, FOUND), (10, 70, 300, OK), (9.9, 69.9, 300, OK), (0, 100, 299, NOT_ASSESSED)],
)
def test_fluctuating(p5: float, p95: float, seconds: float, status: Status) -> None:
    active = {"active_s": seconds, "active_p5_pct": p5, "active_p95_pct": p95, "active_idle_gpu_h": 0.01,
              "active_idle_phases": 3.0}  # fmt: skip
    found = verdict(gpu_fluctuating, use(**{**EVEN, "observed_s": seconds}, **active))
    assert found.status is status
    assert verdict(gpu_fluctuating, use(**EVEN)).status is OK, "never active"
    if status is FOUND:
        assert found.lost_gpu_h == 0.01 and "was idle for 12 % of the time" in found.summary
        assert found.summary.endswith("yet it ran at 70 % or more for at least 5 % of it."), "a percentile is a bound"


@pytest.mark.parametrize(("idle_s", "status"), [(0.0, OK), (14.9, OK), (15.0, FOUND), (NAN, FOUND)])
def test_start_ups_and_time_between_trials_are_no_alternation(idle_s: float, status: Status) -> None:
    """15 s are the twentieth of five minutes."""
    active = {"active_s": 300.0, "active_p5_pct": 0.0, "active_p95_pct": 95.0, "active_idle_gpu_h": 0.01}
    known = {"trial_s": 300.0, "idle_in_trials_gpu_h": idle_s / 3600}
    assert verdict(gpu_fluctuating, use(**EVEN, **active, **known)).status is status


def memory(**gpu: Any) -> MemoryProfile:
    return profile(MemoryProfile, {"0": {"total_mib": 24576.0, "headroom_mib": 1000.0, **gpu}})


@pytest.mark.parametrize(("most", "status"), [(90.0, FOUND), (89.9, OK), (NAN, NOT_ASSESSED)])
def test_near_limit(most: float, status: Status) -> None:
    found = verdict(memory_near_limit, memory(p99_used_pct=40.0, max_used_pct=most))
    assert found.status is status
    if status is FOUND:
        assert found.summary == ("GPU 0 used up to 90 % of its 24.0 GiB: 1,000 MiB were left at the peak.")
        assert found.where == {"gpu": "0", "time": TIMES.isoformat()}
    if status is NOT_ASSESSED:
        assert "[gpus.0]" in found.remedy


@pytest.mark.parametrize(("most", "status"), [(49.9, FOUND), (50.0, OK), (NAN, NOT_ASSESSED)])
def test_headroom(most: float, status: Status) -> None:
    found = verdict(memory_headroom, memory(max_used_pct=most, headroom_mib=12288.0, growth_factor=3.0))
    assert found.status is status
    if status is FOUND:
        assert (
            found.severity is NOTE and found.summary == "GPU 0 used at most 50 % of its 24.0 GiB: 12.0 GiB stayed free."
        )
        assert found.lost_gpu_h is None and "alone makes nothing faster" in found.remedy


@pytest.mark.parametrize(
    ("utils", "roomy"),
    [((97.0, 0.0), None), ((97.0, 9.9), None), ((97.0, 10.0), "1"), ((97.0, NAN), "1"), ((0.0, 0.0), "1")],
)
def test_a_gpu_that_nothing_ran_on_is_no_room(utils: tuple[float, float], roomy: str | None) -> None:
    rows = {
        name: {"total_mib": 81559.0, "max_used_pct": used, "headroom_mib": 1000.0, "max_util_pct": util}
        for name, used, util in zip("01", (95.6, 0.6), utils, strict=True)
    }
    found = verdict(memory_headroom, profile(MemoryProfile, rows))
    assert found.where.get("gpu") == roomy and (found.status is OK) is (roomy is None)


def test_memory_that_ran_out_between_samples_was_neither_free_nor_far_from_full() -> None:
    seen = profile(
        MemoryProfile, {"0": {"total_mib": 24576.0, "max_used_pct": 14.0}}, n_oom_unseen=14, max_used_pct=14.0
    )
    for rule in (memory_headroom, memory_near_limit):
        found = verdict(rule, seen)
        assert found.status is NOT_ASSESSED
        assert found.reason.startswith("GPU memory ran out 14 times, yet no sample shows more than 14 % in use")


def test_headroom_without_a_bound_claims_none() -> None:
    found = verdict(memory_headroom, memory(max_used_pct=10.0))
    assert found.status is FOUND and "times" not in found.summary and found.evidence["growth_factor"] is None


def power(**gpu: Any) -> PowerProfile:
    usual = {"limit_w": 140.0, "plausible_w": 182.0, "limit_source": "data sheet", "board": "RTX 4050 Laptop",
             "n_rejected": 0}  # fmt: skip
    return profile(PowerProfile, {"0": {**usual, **gpu}})


def test_case_5_power() -> None:
    spike = {"n_rejected": 1, "max_all_w": 590.0, "mean_w": 20.5, "mean_all_w": 26.8, "longest_rejected_s": 3.3}
    found = verdict(power_implausible, power(**spike))
    assert (found.status, found.severity) == (FOUND, NOTE)
    assert found.summary == (
        "1 reading of GPU 0, up to 590 W, is beyond what a board with a limit of 140 W (from the data sheet) can draw. "
        "Mean power is 20.5 W without them, 26.8 W with them."
    )
    assert found.margin == 590 - 182


@pytest.mark.parametrize(("seconds", "severity"), [(59.9, NOTE), (60.0, WARNING)])
def test_frozen_power_is_a_warning(seconds: float, severity: Severity) -> None:
    frozen = power(n_rejected=20, max_all_w=588.0, mean_w=20.0, mean_all_w=90.0, longest_rejected_s=seconds)
    assert verdict(power_implausible, frozen).severity is severity


@pytest.mark.parametrize(("share", "status"), [(5.0, OK), (5.1, FOUND), (NAN, OK)])
def test_sustained_power_over_the_limit(share: float, status: Status) -> None:
    found = verdict(power_implausible, power(over_limit_pct=share, max_w=170.0, max_all_w=170.0))
    assert found.status is status
    if status is FOUND:
        assert found.severity is WARNING and "1.1 times its limit of 140 W for 5.1 %" in found.summary


def test_power_without_a_limit_is_not_assessed() -> None:
    found = verdict(power_implausible, power(limit_w=NAN, plausible_w=NAN, max_all_w=100.0))
    assert found.status is NOT_ASSESSED and "power_limit_w under [gpus.0]" in found.remedy
    assert "Power of GPU 0 was not recorded" in verdict(power_implausible, power()).reason


@pytest.mark.parametrize(("coverage", "status"), [(79.9, FOUND), (80.0, OK)])
def test_coverage(coverage: float, status: Status) -> None:
    seen = profile(SamplingProfile, {"1": {"coverage_pct": coverage}}, coverage_pct=coverage, expected_s=7200.0)
    found = verdict(sampling_coverage, seen)
    assert found.status is status
    if status is FOUND:
        assert found.summary == "Telemetry of GPU 1 covers 79.9 % of 2 h."


@pytest.mark.parametrize(
    ("shares", "failed", "severity"),
    [([2.5, 2.4], 0, None), ([2.5, 2.6], 0, NOTE), ([0.1, 0.1], 1, WARNING), ([NAN, NAN], 0, None)],
)
def test_gaps(shares: list[float], failed: int, severity: Severity | None) -> None:
    gaps = pd.DataFrame({"gpu": "0", "gap_s": 60.0, "trials_ended": [failed, 0], "share_pct": shares})
    seen = profile(SamplingProfile, {"0": {"coverage_pct": 95.0}}, gaps=gaps, n_gaps=2, longest_gap_s=60.0)
    found = verdict(sampling_gaps, seen)
    assert found.status is (FOUND if severity else OK)
    if severity:
        assert found.severity is severity and ("1 trial failed meanwhile" in found.summary) is bool(failed)


def test_failures_in_the_gaps_of_two_gpus_are_counted_once() -> None:
    gaps = pd.DataFrame({"gpu": ["0", "1"], "gap_s": 60.0, "trials_ended": [2, 2], "share_pct": 1.0})
    seen = profile(SamplingProfile, {"0": {}, "1": {}}, gaps=gaps, n_gaps=2, longest_gap_s=60.0)
    assert verdict(sampling_gaps, seen).evidence["trials_failed_within"] == 2
