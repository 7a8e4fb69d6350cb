"""Trials whose objective caught an error and returned a number are told by the number that they share."""

from __future__ import annotations

import math

import optuna
import pandas as pd
import pytest
from optuna.distributions import FloatDistribution
from verdicts import verdict_of

import gpudiag as gd
from gpudiag.measures.search import measure_search
from gpudiag.rules._engine.verdict import Status
from gpudiag.run import Run

SPACE = {"lr": FloatDistribution(0, 1)}
START = pd.Timestamp("2026-03-02T09:00:00")


def searched(values: list[float], direction: str = "maximize", rates: list[float] | None = None) -> Run:
    """A study whose trials take a minute each, of other parameters where none are given."""
    study = optuna.create_study(direction=direction)
    for k, value in enumerate(values):
        rate = rates[k] if rates else (k + 1) / 1000
        trial = optuna.trial.create_trial(
            params={"lr": rate}, distributions={"lr": FloatDistribution(0, 1)}, value=value
        )
        start = START + pd.Timedelta(seconds=60 * k)
        trial.datetime_start = start.to_pydatetime()
        trial.datetime_complete = (start + pd.Timedelta(seconds=60)).to_pydatetime()
        study.add_trial(trial)
    return gd.load_run(study)


GOOD = [0.5 + 0.001 * k for k in range(20)]


@pytest.mark.parametrize(
    ("direction", "caught", "told"),
    [
        ("maximize", 0.0, "0"),
        ("maximize", -math.inf, "-inf"),
        ("minimize", 1e10, "1e+10"),
        ("minimize", math.inf, "inf"),
    ],
)
def test_the_value_of_caught_errors_is_told(direction: str, caught: float, told: str) -> None:
    run = searched([*GOOD[:10], caught, caught, *GOOD[10:], caught], direction)
    found = measure_search(run)
    assert (found.n_valued, found.n_worst, found.worst_value, found.worst_trials) == (23, 3, told, "10, 11, 22")
    assert found.worst_worker_h == pytest.approx(3 / 60) and found.other_values_pct == 100
    one = verdict_of(run, "worst-value-shared")
    assert one.status is Status.FOUND and one.severity.value == "warning"  # 13 % of the time
    assert one.summary.startswith(f"3 of 23 completed trials ended with exactly {told}, the worst value, for 13 %")
    assert one.summary.endswith("Trials 10, 11 and 22 are among them.")


def test_repeats_the_best_value_and_scores_of_few_levels_tell_no_error() -> None:
    repeats = searched([*GOOD, 0.0, 0.0, 0.0, 0.0], rates=[*((k + 1) / 100 for k in range(20)), 0.9, 0.9, 0.9, 0.9])
    assert measure_search(repeats).n_worst == 1
    best = searched([*GOOD, 1.0, 1.0, 1.0, 1.0])
    assert verdict_of(best, "worst-value-shared").status is Status.OK
    coarse = searched([round(value, 2) for value in GOOD] + [0.0] * 4)
    assert verdict_of(coarse, "worst-value-shared").status is Status.NOT_ASSESSED
    few = searched([*GOOD[:9], 0.0, 0.0, 0.0])
    assert verdict_of(few, "worst-value-shared").status is Status.NOT_ASSESSED


def test_of_several_studies_the_one_with_most_is_named() -> None:
    one, other = searched([*GOOD, 0.0, 0.0]), searched([*GOOD, *[-1.0] * 5])
    names = {"first": one, "second": other}
    merged = gd.Run(
        trials=pd.concat([run.trials.assign(study=name) for name, run in names.items()], ignore_index=True),
        studies=pd.concat([run.studies.assign(study=name) for name, run in names.items()], ignore_index=True),
    )
    found = measure_search(merged)
    assert (found.worst_study, found.n_valued, found.n_worst, found.worst_value) == ("second", 25, 5, "-1")


def test_where_nothing_says_which_values_are_better_it_is_not_judged() -> None:
    run = searched([*GOOD, 0.0, 0.0, 0.0])
    run = gd.Run(trials=run.trials, studies=run.studies.assign(directions=""))
    told = verdict_of(run, "worst-value-shared")
    assert told.status is Status.NOT_ASSESSED and "direction" in told.remedy
