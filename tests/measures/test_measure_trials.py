from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from smallruns import T0, run, study, trials

from gpudiag.errors import NotMeasurable
from gpudiag.measures.trials import measure_trials
from gpudiag.run import Run

NAN = math.nan


def test_counts_durations_and_rate_by_hand() -> None:
    table = trials(
        [("COMPLETE", 0, 100), ("COMPLETE", 0, 300), ("PRUNED", 100, 110), ("FAIL", 200, 260), ("RUNNING", 300, NAN)]
    )
    found = measure_trials(run(trials=table))
    assert found.by_state["n"].to_dict() == {
        "COMPLETE": 2, "PRUNED": 1, "FAIL": 1, "STOPPED": 0, "RUNNING": 1, "ABANDONED": 0, "WAITING": 0,
    }  # fmt: skip
    complete = found.by_state.loc["COMPLETE"]
    assert complete[["min_s", "p25_s", "median_s", "mean_s", "p75_s", "max_s"]].tolist() == [
        100,
        150,
        200,
        200,
        250,
        300,
    ]
    assert complete["total_worker_s"] == 400 and math.isnan(found.by_state.at["RUNNING", "total_worker_s"])
    assert complete["share_pct"] == pytest.approx(40)
    assert (found.n, found.n_finished, found.n_fail, found.n_running) == (5, 4, 1, 1)
    assert found.fail_pct == pytest.approx(25)
    assert found.fail_worker_h == pytest.approx(60 / 3600)
    assert found.span_s == 300
    assert len(found.durations) == 4


def test_case_1_interval_of_the_share() -> None:
    states = ["COMPLETE"] * 8 + ["PRUNED"] * 173 + ["FAIL"] * 15 + ["RUNNING"] * 4
    found = measure_trials(run(trials=trials([(s, i, NAN if s == "RUNNING" else i + 1) for i, s in enumerate(states)])))
    row = found.by_state.loc["PRUNED"]
    assert (row["share_pct"], row["low_pct"], row["high_pct"]) == pytest.approx((86.5, 81.1, 90.6), abs=0.05)
    assert found.fail_pct == pytest.approx(100 * 15 / 196)


def test_stated_durations_stand_in_for_unknown_timestamps() -> None:
    table = trials([("COMPLETE", 0, NAN), ("COMPLETE", NAN, 50), ("COMPLETE", NAN, NAN)], duration_s=[30.0, 20.0, 10.0])
    found = measure_trials(run(trials=table))
    assert found.durations["duration_s"].tolist() == [30, 20, 10]
    assert found.by_state.at["COMPLETE", "n_timed"] == 3
    assert found.durations["start"].iloc[1] == T0 + pd.Timedelta("30s")


def test_a_trial_that_ends_before_it_starts_has_no_duration() -> None:
    found = measure_trials(run(trials=trials([("COMPLETE", 100, 40), ("COMPLETE", 0, 10)])))
    assert (found.n_reversed, found.by_state.at["COMPLETE", "n_timed"]) == (1, 1)


def test_streaks_follow_the_order_of_the_ends() -> None:
    # By number: F C F C F; by end: C F F F C.
    table = trials([("FAIL", 0, 20), ("COMPLETE", 0, 10), ("FAIL", 0, 30), ("COMPLETE", 0, 50), ("FAIL", 0, 40)])
    found = measure_trials(run(trials=table))
    assert (found.fail_streak, found.success_streak) == (3, 1)
    # Five throws with p = 3/5, three or more in a row: 11 of 32 patterns, listed by number of hits.
    p, q = 0.6, 0.4
    expected = p**5 + 2 * p**4 * q + 2 * p**4 * q + 3 * p**3 * q**2
    assert found.p_fail_streak == pytest.approx(expected)


def test_trials_whose_end_is_unknown_break_a_streak_where_they_began() -> None:
    # Every third one is killed: its end is when somebody marked it, so that it has none.
    rows = [("FAIL" if k % 3 == 2 else "COMPLETE", 10 * k, None if k % 3 == 2 else 10 * k + 9) for k in range(30)]
    found = measure_trials(run(trials=trials(rows)))
    assert (found.n_fail, found.fail_streak) == (10, 1)


def test_time_that_nobody_knows_is_not_zero() -> None:
    found = measure_trials(run(trials=trials([("COMPLETE", 0, 10), ("FAIL", 10, None)])))
    total_s = found.by_state["total_worker_s"]
    assert math.isnan(total_s["FAIL"]) and math.isnan(found.fail_worker_h)
    assert (total_s["COMPLETE"], total_s["PRUNED"]) == (10, 0)


def test_no_failure_no_streak() -> None:
    found = measure_trials(run(trials=trials([("COMPLETE", 0, 1)])))
    assert found.fail_streak == 0 and math.isnan(found.p_fail_streak) and found.fail_pct == 0


@pytest.mark.parametrize(("direction", "trial"), [("MINIMIZE", 1), ("MAXIMIZE", 2)])
def test_best_is_a_finite_value_of_a_complete_trial(direction: str, trial: int) -> None:
    table = trials(
        [("PRUNED", 0, 10), ("COMPLETE", 5, 20), ("COMPLETE", 5, 30), ("COMPLETE", 5, 40), ("COMPLETE", 5, 50)],
        value=[-99.0, 1.0, 3.0, np.inf, np.nan],
    )
    best = measure_trials(run(trials=table, studies=study(direction))).best
    assert best[["study", "trial"]].to_numpy().tolist() == [["s", trial]]
    assert best["after_s"].tolist() == [20.0 if trial == 1 else 30.0]


@pytest.mark.slow
def test_time_to_the_best_and_after_it() -> None:
    """The best ends at 30 s, after 10 + 30 + 10 s of trials, with 10 + 5 s to come; another study has no best."""
    rows = [("COMPLETE", 0, 10), ("COMPLETE", 0, 30), ("PRUNED", 20, 40), ("FAIL", 40, 45), ("RUNNING", 50, NAN)]
    search = trials(rows, value=[0.5, 0.1, NAN, NAN, NAN])
    without = trials([("FAIL", 0, 1000)], study="u", value=[NAN])
    found = measure_trials(run(trials=pd.concat([search, without], ignore_index=True), studies=study("MINIMIZE")))
    assert (3600 * found.to_best_worker_h, 3600 * found.after_best_worker_h) == pytest.approx((50, 15))
    ways = pd.concat([study("MINIMIZE"), study("MINIMIZE").assign(study="t")], ignore_index=True)
    other = trials([("COMPLETE", 0, 7)], study="t", value=[1.0])
    for table in (pd.concat([search, other], ignore_index=True), without, search.assign(value=1.0)):
        assert math.isnan(measure_trials(run(trials=table, studies=ways)).to_best_worker_h), "two, none, all equal"


@pytest.mark.parametrize("directions", ["", "MINIMIZE,MAXIMIZE"])
def test_no_best_without_one_known_direction(directions: str) -> None:
    found = measure_trials(run(trials=trials([("COMPLETE", 0, 1)], value=[1.0]), studies=study(directions)))
    assert found.best.empty


def test_an_empty_run_says_what_to_give() -> None:
    with pytest.raises(NotMeasurable) as caught:
        measure_trials(Run())
    assert "--trials" in caught.value.remedy
