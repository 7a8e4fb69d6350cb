"""The row of a run, whose numbers are all of the same time; the truth is worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest
from smallruns import T0, gpu, run, trials

from gpudiag.diagnosis import diagnose
from gpudiag.fleets.found import FoundRun
from gpudiag.fleets.row import row_of
from gpudiag.run import Run

HOUR = range(-3000, 601)
"""Seconds of a record: trials ran in the last ten minutes only, and the GPU was another job's before."""
PLACE = FoundRun("search", "search")


def search() -> Run:
    """300 W all the time, which is 0.05 kWh in ten minutes, and 80 % utilization."""
    return run(
        gpu=gpu(HOUR, util_pct=80.0, power_w=300.0), trials=trials([("COMPLETE", 0, 300), ("COMPLETE", 300, 600)])
    )


@pytest.mark.slow
def test_energy_and_gpu_time_of_a_row_are_of_the_trials() -> None:
    row = row_of(PLACE, diagnose(search()))
    assert (row.gpu_s, row.energy_kwh) == (pytest.approx(600), pytest.approx(0.05))
    early = search().gpu["time"] <= T0 - pd.Timedelta(seconds=60)
    dark = replace(search(), gpu=search().gpu.assign(power_w=search().gpu["power_w"].where(early)))
    assert row_of(PLACE, diagnose(dark)).energy_kwh is None  # all that was recorded is of another job


@pytest.mark.slow
def test_energy_and_gpu_time_of_a_row_without_trials_are_of_the_record() -> None:
    row = row_of(PLACE, diagnose(run(gpu=search().gpu)))
    # Half a step at each end is GPU time, and no trapezoid.
    assert (row.gpu_s, row.energy_kwh) == (pytest.approx(3601), pytest.approx(0.3))
