"""What a record cannot show is not called clear: rare samples, few trials, a glance, timestamps of a wrong clock."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from small_profiles import NAN, TIMES, profile, verdict

from gpudiag.diagnosis import Diagnosis, diagnose
from gpudiag.load import load_run
from gpudiag.measures.agreement import AgreementProfile
from gpudiag.measures.sampling import SamplingProfile
from gpudiag.measures.shift import ShiftProfile
from gpudiag.measures.stalls import StallsProfile
from gpudiag.measures.trials import TrialsProfile
from gpudiag.measures.utilization import UtilizationProfile
from gpudiag.rules._engine.rule import Rule
from gpudiag.rules._engine.verdict import Severity, Status
from gpudiag.rules.agreement import pruned_too_early
from gpudiag.rules.sampling import sampling_coverage, sampling_gaps
from gpudiag.rules.shift import gpu_level_shift
from gpudiag.rules.stalls import stalls_aperiodic, stalls_periodic
from gpudiag.rules.trials import failure_rate_high
from gpudiag.rules.utilization import gpu_fluctuating, gpu_low_utilization

WORK = {"work_s": 90_000.0, "p95_pct": 100.0, "stalled_pct": 0.0, "n_stalls": 0.0, "lost_pct": 0.0}
USE = {"observed_s": 90_000.0, "mean_pct": 95.0, "p5_pct": 80.0, "p95_pct": 100.0, "max_pct": 100.0, "trial_s": NAN,
       "active_s": 90_000.0, "active_p5_pct": 80.0, "active_p95_pct": 100.0, "active_idle_gpu_h": 0.0}  # fmt: skip
HEADER = "timestamp, index, name, utilization.gpu [%], memory.used [MiB], memory.total [MiB], power.draw [W], " \
    "power.limit [W]"  # fmt: skip


@pytest.mark.parametrize("rule", [stalls_periodic, stalls_aperiodic, gpu_fluctuating], ids=lambda rule: rule.id)
@pytest.mark.parametrize(
    ("period_s", "status"),
    [(2.0, Status.OK), (30.0, Status.OK), (31.0, Status.NOT_ASSESSED), (1000.0, Status.NOT_ASSESSED),
     (NAN, Status.OK)],
)  # fmt: skip
def test_waits_are_not_looked_for_between_rare_samples(rule: Rule, period_s: float, status: Status) -> None:
    kind, row = (UtilizationProfile, USE) if rule is gpu_fluctuating else (StallsProfile, WORK)
    one = verdict(rule, profile(kind, {"0": row}, sampling_period_s=period_s))
    assert one.status is status
    if status is Status.NOT_ASSESSED:
        assert "apart, too far to show waits" in one.reason and "every 1 to 5 s" in one.remedy


@pytest.mark.parametrize("rule", [gpu_low_utilization, gpu_fluctuating], ids=lambda rule: rule.id)
def test_how_well_a_gpu_is_used_is_not_asked_where_none_was_used(rule: Rule) -> None:
    unused = {**USE, **dict.fromkeys(("mean_pct", "p5_pct", "p95_pct", "max_pct", "active_p95_pct"), 0.0)}
    one = verdict(rule, profile(UtilizationProfile, {"0": unused, "1": unused}))
    assert one.status is Status.NOT_APPLICABLE and "gpu-unused" in one.reason
    assert verdict(rule, profile(UtilizationProfile, {"0": unused, "1": USE})).status is Status.OK


@pytest.mark.parametrize(
    ("n_fail", "n", "low_pct", "expected"),
    [(1, 1, 20.7, Severity.NOTE), (4, 4, 51.0, Severity.NOTE), (5, 5, 56.6, Severity.CRITICAL),
     (0, 4, 0.0, Status.NOT_ASSESSED), (0, 5, 0.0, Status.OK)],
)  # fmt: skip
def test_few_trials_tell_no_rate_of_failures(n_fail: int, n: int, low_pct: float, expected: Status | Severity) -> None:
    trials = profile(TrialsProfile, n_fail=n_fail, n_finished=n, fail_pct=100 * n_fail / n, fail_low_pct=low_pct)
    one = verdict(failure_rate_high, trials)
    if isinstance(expected, Status):
        assert one.status is expected
    else:
        assert (one.status, one.severity) == (Status.FOUND, expected)
        assert ("too few for a rate" in one.summary) is (n < 5)


def test_a_glance_covers_nothing_and_misses_nothing() -> None:
    seen = profile(SamplingProfile, {"0": {"coverage_pct": 0.4}}, expected_s=2.0)
    assert verdict(sampling_coverage, seen).status is Status.NOT_ASSESSED
    longer = profile(SamplingProfile, {"0": {"coverage_pct": 0.4}}, expected_s=60.0)
    found = verdict(sampling_coverage, longer)
    assert found.status is Status.FOUND and "covers 0.4 % of 1 min" in found.summary


@pytest.mark.parametrize(("share_pct", "severity"), [(99.0, Severity.NOTE), (99.1, Severity.WARNING)])
def test_a_gap_that_is_nearly_all_of_the_span_is_no_note(share_pct: float, severity: Severity) -> None:
    gap = {"gpu": "0", "start": TIMES, "end": TIMES, "gap_s": 1e6, "trials_ended": 0, "share_pct": share_pct}
    found = verdict(sampling_gaps, profile(SamplingProfile, gaps=pd.DataFrame([gap]), longest_gap_s=1e6))
    assert (found.status, found.severity) == (Status.FOUND, severity)


@pytest.fixture(scope="module")
def stray(tmp_path_factory: pytest.TempPathFactory) -> Diagnosis:
    """Twenty minutes of a busy GPU; one timestamp lies in 2099, and four readings are none."""
    rows = [HEADER]
    for n, timestamp in enumerate(pd.date_range("2025-01-01", periods=600, freq="2s")):
        util, memory, power = str(90 + n % 10), "9000", "300.00"
        if n == 100:
            util = "1000000000"
        if n in (200, 201):
            power = "1e308"
        if n == 300:
            memory = "-5"
        when = "2099/01/01 00:00:00.000" if n == 400 else f"{timestamp:%Y/%m/%d %H:%M:%S}.000"
        rows.append(f"{when}, 0, NVIDIA GeForce RTX 4090, {util} %, {memory} MiB, 24564 MiB, {power} W, 450.00 W")
    path: Path = tmp_path_factory.mktemp("stray") / "gpu.csv"
    path.write_text("\n".join(rows) + "\n")
    return diagnose(load_run(telemetry=[path]))


@pytest.mark.slow
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_impossible_readings_enter_no_mean(stray: Diagnosis) -> None:
    table = {topic: stray.profiles[topic].per_gpu.loc["0"] for topic in ("utilization", "power", "memory")}
    assert 94 < table["utilization"]["mean_pct"] < 95 and table["utilization"]["max_pct"] == 99
    assert table["power"]["mean_w"] == table["power"]["max_w"] == table["power"]["max_all_w"] == 300
    assert table["memory"]["mean_mib"] == table["memory"]["max_mib"] == 9000
    assert bool(table["utilization"]["mem_at_baseline"])


@pytest.mark.slow
def test_one_timestamp_of_a_wrong_clock_is_left_out_and_said(stray: Diagnosis) -> None:
    assert not {"sampling-coverage", "sampling-gaps"} & {one.rule for one in stray.findings}
    (given,) = stray.to_dict()["inputs"]
    (far,) = (one for one in given["problems"] if one["kind"] == "sample more than 30 days from all others")
    assert (far["count"], far["line"], far["lost"]) == (1, 402, True) and far["example"].startswith("2099-01-01")
    assert given["rows"] == 599


def test_too_little_work_for_its_course_says_how_much_would_do() -> None:
    shift = profile(
        ShiftProfile, {"0": {"n_segments": 0.0, "block_s": 3600.0}, "1": {"n_segments": 0.0, "block_s": 600.0}}
    )
    one = verdict(gpu_level_shift, shift)
    assert one.status is Status.NOT_ASSESSED
    assert "in stretches of 10 min" in one.reason and "1 h 10 min of work" in one.remedy


def test_a_table_without_reports_asks_for_the_storage_and_no_controls() -> None:
    """An export names pruned trials and none of their values: trials without pruning would not show them either."""
    one = verdict(pruned_too_early, profile(AgreementProfile, n_pruned=24, n=0))
    assert one.status is Status.NOT_ASSESSED
    assert one.reason == "The pruned trials have no intermediate values."
    assert one.remedy == "Give the study's storage instead of an export or a log."
    few = verdict(pruned_too_early, profile(AgreementProfile, n_pruned=24, n=3, cut_step=2.0))
    assert few.remedy.startswith("Run 15 trials or more unpruned")
