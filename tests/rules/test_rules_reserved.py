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
from gpudiag.schema import EVENTS, PROCESSES, conform

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


@pytest.mark.parametrize(
    ("names", "severity"),
    [
        (("VLLM::EngineCore",), Severity.NOTE),
        (("python -m vllm.entrypoints.openai.api_server", "sglang::scheduler_TP0"), Severity.NOTE),
        (("VLLM::EngineCore", "python train.py"), Severity.WARNING),
        (("python train.py",), Severity.WARNING),
        ((), Severity.WARNING),
    ],
)
def test_a_server_reserves_after_a_run_that_measures_its_model(names: tuple[str, ...], severity: Severity) -> None:
    """Weights, a run of 3 s at full load, then 92 % of the GPU; requests come after a minute."""
    profiled, serving = (AT > 30) & (AT < 45), AT > 120
    used = np.select([AT <= 30, profiled], [300.0, 0.25 * TOTAL_MIB], 0.92 * TOTAL_MIB)
    util = np.where(profiled | serving, 95.0, 0.0)
    seen = [(time, "0", 10 + i, name) for i, name in enumerate(names) for time in timestamps([50.0, 600.0])]
    processes = conform(pd.DataFrame(seen, columns=["time", "gpu", "pid", "name"]), PROCESSES)
    made = run(log(AT, util_pct=util, mem_used_mib=used), **({"processes": processes} if names else {}))
    (found,) = judge_all([memory_near_limit], Analysis(made), check_thresholds([memory_near_limit], {}))
    assert found.severity is severity
