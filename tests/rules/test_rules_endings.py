"""What is advised for a training that died, by what it died of."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from gpudiag.measures.endings import EndingsProfile
from gpudiag.rules._engine.verdict import Severity, Verdict
from gpudiag.rules.endings import training_failed
from tests.rules.small_profiles import profile, verdict


def ended(kind: str, by: str, outcome: str = "failed") -> Verdict:
    row = {
        "training": "train.log", "kind": kind, "by": by, "text": "it", "last_step": 7.0, "time": pd.NaT,
        "total_steps": math.nan, "outcome": outcome, "rerun": "",
    }  # fmt: skip
    made = profile(EndingsProfile, failed=pd.DataFrame([row]), n_logs=1, n_failed=1)
    return verdict(training_failed, made)


def remedy(kind: str, by: str, outcome: str = "failed") -> str:
    return str(ended(kind, by, outcome).remedy)


@pytest.mark.parametrize(
    ("outcome", "title"),
    [
        ("failed", "The training did not run through"),
        ("outside", "The training did not run through"),
        ("held", "The job went on after its training was done"),
        ("open", "The training met an error that it may have outlived"),
    ],
)
def test_a_training_that_was_done_is_not_called_one_that_did_not_run_through(outcome: str, title: str) -> None:
    assert ended("time_limit", "log", outcome).title == title


@pytest.mark.parametrize("by", ["log", "exception"])
def test_out_of_gpu_memory_is_not_sought_in_that_of_the_host(by: str) -> None:
    assert remedy("oom", by).startswith("The GPU's memory did not suffice: take a smaller batch")
    assert "journalctl" not in remedy("oom", by)


@pytest.mark.parametrize("by", ["log", "signal"])
def test_a_kill_is_sought_in_the_memory_of_the_host(by: str) -> None:
    assert remedy("host_killed", by).startswith("Look at the host's memory") and "batch" not in remedy(
        "host_killed", by
    )


def test_what_the_log_states_is_answered() -> None:
    assert "--shm-size" in remedy("shm", "log") and "journalctl" not in remedy("shm", "log")
    assert remedy("nan", "log").startswith("Resume from a checkpoint of before the loss became NaN")


def test_of_what_nobody_knows_the_output_tells() -> None:
    assert remedy("other", "exit_code").startswith("Read what the program printed last")
    assert remedy("other", "log").startswith("Read the lines above it in the log")
    assert remedy("other", "signal", "outside").startswith("Resume from the last checkpoint. If a time limit")


@pytest.mark.parametrize(("by", "outcome"), [("log", "failed"), ("exit_code", "outside")])
def test_only_a_time_limit_asks_for_more_time(by: str, outcome: str) -> None:
    assert remedy("time_limit", by, outcome).startswith("Ask the scheduler for more time")
    for kind in ("node_failure", "requeued", "preempted", "canceled", "stuck", "oom", "host_killed"):
        assert "more time" not in remedy(kind, "log", "outside")


def test_a_second_try_that_ran_through_is_told_with_both_logs() -> None:
    row = {
        "training": "a/run1.log", "kind": "oom", "by": "log", "text": "it", "last_step": 7.0, "time": pd.NaT,
        "total_steps": 9.0, "outcome": "went_on", "rerun": "a/run2.log",
    }  # fmt: skip
    told = verdict(training_failed, profile(EndingsProfile, failed=pd.DataFrame([row]), n_logs=2, n_went_on=1))
    assert told.severity is Severity.NOTE and told.remedy.startswith("Keep what was changed")
    assert told.summary == (
        "The log run1.log ends with an error after step 7 of 9: it. A later one, run2.log, did all of the steps."
    )
