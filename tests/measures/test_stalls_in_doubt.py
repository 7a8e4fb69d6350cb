"""Waits within the work where the clocks of trials and telemetry may differ: what no clock changes is found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from poolrun import Pool, make

from gpudiag.analysis import Analysis
from gpudiag.measures.stalls import measure_stalls
from gpudiag.rules import stalls as rules
from gpudiag.rules._engine.judging import judge_all
from gpudiag.rules._engine.rule import check_thresholds
from gpudiag.run import ClockRecord, Run

LONG = Pool(hours=2, workers=1, work_s=900, startup_s=60, stalls=False)
OPEN = ClockRecord(confidence="undetermined", method="correlation")
WEAK = ClockRecord(offset_s=14, confidence="weak", method="correlation", apart_s=16.0)
RULES = (rules.stalls_periodic, rules.stalls_aperiodic)


def with_clock(run: Run, clock: ClockRecord) -> Run:
    return replace(run, info=replace(run.info, clock=clock))


def with_waits(run: Run, every_s: float) -> Run:
    """The GPU is idle for a third of that time, again and again."""
    since_s = (run.gpu["time"] - run.gpu["time"].iloc[0]).dt.total_seconds()
    return replace(run, gpu=run.gpu.assign(util_pct=run.gpu["util_pct"].mask(since_s % every_s < every_s / 3, 0.0)))


def statuses(run: Run) -> list[str]:
    return [one.status.value for one in judge_all(RULES, Analysis(run), check_thresholds(RULES, {}))]


@pytest.mark.slow
@pytest.mark.parametrize(("clock", "single"), [(OPEN, "not_assessed"), (WEAK, "ok")])
def test_regular_waits_are_found_whatever_the_clocks(clock: ClockRecord, single: str) -> None:
    run = with_waits(make(1, LONG)[0], 60)
    assert statuses(with_clock(run, clock)) == ["found", single]
    row = measure_stalls(with_clock(run, clock)).per_gpu.iloc[0]
    assert row["period_s"] == pytest.approx(60, abs=3) and row["width_s"] == pytest.approx(20, abs=5)


@pytest.mark.slow
def test_start_ups_of_trials_that_are_all_alike_are_no_waits() -> None:
    """A trial each 90 s, of which the GPU is idle for 30: clocks that nobody knows make that no wait at a period."""
    run = with_waits(make(1, LONG)[0], 90)
    start = run.gpu["time"].iloc[0]
    n = int((run.gpu["time"].iloc[-1] - start).total_seconds() // 90)
    trials = run.trials.iloc[np.zeros(n, int)].reset_index(drop=True).assign(trial=np.arange(n))
    begun = pd.date_range(start, periods=n, freq="90s")
    own = replace(run, trials=trials.assign(start=begun, end=begun + pd.Timedelta(88, "s")))
    assert statuses(with_clock(own, OPEN)) == ["not_assessed", "not_assessed"]
    found = measure_stalls(with_clock(own, OPEN))
    assert (found.per_gpu["open_pct"] > 10).all() and found.per_gpu[["n_dips", "n_stalls"]].isna().all(axis=None)


@pytest.mark.slow
def test_no_idle_time_is_open_where_the_clocks_are_known() -> None:
    run = make(1, Pool(hours=0.3, workers=1))[0]
    assert measure_stalls(with_clock(run, ClockRecord())).per_gpu["open_pct"].tolist() == [0.0]
    (open_pct,) = measure_stalls(with_clock(run, WEAK)).per_gpu["open_pct"]
    starts_pct = 100 * 20 / 170  # start-ups of 20 s before work of 150 s, both in the mean
    assert starts_pct / 2 < open_pct < 4 * starts_pct


@pytest.mark.slow
@pytest.mark.parametrize(("every_s", "said"), [(1500, "not_assessed"), (60, "found")])
def test_as_few_waits_as_start_ups_of_trials_that_are_not_joined_are_open(every_s: float, said: str) -> None:
    """Waits that start-ups of five trials may be, or 135: the telemetry alone would call both waits within the work."""
    run = with_waits(make(1, LONG)[0], every_s)
    apart = with_clock(run, ClockRecord(joined=False, confidence="undetermined", method="correlation"))
    alone = replace(run, trials=run.trials.iloc[:0], info=replace(run.info, clock=ClockRecord()))
    assert "found" in statuses(alone)
    assert said in statuses(apart) and ("found" in statuses(apart)) == (said == "found")
