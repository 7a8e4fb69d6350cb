"""What dead trials left idle where nobody knows which of two GPUs they had: no more than whichever it was."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from smallruns import gpu, run, trials

from gpudiag.measures._time.gpu_time import gpu_time
from gpudiag.measures.trials import measure_trials
from gpudiag.run import Run

WORKED_S, LOGGED_S = 800.0, 1600.0


def two_gpus(held_mib: dict[str, float]) -> Run:
    """Both are as busy while trials run, the last of which dies; behind it each holds so much memory."""
    seconds = np.arange(0.0, LOGGED_S, 5.0)
    works = seconds < WORKED_S
    logs = [
        gpu(seconds, name, util_pct=np.where(works, 90.0, 0.0), mem_used_mib=np.where(works, 20000.0, mib))
        for name, mib in held_mib.items()
    ]
    logs = [log.assign(mem_total_mib=24564.0) for log in logs]
    rows = [("COMPLETE", 100.0 * n, 100.0 * n + 95) for n in range(7)]
    return run(gpu=pd.concat(logs, ignore_index=True), trials=trials([*rows, ("RUNNING", 700.0, math.nan)]))


@pytest.mark.parametrize(("one_mib", "other_mib"), [(20000.0, 20000.0), (20000.0, 0.0), (0.0, 20000.0)])
def test_the_least_is_told_of_gpus_that_are_as_likely(one_mib: float, other_mib: float) -> None:
    alike = two_gpus({"0": one_mib, "1": other_mib})
    assert all((chance == 0.5).all() for _, chance in gpu_time(alike).maybe.values()), "nothing tells which it was"
    left_h = (LOGGED_S - WORKED_S) / 3600
    assert measure_trials(alike).dead_idle_gpu_h == pytest.approx(
        left_h if min(one_mib, other_mib) > 0 else 0, abs=0.01
    )
