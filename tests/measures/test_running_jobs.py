"""Jobs that were running when a scheduler was asked: nobody knows that they have ended."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from smallruns import T0, gpu, run

from gpudiag.measures._time.trial_intervals import ran_until, trial_intervals
from gpudiag.measures._trials.horizon import Sign, open_trials
from gpudiag.measures.ledger import measure_ledger
from gpudiag.schema import TRIALS, conform


def jobs(**columns: object) -> pd.DataFrame:
    start = pd.Timestamp(T0) + pd.to_timedelta([0, 10], unit="s")
    end = [start[0] + pd.Timedelta(seconds=60), pd.NaT]
    table = {"study": "sacct", "trial": [0, 1], "start": start, "end": end, "user_attrs.job": ["7", "8"]}
    return conform(pd.DataFrame({**table, "state": ["COMPLETE", "RUNNING"], **columns}), TRIALS)


def test_how_long_a_job_had_run_is_no_end() -> None:
    table = jobs(duration_s=[np.nan, 400.0])
    intervals = trial_intervals(table)
    assert intervals["known"].tolist() == [True, False] and pd.isna(intervals["end"].iloc[1])
    assert ran_until(table).isna().tolist() == [True, False]
    assert (ran_until(table).iloc[1] - table["start"].iloc[1]).total_seconds() == 400


@pytest.mark.parametrize("recorded_s", [0, 3600])
def test_it_ran_until_then_at_least_and_to_the_end_of_the_record_at_most(recorded_s: int) -> None:
    """An hour is sixty times as long as the other job took: Optuna would call that stale."""
    telemetry = {"gpu": gpu(np.arange(0.0, recorded_s, 5.0), util_pct=90.0)} if recorded_s else {}
    held = run(trials=jobs(duration_s=[np.nan, 400.0]), **telemetry)
    (job,) = open_trials(held).itertuples()
    start = held.trials["start"].iloc[1]
    assert (job.last_evidence - start).total_seconds() == 400 and job.reason == Sign.END and not job.abandoned
    assert (job.horizon - start).total_seconds() == pytest.approx(max(400, recorded_s - 15), abs=5)


def test_its_work_after_the_list_was_printed_is_not_foreign() -> None:
    told = jobs(duration_s=[np.nan, 400.0], gpu="0")
    ledger = measure_ledger(run(trials=told, gpu=gpu(np.arange(0.0, 3600, 5.0), util_pct=90.0)))
    assert ledger.outside_busy_gpu_s == pytest.approx(0, abs=20)
