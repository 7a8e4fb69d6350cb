"""The busiest process beside a GPU: recorders look through processes less often than they read the cores."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from smallruns import at, gpu, run

from gpudiag.measures.feed import measure_feed
from gpudiag.run import Run
from gpudiag.schema import EVENTS, HOST, conform

SECONDS = np.arange(0.0, 600.0)
RECORDED = "DataLoader avg 5.00 ms over 100 batches, 10.0 batch/s"


def beside(seconds: np.ndarray, process_pct: np.ndarray, core_pct: float = 52.0) -> Run:
    """A GPU at 44 % beside a thread that moves between cores: no core is busy, and the process is."""
    frame = {"time": at(seconds), "cpu_max_core_pct": core_pct, "process_cpu_max_pct": process_pct}
    return run(gpu=gpu(SECONDS, util_pct=44.0), host=conform(pd.DataFrame(frame), HOST))


def hot_pct(made: Run) -> float:
    return float(measure_feed(made).per_gpu.at["0", "hot_pct"])


@pytest.mark.parametrize("every", [1, 7, 60])
def test_a_reading_holds_since_the_one_before(every: int) -> None:
    """97 % of a core in the first 300 s, 20 % then; the first look through processes at ``every`` gives a mean, too."""
    read = SECONDS % every == every - 1
    process = np.where(read, np.where(SECONDS < 300, 97.0, 20.0), np.nan)
    assert hot_pct(beside(SECONDS, process)) == pytest.approx(50, abs=1)


def test_a_reading_says_nothing_of_the_time_before_a_hole() -> None:
    """A second recording begins 20 s after the first ended, which never looked through the processes."""
    first, second = SECONDS[SECONDS < 280], SECONDS[SECONDS >= 300]
    process = np.append(np.full(len(first), np.nan), np.where(second % 5 == 4, 97.0, np.nan))
    made = beside(np.append(first, second), process)
    # GPU samples in the hole are beside the nearer end of it, within 15 s: ten on either side.
    assert hot_pct(made) == pytest.approx(100 * (300 + 10) / 600, abs=1)


def test_readings_seldom_or_none_leave_the_cores() -> None:
    assert hot_pct(beside(SECONDS, np.full(len(SECONDS), np.nan))) == 0
    assert hot_pct(beside(SECONDS, np.full(len(SECONDS), np.nan), core_pct=99.0)) == 100


@pytest.mark.parametrize(
    ("lines", "stated"),
    [
        (["DataLoader avg: 25.0ms", "20 batch/s"], 50.0),
        (["DataLoader avg: 0.0ms"], 0.0),
        (["DataLoader avg: 25.0ms"], None),
        ([f"{RECORDED}, 4.0 s for the first batches of 3 loops begun again"], 40.0),
        ([], None),
    ],
)  # fmt: skip
def test_the_stated_wait_is_that_of_steps_or_of_the_starts_of_epochs(lines: list[str], stated: float | None) -> None:
    events = pd.DataFrame({"time": at([60.0] * len(lines)), "kind": "loader", "detail": lines})
    made = run(gpu=gpu(SECONDS, util_pct=44.0), events=conform(events, EVENTS))
    assert measure_feed(made).stated_wait_pct == pytest.approx(np.nan if stated is None else stated, nan_ok=True)
