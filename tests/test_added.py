"""Results that were added to a study are no trials that ran: not in rates, durations, or numbers at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import optuna
import pandas as pd
import pytest
from smallruns import run, study, trials

import gpudiag as gd
from gpudiag._load.added import without_added
from gpudiag.comparison.side import as_side
from gpudiag.measures.parallelism import measure_parallelism
from gpudiag.measures.pruning import measure_pruning
from gpudiag.measures.trials import measure_trials
from gpudiag.run import Run
from gpudiag.schema import TRIALS, conform

RAN = [("PRUNED", 10.5, 30.25), ("COMPLETE", 31.5, 131.5), ("PRUNED", 132.5, 160.5), ("PRUNED", 161.5, 190.5)]
GIVEN = [("COMPLETE", 0.5, 0.5), ("COMPLETE", 1.25, 1.25), ("COMPLETE", 2.5, 2.5)]


def searched(rows: list[tuple[str, float, float]], **columns: object) -> Run:
    params = {"params.lr": [0.1 / (place + 1) for place in range(len(rows))]}
    values = {"value": [float(len(rows) - place) for place in range(len(rows))]}
    return run(trials=trials(rows, **(params | values | columns)), studies=study("MINIMIZE"))


def test_results_that_were_added_are_no_trials_that_ran() -> None:
    made = without_added(searched(GIVEN + RAN))
    found, pruning = measure_trials(made), measure_pruning(made)
    assert (found.n, found.n_added, found.n_finished) == (len(RAN), len(GIVEN), len(RAN))
    assert pruning.of_decided_pct == pytest.approx(100 * 3 / 4) and pruning.n_decided == 4
    assert found.by_state.at["COMPLETE", "median_s"] == 100 and found.by_state.at["COMPLETE", "n"] == 1
    assert found.span_s == pytest.approx(180), "from the first start of what ran"
    assert len(as_side(made, "baseline").items) == len(RAN)
    assert measure_parallelism(made).n_timed == len(RAN) and measure_parallelism(made).coverage_pct == 100
    assert made.info.notes[-1].startswith("Study 's': 7 trials, of which 3 are results that were added")


def test_the_best_value_may_be_one_that_was_added() -> None:
    rows = without_added(searched(GIVEN + RAN, value=[1.0, -3.0, 2.0, 4.0, 0.5, 6.0, 7.0]))
    best = measure_trials(rows)
    assert (best.best_trial, best.best_value) == ("1", -3.0) and np.isnan(best.to_best_worker_h)


def test_what_failed_at_once_or_lasted_less_than_a_tick_ran() -> None:
    failed = [("FAIL", 5.5, 5.5), *RAN]
    ticks = [("COMPLETE", 0.25 * n, 0.25 * n + (0.25 if n % 2 else 0)) for n in range(10)]
    for rows in (failed, ticks):
        assert measure_trials(without_added(searched(rows))).n_added == 0


def test_in_whole_seconds_only_what_is_far_from_all_others_was_added() -> None:
    long = [("COMPLETE", 5, 5), ("COMPLETE", 10, 100), ("COMPLETE", 110, 200)]
    short = [("COMPLETE", 5, 5), ("COMPLETE", 10, 12), ("COMPLETE", 110, 200)]
    assert [measure_trials(without_added(searched(rows))).n_added for rows in (long, short)] == [1, 0]


def test_in_whole_minutes_a_short_trial_has_no_length_and_ran() -> None:
    """As a spreadsheet saves them; where all others last 10 min or longer, one without length was added."""
    short = [("COMPLETE", 60 * n, 60 * n + 60 * (n % 2)) for n in range(8)]
    long = [("COMPLETE", 60, 60), ("COMPLETE", 120, 720), ("COMPLETE", 720, 1440)]
    assert [measure_trials(without_added(searched(rows))).n_added for rows in (short, long)] == [0, 1]


def two_studies(second: list[tuple[str, float, float]], lr: list[float]) -> Run:
    first = trials(RAN, "old").assign(**{"params.lr": [0.1, 0.2, 0.3, 0.4]})
    table = pd.concat([first, trials(second, "new").assign(**{"params.lr": lr})], ignore_index=True)
    both = pd.concat([study("MINIMIZE", "old"), study("MINIMIZE", "new")], ignore_index=True)
    return without_added(run(trials=conform(table, TRIALS), studies=both))


def test_copies_of_another_study_count_once() -> None:
    later = ("COMPLETE", 1000.5, 1060.5)
    made = two_studies([*RAN, later], [0.1, 0.2, 0.3, 0.4, 0.5])
    found = measure_parallelism(made)
    assert made.trials.loc[made.trials["added"] == "copy", "study"].tolist() == ["new"] * 4
    assert (found.effective, found.n_workers, found.n_timed) == (1, 1, 5)
    lived = sum(end - start for _, start, end in [*RAN, later])
    assert measure_trials(made).by_state["total_worker_s"].sum() == pytest.approx(lived)
    assert "4 trials with the parameters, start and end of trials of study 'old'" in made.info.notes[-1]


def test_other_parameters_or_times_are_no_copies() -> None:
    apart = [(state, start, end + 1e-4) for state, start, end in RAN]
    for rows, lr in ((RAN, [1.0, 2.0, 3.0, 4.0]), (apart, [0.1, 0.2, 0.3, 0.4])):
        assert "added" not in two_studies(rows, lr).trials


@pytest.mark.slow
def test_optuna_adds_them_so(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path / 'optuna.db'}"
    old = optuna.create_study(storage=storage, study_name="old")
    lr = {"lr": optuna.distributions.FloatDistribution(0.0, 1.0)}
    for n in range(3):
        old.add_trial(optuna.trial.create_trial(params={"lr": 0.1 * n}, distributions=lr, value=float(n)))
    ran = optuna.trial.create_trial(params={"lr": 0.9}, distributions=lr, value=9.0)
    ran.datetime_start, ran.datetime_complete = ran.datetime_start, ran.datetime_start + pd.Timedelta("90.5s")
    old.add_trial(ran)
    optuna.create_study(storage=storage, study_name="new").add_trials(old.get_trials())
    found = measure_trials(gd.load_run(tmp_path / "optuna.db"))
    assert (found.n, found.n_added) == (1, 7)
    assert found.by_state.at["COMPLETE", "total_worker_s"] == pytest.approx(90.5)
