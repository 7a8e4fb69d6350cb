"""Workers by name, by who was free, and how many there were."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from smallruns import run, trials

from gpudiag._run.worker_names import worker_names
from gpudiag.measures._trials.workers import workers_of, workers_over_time
from gpudiag.measures.parallelism import measure_parallelism

S = 1_000_000


def test_a_worker_that_left_takes_no_trial() -> None:
    """Two workers with gaps of 1 s; from 500 s on the second one is gone."""
    rows = [("COMPLETE", 100.0 * i, 100.0 * i + 99) for i in range(20)]
    rows += [("COMPLETE", 100.0 * i + 50, 100.0 * i + 149) for i in range(5)]
    p = measure_parallelism(run(trials=trials(rows)))
    assert (p.n_workers, p.median_gap_s, p.mean_gap_s) == (2, 1, 1)
    assert p.gap_worker_h == pytest.approx((19 + 4) / 3600)
    assert p.workers["n_workers"].tolist() == [2, 1]
    assert p.workers["from_s"].tolist()[1] == pytest.approx(549, abs=1)


def test_gaps_of_one_worker_are_counted_up_to_an_hour_without_any_trial() -> None:
    rows = [("COMPLETE", 0.0, 10.0), ("COMPLETE", 12.0, 20.0), ("COMPLETE", 3600.0, 3610.0)]
    p = measure_parallelism(run(trials=trials(rows)))
    assert p.gaps["gap_s"].tolist() == [2, 3580] and p.workers["n_workers"].tolist() == [1]


def test_names_make_the_workers() -> None:
    start = np.array([0, 1, 10, 30, 40, 41]) * S
    end = np.array([5, 9, 20, 39, 45, 49]) * S
    names = np.array(["b", "a", "b", "a", "b", "a"], object)
    assert workers_of(start, end, names).tolist() == [0, 1, 0, 1, 0, 1]
    # Each trial in a process of its own: these are no workers.
    assert workers_of(start, end, np.array([*"uvwxyz"], object)).max() == 1
    holes = np.where(np.arange(6) == 3, None, names)
    assert workers_of(start, end, holes).tolist() == workers_of(start, end, np.array([None] * 6)).tolist()


def test_a_name_that_runs_two_at_once_is_two_workers() -> None:
    start, end = np.array([0, 0, 10, 11]) * S, np.array([9, 10, 20, 20]) * S
    assert workers_of(start, end, np.array(["x"] * 4, object)).tolist() == [0, 1, 0, 1]


def test_a_hand_over_before_the_end_is_one_worker() -> None:
    start, end = np.array([0, 9, 19]) * S, np.array([10, 20, 29]) * S
    assert workers_of(start, end, np.array(["x"] * 3, object)).tolist() == [0, 0, 0]


def test_numbers_of_workers_that_hold() -> None:
    start, end = np.array([0, 2, 40, 0, 62, 70, 80]) * S, np.array([100, 40, 60, 61, 69, 79, 98]) * S
    times, number = workers_over_time(start, end, np.array([0, 1, 1, 2, 2, 2, 2]))
    assert (times / S).tolist() == [2, 60] and number.tolist() == [3, 2]


def test_a_worker_that_was_away_for_hours_was_not_there_meanwhile() -> None:
    """Two workers, one alone for 60 trials of 100 s, and two again; a wait of minutes in the first stretch is none."""
    start = np.concatenate([np.repeat(np.arange(20.0), 2), np.arange(20, 80), np.repeat(np.arange(80.0, 100), 2)]) * 100
    both = np.concatenate([np.tile([0, 1], 20), np.zeros(60), np.tile([0, 1], 20)]).astype(int)
    here = ~((both == 1) & (start >= 500) & (start < 1000))
    start, both = start[here].astype(np.int64) * S, both[here]
    times, number = workers_over_time(start, start + 99 * S, both)
    assert number.tolist() == [2, 1, 2] and (times / S).tolist() == [0, 1999, 8000]


def test_of_numbers_that_hold_for_moments_the_longest_is_left() -> None:
    """Of 60 workers each comes 100 s after the one before it, but the 31st, which comes 150 s after it; none goes."""
    comes = 100 * S * np.arange(60) + 50 * S * (np.arange(60) >= 30)
    _, number = workers_over_time(comes, np.full(60, 6050 * S), np.arange(60))
    assert number.tolist() == [30]


def test_who_finds_no_more_trials_has_not_left() -> None:
    """Four workers and twelve trials; the last ones end minutes apart."""
    start = np.repeat(np.arange(3) * 100.0, 4)
    rows = [("COMPLETE", at, at + 99 + 200 * (i % 4) * (at == 200)) for i, at in enumerate(start.tolist())]
    assert measure_parallelism(run(trials=trials(rows))).workers["n_workers"].tolist() == [4]


def test_where_the_name_is_found() -> None:
    table = trials([("COMPLETE", 0.0, 1.0)] * 3)
    assert worker_names(run(trials=table)).isna().all()
    table["user_attrs.worker_id"] = ["7", None, None]
    events = pd.DataFrame(
        {
            "time": pd.NaT,
            "kind": "worker",
            "detail": "",
            "trial": pd.array([1, 1, 2, 2], "Int64"),
            "worker": list("aabc"),
        }
    )
    found = worker_names(run(trials=table, events=events)).tolist()
    assert found[:2] == ["7", "a"] and pd.isna(found[2])  # of the third two lines say different things
