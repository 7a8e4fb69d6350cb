"""Trials that were marked FAIL long after they ended do not count as running until then; failures with an end do."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
from smallruns import run, study, trials

import gpudiag as gd
from gpudiag._load.marked import without_ends_after_silence, without_marked_ends
from gpudiag.measures._trials.abandoned import find_open_trials
from gpudiag.measures.parallelism import measure_parallelism
from gpudiag.measures.search import measure_search
from gpudiag.measures.trials import measure_trials
from gpudiag.run import Run

H = 3600.0
Rows = list[tuple[str, float, float]]


def believed(rows: Rows, settings: dict[str, Any] | None = None, **columns: Any) -> Run:
    made = run(joined=False, settings=settings, trials=trials(rows, **columns), studies=study("MINIMIZE"))
    return without_ends_after_silence(without_marked_ends(made))


def marked(made: Run) -> list[int]:
    return made.trials.loc[made.trials["marked"].notna(), "trial"].tolist() if "marked" in made.trials else []


def two_workers(n: int = 20) -> Rows:
    """Trials of 100 s, one a worker at a time, for 2,080 s in all."""
    return [("COMPLETE", 104.0 * (k // 2) + k % 2, 104.0 * (k // 2) + k % 2 + 100) for k in range(n)]


def test_dead_trials_that_one_loop_marked_do_not_count_until_then() -> None:
    dead = [("FAIL", 40.0, 16 * H), ("FAIL", 700.0, 16 * H + 0.02)]
    made = believed([*two_workers(), *dead])
    assert marked(made) == [20, 21]
    found, opens = measure_trials(made), find_open_trials(made)
    assert found.n_fail == 2 and np.isnan(found.fail_worker_h), "they failed, and nobody knows for how long they ran"
    assert (opens["horizon"] - opens["start"]).dt.total_seconds().max() <= 5 * 100
    assert measure_parallelism(made).window_s < 2000 and measure_search(made).outliers.empty
    assert "2 failed trials may have ended long before being marked FAIL (trials 20 and 21)" in made.info.notes[-1]
    assert measure_trials(made).n_died == 2


def test_one_dead_trial_of_a_lone_worker_that_was_marked_the_next_day() -> None:
    alone = [("COMPLETE", 102.0 * k, 102.0 * k + 100) for k in range(10)]
    again = [("COMPLETE", 9 * H + 2 + 102 * k, 9 * H + 2 + 102 * k + 100) for k in range(5)]
    for rows in ([*alone, ("FAIL", 1020.0, 9 * H)], [*alone, ("FAIL", 1020.0, 9 * H), *again]):
        assert marked(believed(rows)) == [10]


def test_failures_with_an_end_of_their_own_keep_it() -> None:
    usual = [("FAIL", 500.0, 560.0), ("FAIL", 500.0, 560.001)]  # two that fail together
    hung = [("FAIL", 103.0, 1030.0)]  # while others went on, in a place of its own
    three = [*two_workers(), ("COMPLETE", 2.0, 102.0)]
    stopped = [("FAIL", 2100.0, 9 * H), ("COMPLETE", 9 * H + 60, 9 * H + 160)]  # interrupted, and started again
    limited = [("FAIL", 3000.0 + 4000 * k, 6600.0 + 4000 * k) for k in range(3)]  # a limit of an hour each
    for rows in ([*two_workers(), *usual], [*three, *hung], [*two_workers(), *stopped], [*two_workers(), *limited]):
        assert marked(believed(rows)) == []


def test_a_saved_error_says_that_the_trial_lived_until_then() -> None:
    rows = [*two_workers(), ("FAIL", 2100.0, 16 * H)]
    assert marked(believed(rows)) == [20]
    assert marked(believed(rows, detail=[None] * 20 + ["RuntimeError: NCCL timeout"])) == []


def one_worker(pruned: float | None = 0.5, n: int = 20) -> tuple[Rows, list[float | None]]:
    """Trials of 100 s in a row, of which every third is pruned, and the values that they have."""
    states = ["PRUNED" if k % 3 == 0 else "COMPLETE" for k in range(n)]
    values = [pruned if state == "PRUNED" else 0.5 for state in states]
    return [(state, 2000 + 101.0 * k, 2100 + 101.0 * k) for k, state in enumerate(states)], values


@pytest.mark.parametrize(
    ("state", "value", "pruned", "end", "wanted"),
    [
        ("PRUNED", None, 0.5, 16 * H, [20]),  # with it two ran for the whole search, which otherwise had one worker
        ("PRUNED", 0.5, 0.5, 16 * H, []),  # it reported, so that it ran
        ("PRUNED", None, None, 16 * H, []),  # none has a report: nothing is missing
        ("COMPLETE", 0.5, 0.5, 16 * H, []),  # it has a value
        ("PRUNED", None, 0.5, 1990.0, []),  # long, and alone
    ],
)
def test_a_trial_that_reported_nothing_was_marked_pruned(
    state: str, value: float | None, pruned: float | None, end: float, wanted: list[int]
) -> None:
    rows, values = one_worker(pruned)
    made = believed([*rows, (state, 1000.0, end)], value=[*values, value])
    assert marked(made) == wanted
    if wanted:
        assert made.info.notes[-1].startswith("1 trial may have ended long before being marked PRUNED (trial 20): ")
        assert measure_parallelism(made).window_s < 3100 and measure_search(made).outliers.empty


def test_a_study_of_unknown_direction_that_prunes_is_a_search() -> None:
    rows, values = one_worker()
    table = trials([*rows, ("PRUNED", 1000.0, 16 * H)], value=[*values, None])
    made = without_marked_ends(run(joined=False, trials=table, studies=study("")))
    assert marked(made) == [20]


@pytest.mark.parametrize(("begins_after_s", "n_died"), [(0.006, 0), (5.0, 1)])
def test_what_a_process_goes_on_from_at_once_is_not_said_to_have_ended_with_it(
    begins_after_s: float, n_died: int
) -> None:
    """In a loop the next trial begins in moments; whether it hung until then, or was marked, nothing tells."""
    alone = [("COMPLETE", 100.006 * k, 100.006 * k + 100) for k in range(10)]
    since = 9 * H + begins_after_s
    again = [("COMPLETE", since + 100.006 * k, since + 100.006 * k + 100) for k in range(5)]
    found = measure_trials(made := believed([*alone, ("FAIL", 1001.0, 9 * H), *again]))
    assert marked(made) == [10] and found.n_died == n_died and np.isnan(found.fail_worker_h)


def test_jobs_end_when_their_scheduler_says() -> None:
    made = run(joined=False, trials=trials([*two_workers(), ("FAIL", 2100.0, 16 * H)]), studies=study(""))
    assert marked(without_ends_after_silence(without_marked_ends(made))) == []


def test_a_gpu_that_worked_says_so_too() -> None:
    rows = [*two_workers(), ("FAIL", 2100.0, 5 * H)]
    table = trials(rows)
    time = pd.date_range(table["start"].min(), table["end"].max(), freq="60s")
    for util, wanted in ((90.0, []), (0.0, [20])):
        gpu = pd.DataFrame({"time": time, "gpu": "0", "util_pct": util})
        assert marked(without_ends_after_silence(run(trials=table, studies=study("MINIMIZE"), gpu=gpu))) == wanted


def test_a_worker_that_took_another_trial_bounds_it() -> None:
    rows = [("COMPLETE", 0.0, 100.0), ("FAIL", 101.0, 900.0), ("COMPLETE", 150.0, 250.0), ("COMPLETE", 251.0, 350.0)]
    made = believed(rows, worker=["w0"] * 4)
    assert marked(made) == [1]
    opens = find_open_trials(made)
    assert (opens["horizon"] - opens["start"]).dt.total_seconds().tolist() == [49] and opens["reason"][0] == "reused"
    shared = [("COMPLETE", 0.0, 100.0), ("COMPLETE", 5.0, 105.0), *rows[1:]]  # a name that runs several at once
    assert marked(believed(shared, worker=["w0"] * 5)) == []


@pytest.mark.slow
def test_heartbeats_say_when_stale_trials_ended(tmp_path: Path) -> None:
    """A storage as Optuna's handling of stale trials leaves it: FAIL, and its end is when the restart found them."""
    path, at = tmp_path / "optuna.db", datetime(2026, 3, 2, 8, 0, 0, 500_000)
    made = optuna.create_study(storage=f"sqlite:///{path}", study_name="s")
    lives = [("COMPLETE", 0, 300), ("FAIL", 301, 5 * H), ("FAIL", 310, 400), ("COMPLETE", 5 * H + 1, 5 * H + 290)]
    seen = [290, 590, 395, 5 * H + 275]
    for state, start, end in lives:
        one = optuna.trial.create_trial(
            state=optuna.trial.TrialState[state], value=1.0 if state == "COMPLETE" else None
        )
        one.datetime_start, one.datetime_complete = at + timedelta(seconds=start), at + timedelta(seconds=end)
        made.add_trial(one)
    with closing(sqlite3.connect(path)) as database:
        rows = [(n + 1, f"{at + timedelta(seconds=s):%Y-%m-%d %H:%M:%S}") for n, s in enumerate(seen)]
        database.executemany("insert into trial_heartbeats (trial_id, heartbeat) values (?, ?)", rows)
        database.commit()
    loaded = gd.load_run(path, timezone="UTC")
    assert marked(loaded) == [1], "the failure with its own end keeps it"
    opens = find_open_trials(loaded).iloc[0]
    alive_s = [(opens[name] - opens["start"]).total_seconds() for name in ("last_evidence", "end", "horizon")]
    assert opens["reason"] == "silent" and opens["state"] == "FAIL"
    assert alive_s[0] == pytest.approx(590 - 301, abs=1) and alive_s[0] <= alive_s[1] <= alive_s[2]
    assert alive_s[2] == pytest.approx(590 + 15.5 - 301, abs=1), "no later than the next heartbeat was due"


def test_a_worker_that_only_a_waiting_trial_names() -> None:
    rows = [("COMPLETE", 0.0, 60.0), ("FAIL", 60.0, 70.0), ("WAITING", np.nan, np.nan)]
    assert marked(believed(rows, worker=[None, None, "w0"])) == []
