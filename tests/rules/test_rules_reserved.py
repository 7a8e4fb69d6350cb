"""Memory that a framework takes all at once before its work is reserved, and no measure of need."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from planted.base import TOTAL_MIB, log, run, ticks, timestamps

from gpudiag.analysis import Analysis
from gpudiag.rules._engine.judging import judge_all
from gpudiag.rules._engine.rule import check_thresholds
from gpudiag.rules._engine.verdict import Severity, Verdict
from gpudiag.rules.memory import memory_near_limit
from gpudiag.run import Run
from gpudiag.schema import EVENTS, conform

AT = ticks(1000.0)
BUSY_S = 60.0


def judged(taken_s: float, later_pct: float = 0.0, *, oom: bool = False) -> Verdict:
    """Memory jumps to 94 % at ``taken_s``, and half way by ``later_pct`` more; the GPU works from a minute on."""
    used = np.where(taken_s > AT, 300.0, (94.0 + np.where(AT > 500, later_pct, 0.0)) / 100 * TOTAL_MIB)
    tables: dict[str, pd.DataFrame] = {}
    if oom:
        told = {"time": timestamps([900.0]), "kind": "oom", "detail": "CUDA out of memory", "path": "train.log"}
        tables["events"] = conform(pd.DataFrame(told), EVENTS)
    made: Run = run(log(AT, util_pct=np.where(AT < BUSY_S, 0.0, 95.0), mem_used_mib=used), **tables)
    (found,) = judge_all([memory_near_limit], Analysis(made), check_thresholds([memory_near_limit], {}))
    return found


def test_memory_taken_before_the_work_is_reserved() -> None:
    found = judged(20.0)
    assert found.severity is Severity.NOTE and "held 94 % of its" in found.summary
    assert "the framework reserved it" in found.summary and "Limit what takes memory" not in found.remedy


@pytest.mark.parametrize(("taken_s", "later_pct"), [(BUSY_S, 0.0), (BUSY_S - 5.0, 0.0), (20.0, 3.0), (0.0, 0.0)])
def test_memory_that_the_work_took_is_nearly_full(taken_s: float, later_pct: float) -> None:
    """With the first steps, in a rise later on, or before the record begins: how it came is then not known."""
    found = judged(taken_s, later_pct)
    assert found.severity is Severity.WARNING and "were left at the peak" in found.summary


def test_memory_that_ran_out_was_needed() -> None:
    assert judged(20.0, oom=True).severity is Severity.WARNING
