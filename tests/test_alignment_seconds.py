"""Clocks that differ by seconds to minutes: what shows it, and that nothing is read off them then."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from poolrun import Pool, make
from test_alignment import alone

import gpudiag as gd
from gpudiag.alignment import apply_clock, establish_clock
from gpudiag.alignment.falls import find_lag
from gpudiag.alignment.signals import SampleTimes
from gpudiag.alignment.skew import find_skew
from gpudiag.analysis import Analysis
from gpudiag.measures._trials.startup import startups
from gpudiag.measures.base import OPEN_CLOCK, STATE_OFFSET
from gpudiag.measures.costs import measure_costs
from gpudiag.measures.leak import measure_leak
from gpudiag.measures.ledger import IDLE, measure_ledger
from gpudiag.measures.stalls import measure_stalls
from gpudiag.rules._engine.judging import judge_all
from gpudiag.rules._engine.rule import check_thresholds
from gpudiag.rules._engine.verdict import Status
from gpudiag.rules.costs import startup_dominated
from gpudiag.rules.leak import memory_residual
from gpudiag.run import ClockRecord, InputRecord, Run

ONE = Pool(hours=1.0, workers=1, period_s=2, gap_s=8, stalls=False)
SHARED = Pool(hours=1.0, workers=2, period_s=2, gap_s=2)


def by(run: Run, ahead_s: float) -> Run:
    """The run with trials whose clock is ahead by so much."""
    step = pd.Timedelta(seconds=ahead_s)
    return replace(run, trials=run.trials.assign(start=run.trials["start"] + step, end=run.trials["end"] + step))


def settled(run: Run) -> Run:
    return apply_clock(run, establish_clock(run))


def without_memory(run: Run) -> Run:
    return replace(run, gpu=run.gpu.drop(columns="mem_used_mib"))


@pytest.mark.parametrize("pool", [ONE, SHARED])
@pytest.mark.parametrize("ahead_s", [-120, -45, -20, 20, 60])
def test_memory_that_falls_at_one_distance_from_the_ends_is_told(pool: Pool, ahead_s: float) -> None:
    run = by(make(1, pool)[0], ahead_s)
    lag = find_lag(run, SampleTimes.of(run))
    assert lag is not None and abs(lag.lag_s + ahead_s) <= 2 and lag.n_apart >= 0.9 * lag.n_ends
    clock = establish_clock(run)
    assert (clock.applied_s, clock.confidence, clock.exact) == (0, "weak", False)
    assert abs(clock.offset_s + ahead_s) <= 2 and abs(ahead_s) <= clock.doubt_s <= abs(ahead_s) + 12
    side = "after" if ahead_s < 0 else "before"
    assert f"{side} the recorded end of {lag.n_apart} of {lag.n_ends} trials." in str(clock.evidence)
    assert f"state clock_offset_s = {lag.lag_s:.0f} in run.toml." in str(clock.evidence)


@pytest.mark.parametrize("pool", [ONE, SHARED, Pool(hours=1.5, startup_s=60, tail_s=5), Pool(hours=1.5, memory=False)])
@pytest.mark.parametrize("seed", [1, 2])
def test_equal_clocks_are_exact(pool: Pool, seed: int) -> None:
    run = make(seed, pool)[0]
    assert find_lag(run, SampleTimes.of(run)) is None
    clock = establish_clock(run)
    assert clock.exact and clock.doubt_s == 0 and clock.confidence == "strong"


def test_memory_freed_a_few_seconds_late_or_early_is_no_lag() -> None:
    for late_s in (-9, 4):
        run = by(make(3, ONE)[0], -late_s)
        assert find_lag(run, SampleTimes.of(run)) is None


def test_memory_that_falls_at_ends_and_elsewhere_is_no_lag() -> None:
    """Each trial frees half of its memory 30 s after it has started to work."""
    run = make(1, ONE)[0]
    time = run.gpu["time"]
    half = np.zeros(len(time))
    for start, end in zip(run.trials["start"], run.trials["end"], strict=True):
        half += 800.0 * ((time >= start) & (time < end - pd.Timedelta(seconds=50)))
    freed = replace(run, gpu=run.gpu.assign(mem_used_mib=run.gpu["mem_used_mib"] + half))
    assert find_lag(freed, SampleTimes.of(freed)) is None


@pytest.mark.parametrize("ahead_s", [-37.5, -100.0])
def test_work_that_goes_on_after_trials_shows_a_clock_that_is_behind(ahead_s: float) -> None:
    run = alone(ahead_s)
    skew = find_skew(run, SampleTimes.of(run))
    assert skew is not None and skew.low_s <= ahead_s <= skew.high_s < 0
    clock = establish_clock(run)
    assert (clock.applied_s, clock.exact) == (0, False) and "behind, in 0" in str(clock.evidence)
    assert "A script that works on after its trials looks the same." in str(clock.evidence)


def test_short_gaps_are_looked_at_until_the_sample_behind_them() -> None:
    """Half a second between trials, a sample every 2 s, and no memory."""
    run = without_memory(make(1, replace(ONE, gap_s=0.5))[0])
    behind = by(run, -45)
    skew = find_skew(behind, SampleTimes.of(behind))
    assert skew is not None and skew.low_s <= -45 <= skew.high_s and skew.n_gaps >= 20
    assert find_skew(run, SampleTimes.of(run)) is None


@pytest.mark.parametrize("ahead_s", [-60, 60])
def test_a_fit_beside_the_quarter_leaves_the_seconds_open(ahead_s: float) -> None:
    """Two trials at once, of which no memory tells."""
    run = without_memory(make(1, SHARED)[0])
    clock = establish_clock(by(run, ahead_s))
    assert (clock.offset_s, clock.applied_s, clock.exact) == (0, 0, False)
    assert abs(ahead_s) - 20 <= clock.doubt_s / 2 <= abs(ahead_s)
    assert "At 0 h itself the correlation is 0." in str(clock.evidence)
    exact = establish_clock(run)
    assert exact.exact and "At 0 h itself" not in str(exact.evidence)


@pytest.mark.parametrize("ahead_s", [-300, 240])
def test_a_clear_fit_that_no_zone_explains_is_told(ahead_s: float) -> None:
    clock = establish_clock(by(make(1, ONE)[0], ahead_s))
    assert (clock.applied_s, clock.confidence, clock.exact) == (0, "weak", False)
    assert abs(clock.offset_s + ahead_s) <= 10
    assert f"no time zone explains. If the clocks differ so, state clock_offset_s = {clock.offset_s:.0f}" in str(
        clock.evidence
    )


@pytest.mark.parametrize("late_s", [14, -16])
def test_memory_freed_late_or_early_beside_two_clocks_in_utc_is_a_note(late_s: float) -> None:
    run = make(1, ONE)[0]
    trials = run.trials.assign(end=run.trials["end"] - pd.Timedelta(late_s, "s"))
    info = replace(run.info, inputs=(InputRecord("gpu.csv", "telemetry", clock="utc"),))
    clock = establish_clock(replace(run, trials=trials, studies=run.studies.assign(clock="utc"), info=info))
    assert (clock.method, clock.confidence, clock.offset_s, clock.exact) == ("utc", "strong", 0, True)
    assert f"state clock_offset_s = {late_s} in run.toml" in str(clock.notes[-1])


def test_what_was_measured_is_said_and_no_more() -> None:
    said = str(establish_clock(make(1, SHARED)[0]).evidence)
    assert "That rules out another time zone, not a difference of seconds." in said
    assert "other whole quarters of an hour reach 0." in said


def test_doubt_follows_from_what_is_known() -> None:
    assert (
        ClockRecord().exact
        and ClockRecord(confidence="weak").exact
        and ClockRecord(3600, "strong", applied_s=3600).exact
    )
    assert ClockRecord(confidence="undetermined").doubt_s == np.inf
    assert ClockRecord(3600, "weak").doubt_s == 3600 and ClockRecord(apart_s=20).doubt_s == 20
    assert not ClockRecord(joined=False).exact


@pytest.fixture(scope="module")
def skewed() -> Run:
    return settled(by(make(1, ONE)[0], -45))


@pytest.mark.slow
def test_idle_time_goes_to_what_cannot_be_divided(skewed: Run) -> None:
    cells = measure_ledger(skewed).totals.set_index("cell")["gpu_s"]
    assert cells[["startup_only", "tail_only", "stalled", "foreign", "idle_no_trial"]].sum() == 0
    true = measure_ledger(settled(make(1, ONE)[0])).totals.set_index("cell")["gpu_s"]
    assert cells["waiting"] == pytest.approx(true[list(IDLE)].sum(), rel=0.1)
    assert cells.sum() == pytest.approx(true.sum(), abs=5)


@pytest.mark.slow
def test_nothing_that_depends_on_seconds_is_measured(skewed: Run) -> None:
    assert np.isnan(startups(skewed).seconds).all() and np.isnan(startups(skewed).median_s)
    assert measure_costs(skewed).trials["peak_mem_mib"].isna().all()
    assert (measure_stalls(skewed).per_gpu["open_pct"] > 0).all()
    # Telemetry goes on for 105 s behind the recorded end; 45 s and more may be a trial's, and 10 s are left out.
    assert measure_leak(skewed).per_gpu["after_s"].max() <= 105 - 45 - 10


@pytest.mark.slow
def test_a_diagnosis_holds_back_what_the_clock_may_change(skewed: Run) -> None:
    found = {one.rule: one.status.value for one in gd.diagnose(skewed).verdicts}
    assert found["clocks-differ"] == "found"
    held = ("foreign-load", "idle-without-trial", "stalls-periodic", "stalls-aperiodic", "startup-dominated")
    assert {found[rule] for rule in held} == {"not_assessed"}


def test_an_offset_that_is_stated_is_believed(skewed: Run) -> None:
    run = by(make(1, ONE)[0], -45)
    stated = settled(replace(run, info=replace(run.info, given_offset_s=0.0)))
    assert stated.info.clock.exact and measure_stalls(stated).per_gpu["work_s"].sum() > 0


@pytest.mark.parametrize("joined", [True, False])
def test_where_the_clocks_are_the_reason_they_are_named(*, joined: bool) -> None:
    """Telemetry goes on for five minutes after the last trial."""
    run = make(1, Pool(hours=0.5, workers=1, gap_s=20, margin_s=300))[0]
    rules = (startup_dominated, memory_residual)
    clock = ClockRecord(confidence="undetermined", joined=joined)
    made = replace(run, info=replace(run.info, clock=clock))
    for one in judge_all(rules, Analysis(made), check_thresholds(rules, {})):
        assert one.status is Status.NOT_ASSESSED and one.remedy == STATE_OFFSET and one.reason == OPEN_CLOCK
    for one in judge_all(rules, Analysis(run), check_thresholds(rules, {})):
        assert one.status is not Status.NOT_ASSESSED
