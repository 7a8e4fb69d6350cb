"""What ended beside how many is measured, and neither a bound nor a share of all stands before it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gpudiag as gd


@pytest.fixture(scope="module")
def phases() -> pd.DataFrame:
    """Two workers, 40 trials of 100 s, all COMPLETE; then six workers, 60 trials of about 80 s, every second FAIL."""
    rng = np.random.default_rng(4)
    rows: list[tuple[str, float, float]] = []
    begin = 0.0
    for workers, each, typical in ((2, 20, 100.0), (6, 10, 80.0)):
        length = typical * (1 + 0.05 * rng.standard_normal((workers, each)))
        ends = begin + np.cumsum(length, axis=1)
        states = [["COMPLETE" if workers == 2 or (i + j) % 2 else "FAIL" for j in range(each)] for i in range(workers)]
        rows += [
            (states[i][j], float(ends[i, j] - length[i, j]), float(ends[i, j]))
            for i in range(workers)
            for j in range(each)
        ]
        begin = float(ends.max())
    frame = pd.DataFrame(rows, columns=["state", "start", "end"])
    zero = pd.Timestamp("2026-03-01", tz="UTC")
    times = {name: zero + pd.to_timedelta(frame[name], unit="s") for name in ("start", "end")}
    return frame.assign(**times, trial=np.arange(len(frame)), seconds=frame["end"] - frame["start"])


def test_a_number_of_workers_that_was_there_is_measured(phases: pd.DataFrame) -> None:
    forecast = gd.what_if(gd.load_run(phases.drop(columns="seconds")), [1, 2, 6])
    for workers in (2, 6):
        mean_s = phases["seconds"][:40].mean() if workers == 2 else phases["seconds"][40:].mean()
        throughput = forecast.at(workers).throughput
        assert throughput.low <= 3600 * workers / mean_s <= throughput.high
        assert throughput.high / throughput.low < 1.2


def test_complete_trials_are_those_of_so_many_workers(phases: pd.DataFrame) -> None:
    forecast = gd.what_if(gd.load_run(phases.drop(columns="seconds")), [1, 2, 6])
    two, six, one = (forecast.at(workers) for workers in (2, 6, 1))
    assert two.complete.high > 0.97 * two.throughput.high, "none failed beside one other, but for the last ones"
    assert 0.85 * two.throughput.low < two.complete.low <= 0.92 * two.throughput.low, "40 of 40 is 91 to 100 %"
    assert six.complete.high < 0.7 * six.throughput.high
    assert one.complete.high > 0.97 * one.throughput.high and one.complete.low < 0.5 * one.throughput.low, "who knows"
