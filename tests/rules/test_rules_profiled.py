"""Rules on profiled steps: traces that are not like the run, and traces that name no rank or one rank twice."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from planted.profiled import behind, data
from small_profiles import profile

from gpudiag.analysis import Analysis
from gpudiag.measures.profiled import ProfiledProfile, measure_profiled
from gpudiag.rules._engine.judging import judge_all
from gpudiag.rules._engine.rule import Rule, check_thresholds
from gpudiag.rules._engine.verdict import Severity, Status, Verdict
from gpudiag.rules.profiled import rank_behind, steps_data
from gpudiag.run import Run


def judged(rule: Rule, found: Any) -> Verdict:
    analysis = Analysis(Run(), {rule.measure: found})
    return judge_all((rule,), analysis, check_thresholds((rule,), {}))[0]


@pytest.mark.parametrize("unlike", [False, True])
def test_steps_that_are_not_the_runs_are_a_note(unlike: bool) -> None:
    found = profile(ProfiledProfile, n_profiled_steps=8.0, data_pct=70.0, unlike_run=unlike)
    verdict = judged(steps_data, found)
    assert verdict.status is Status.FOUND
    assert verdict.severity is (Severity.NOTE if unlike else Severity.WARNING)
    assert verdict.summary.endswith("The run's steps are not like these.") is unlike


@pytest.mark.parametrize(
    ("ranks", "status", "reason"),
    [
        ([0, 1, 2, 3], Status.FOUND, ""),
        ([0, 1, 1, 3], Status.NOT_ASSESSED, "Several traces or GPUs are of one rank (4 traces)."),
        ([0, 1, 2, pd.NA], Status.NOT_ASSESSED, "The traces do not say of which ranks they are."),
        ([pd.NA] * 4, Status.NOT_ASSESSED, "The traces do not say of which ranks they are."),
    ],
)
def test_a_late_rank_needs_one_trace_of_each(ranks: list[Any], status: Status, reason: str) -> None:
    table = behind().profiled
    found = measure_profiled(Run(profiled=table.assign(rank=pd.array(ranks, dtype="Int64"))))
    verdict = judged(rank_behind, found)
    assert verdict.status is status
    assert not reason or (reason in verdict.reason and verdict.remedy)


@pytest.mark.parametrize("gpus", [1, 2])
def test_one_trace_is_of_no_ranks(gpus: int) -> None:
    """That of one process with two GPUs as well."""
    rows = [data().profiled.assign(gpu=str(gpu), rank=pd.NA) for gpu in range(gpus)]
    found = measure_profiled(Run(profiled=pd.concat(rows, ignore_index=True)))
    assert judged(rank_behind, found).status is Status.NOT_APPLICABLE
