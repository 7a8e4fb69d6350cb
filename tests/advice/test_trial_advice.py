"""What is advised for trials that end badly, and for what was not recorded."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from gpudiag.advice._engine.gains import GainBounds
from gpudiag.advice.recording import log_parameters, record_host, record_run, record_steadily
from gpudiag.advice.trials import checkpoint, heartbeat, log_failures
from gpudiag.measures.failures import FailuresProfile
from gpudiag.measures.feed import FeedProfile
from gpudiag.measures.sampling import SamplingProfile
from tests.advice.situations import Told, checks, found, gain_of, situation, trials
from tests.rules.small_profiles import profile

NAN = math.nan
LOST = GainBounds(lost_gpu_h={"failures": 3.5, "abandoned": 1.25})
SHOWS = (1.0, 1.0, "x", "none")


@pytest.mark.parametrize("n", [0, 1, 4])
def test_dead_trials_are_noticed_after_a_minute(n: int) -> None:
    made = heartbeat.propose(situation(trials(n_running=n), bounds=LOST))
    assert made is not None
    assert [(change.present, change.proposed) for change in made.changes] == [(None, 60), (n, "FAIL")]
    assert gain_of(made) == (0.0, 1.25, "GPU-h", "abandoned") and checks(made) == [("trials.abandoned", "<=", 0.0)]
    unknown = heartbeat.propose(situation())
    assert unknown is not None and unknown.changes[1].present is None and gain_of(unknown) is None


@pytest.mark.parametrize(("failed", "worth"), [(59.0, False), (60.0, True), (69.0, True), (300.0, True), (NAN, False)])
def test_checkpoints_are_worth_it_where_trials_fail_late(failed: float, worth: bool) -> None:
    states = {
        "COMPLETE": {"median_s": 110.0, "total_worker_s": 6000.0},
        "FAIL": {"median_s": failed, "total_worker_s": 5400.0},
    }
    made = checkpoint.propose(situation(trials(states), bounds=LOST))
    assert (made is not None) is worth
    if made is not None:
        assert gain_of(made) == (0.0, 3.5, "GPU-h", "failures") and "took 1.5 worker-h in all" in made.assumption
        shown = {60.0: "1 min", 69.0: "1 min 09 s", 300.0: "5 min"}[failed]
        assert f"(median {shown})" in made.assumption
    assert checkpoint.propose(situation(bounds=LOST)) is None


@pytest.mark.parametrize(
    ("state", "rule", "worth"),
    [
        ("COMPLETE", "failure-rate-high", True),
        ("PRUNED", "failure-rate-high", True),
        ("RUNNING", "failure-rate-high", False),
        ("RUNNING", "gpu-lost", True),
        ("RUNNING", "failures-host-killed", True),
    ],
)
def test_no_checkpoints_where_every_trial_fails_by_itself(state: str, rule: str, worth: bool) -> None:
    states = {state: {"median_s": 90.0, "total_worker_s": 90.0}, "FAIL": {"median_s": 95.0, "total_worker_s": 1140.0}}
    assert (checkpoint.propose(situation(trials(states), rules=(rule,), bounds=LOST)) is not None) is worth


@pytest.mark.parametrize(("failed", "worth"), [(119.0, False), (120.0, True)])
def test_no_checkpoints_for_trials_that_fail_in_their_first_half(failed: float, worth: bool) -> None:
    states = {"COMPLETE": {"median_s": 240.0, "total_worker_s": 6000.0}, "FAIL": {"median_s": failed}}
    assert (checkpoint.propose(situation(trials(states), bounds=LOST)) is not None) is worth


@pytest.mark.parametrize(("lost", "worth"), [(0.49, False), (0.5, True), (NAN, True)])
def test_no_checkpoints_for_a_few_seconds(lost: float, worth: bool) -> None:
    states = {"COMPLETE": {"median_s": 110.0, "total_worker_s": 6000.0}, "FAIL": {"median_s": 100.0}}
    bounds = GainBounds(lost_gpu_h={"failures": lost, "abandoned": 0.0}, trial_gpu_h=10.0)
    assert (checkpoint.propose(situation(trials(states), bounds=bounds)) is not None) is worth


@pytest.mark.parametrize(
    ("told", "n_fail", "died", "worth"),
    [(9, 9, NAN, False), (8, 9, NAN, True), (0, 3, 0, True), (0, 3, 2, True), (0, 3, 3, False), (1, 3, 2, False)],
)
def test_no_more_text_of_failures_whose_kind_is_known_or_whose_process_was_killed(
    told: int, n_fail: int, died: float, worth: bool
) -> None:
    known: FailuresProfile = profile(FailuresProfile, n_told=told, n_fail=n_fail)
    assert (log_failures.propose(situation(known, trials(n_died=died), bounds=LOST)) is not None) is worth


def test_what_only_writes_something_down_brings_nothing_by_itself() -> None:
    for item in (log_failures, log_parameters, record_host):
        made = item.propose(situation(bounds=LOST))
        assert gain_of(made) == SHOWS and made is not None and made.changes[0].present is None
        assert not made.verify_first and "speeds nothing up" in made.assumption


@pytest.mark.parametrize(
    ("columns", "rules", "worth"),
    [
        ({"params.bs": [1, 2, 3]}, ("failure-rate-high",), False),
        ({"params.bs": [1, 2, 3]}, ("failure-rate-high", "pruned-before-possible"), True),
        ({"params.bs": [1, None, None]}, ("failure-rate-high",), True),  # the failed ones lack it
        ({}, ("failure-rate-high",), True),
        ({"params.bs": [1, 2, 3]}, ("gpu-imbalance",), True),
        ({"user_attrs.CUDA_VISIBLE_DEVICES": ["0", "1", "0"]}, ("gpu-imbalance",), False),
    ],
)
def test_settings_that_the_trials_carry_are_not_asked_for(
    columns: dict[str, Any], rules: tuple[str, ...], worth: bool
) -> None:
    told = Told()
    told.run.trials = pd.DataFrame({"state": ["COMPLETE", "FAIL", "FAIL"], **columns})
    assert (log_parameters.propose(situation(rules=rules, analysis=told)) is not None) is worth


def recorded(period_s: float, coverage: float, shares: tuple[float, ...] = ()) -> SamplingProfile:
    row = {"gpu": "0", "start": pd.NaT, "end": pd.NaT, "gap_s": 1.0, "trials_ended": 0}
    gaps = pd.DataFrame([{**row, "share_pct": share} for share in shares], columns=[*row, "share_pct"])
    made: SamplingProfile = profile(SamplingProfile, median_period_s=period_s, coverage_pct=coverage, gaps=gaps)
    return made


@pytest.mark.parametrize(("period", "loop"), [(0.5, 1), (1.0, 1), (2.4, 2), (2.6, 3), (5.0, 5), (30.0, 5), (NAN, 1)])
def test_the_recorder_keeps_the_period_within_a_second_to_five(period: float, loop: int) -> None:
    made = record_run.propose(situation(recorded(period, 50.0), rules=("sampling-gaps",)))
    assert made is not None and f"--format=csv -l {loop} > gpu.csv" in made.changes[0].code


@pytest.mark.parametrize("coverage", [61.28, 0.0, NAN])
def test_the_whole_run_is_recorded(coverage: float) -> None:
    for rule in ("sampling-coverage", "sampling-gaps"):
        made = record_run.propose(situation(recorded(1.0, coverage), rules=(rule,)))
        assert made is not None and made.changes[0].text == ""
        assert checks(made) == [("sampling.coverage_pct", ">=", 80.0)] and gain_of(made) == SHOWS


def test_a_slow_recorder_gets_a_higher_priority() -> None:
    made = record_steadily.propose(situation(recorded(1.0, 99.0), rules=("sampler-slows-down",)))
    assert made is not None and checks(made) == [] and gain_of(made) == SHOWS
    assert made.changes[0].code.startswith("sudo nice -n -5 nohup nvidia-smi")
    assert record_steadily.propose(situation(recorded(1.0, 99.0), rules=("sampling-gaps",))) is None


@pytest.mark.parametrize(("shares", "mends"), [((), True), ((99.0,), True), ((99.1,), False), ((5.0, 99.9), False)])
def test_more_recording_does_not_mend_a_wrong_timestamp(shares: tuple[float, ...], mends: bool) -> None:
    made = record_run.propose(situation(recorded(1.0, 0.1, shares), rules=("sampling-gaps",)))
    assert (made is not None) is mends
    assert record_run.propose(situation(rules=("sampling-gaps",))) is not None


@pytest.mark.parametrize(
    ("cores", "cpu", "seconds", "present"),
    [
        (True, True, (60.0,), "enough"),
        (True, False, (10.0, 61.0), "enough"),
        (True, True, (59.9,), None),
        (False, True, (600.0,), "CPU as a whole"),
        (False, False, (600.0,), None),
    ],
)
def test_the_cpu_is_recorded_by_core_unless_a_minute_of_it_was(
    cores: bool, cpu: bool, seconds: tuple[float, ...], present: Any
) -> None:
    rows = {str(gpu): {"host_s": host} for gpu, host in enumerate(seconds)}
    made = record_host.propose(situation(profile(FeedProfile, rows, has_cores=cores, has_cpu=cpu)))
    assert (made is None) is (present == "enough")
    assert made is None or made.changes[0].present == present


@pytest.mark.parametrize(
    ("causes", "asked"), [(("startup-dominated", "startup-dominated"), False), (("startup-dominated", None), True)]
)
def test_the_cpu_is_not_asked_for_what_other_findings_explain(causes: tuple[str | None, ...], asked: bool) -> None:
    names = ("gpu-low-utilization", "gpu-fluctuating")
    rules = [found(name, caused_by=cause) for name, cause in zip(names, causes, strict=True)]
    assert (record_host.propose(situation(rules=rules)) is not None) is asked
