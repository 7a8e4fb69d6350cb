"""Whether one process runs trial after trial: by hand, and on runs of a real GPU whose workers are known."""

from __future__ import annotations

import pandas as pd
import pytest
from sampleruns import diagnosed

from gpudiag.advice._engine.processes import keeps_processes
from gpudiag.run import Run, RunInfo
from gpudiag.schema import PROCESSES, TRIALS, conform

BEGIN = pd.Timestamp("2026-01-01", tz="UTC")


def seen(pids: list[int]) -> Run:
    """Four trials of 100 s in a row, and the process that each sample of 10 s shows."""
    start = [BEGIN + pd.Timedelta(seconds=100 * i) for i in range(4)]
    trials = pd.DataFrame({"study": "s", "trial": range(4), "state": "COMPLETE", "start": start})
    trials["end"] = trials["start"] + pd.Timedelta(seconds=100)
    time = [BEGIN + pd.Timedelta(seconds=10 * i) for i in range(40)]
    rows = pd.DataFrame({"time": time, "gpu": "0", "pid": [pids[i // 10] for i in range(40)]})
    return Run(trials=conform(trials, TRIALS), processes=conform(rows, PROCESSES), info=RunInfo(name="run"))


def test_a_process_that_outlives_every_trial_is_kept() -> None:
    assert keeps_processes(seen([7, 7, 7, 7]))
    assert keeps_processes(seen([7, 7, 7, 8]))
    assert not keeps_processes(seen([7, 8, 9, 10])), "a process a trial"
    assert not keeps_processes(seen([7, 7, 8, 9])), "it is half of the record only"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kept"), [("one-worker", True), ("process-per-trial", False)])
def test_on_a_real_gpu(name: str, kept: bool) -> None:
    found = diagnosed(f"real-h100/{name}")
    assert keeps_processes(found.run) is kept
    advised = {one.id for one in found.advice.recommendations}
    assert not (kept and "warm-worker" in advised)
