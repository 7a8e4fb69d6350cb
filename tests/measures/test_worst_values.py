"""Trials whose objective caught an error and returned a number are told by the number that they share."""

from __future__ import annotations

import math
from typing import Any

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
        ("maximize", 0.0, "0.0"),
        ("maximize", -math.inf, "-inf"),
        ("minimize", 1e10, "10000000000.0"),
        ("minimize", 61 / 19, "3.210526315789474"),
        ("minimize", math.inf, "inf"),
    ],
)
def test_the_value_of_caught_errors_is_told(direction: str, caught: float, told: str) -> None:
    run = searched([*GOOD[:10], caught, caught, *GOOD[10:], caught], direction)
    (found,) = measure_search(run).worst.to_dict("records")
    assert (found["n_valued"], found["n_worst"], found["worst_value"]) == (23, 3, told)
    assert found["worst_worker_h"] == pytest.approx(3 / 60) and found["other_values_pct"] == 100
    one = verdict_of(run, "worst-value-shared")
    assert one.status is Status.FOUND and one.severity.value == "note"
    assert one.summary.startswith(
        f"3 of 23 completed trials of different parameters ended with exactly {told}, the worst value, for 13 % of all"
    )
    assert one.summary.endswith("These are trials 10, 11 and 22.")


def status_of(values: list[float], **given: Any) -> Status:
    return verdict_of(searched(values, **given), "worst-value-shared").status


def test_repeats_the_best_value_and_scores_of_few_levels_tell_no_error() -> None:
    assert status_of([*GOOD, *[0.0] * 4], rates=[*((k + 1) / 100 for k in range(20)), 0.9, 0.9, 0.9, 0.9]) is Status.OK
    assert status_of([*GOOD, *[1.0] * 4]) is Status.OK
    assert status_of([*(round(value, 2) for value in GOOD), *[0.0] * 4]) is Status.NOT_ASSESSED
    assert status_of([*GOOD[:4], *[0.0] * 3]) is Status.NOT_ASSESSED
    assert status_of([0.0] * 30) is Status.NOT_ASSESSED
    assert status_of([*GOOD[:5], *[0.0] * 195]) is Status.FOUND


def test_a_penalty_for_a_constraint_that_is_broken_is_meant() -> None:
    run = searched([*GOOD, *[0.0] * 4])
    broken = pd.Series(["[1.0]" if value == 0 else "[-1.0]" for value in run.trials["value"]])
    run = gd.Run(trials=run.trials.assign(**{"system_attrs.constraints": broken}), studies=run.studies)
    assert verdict_of(run, "worst-value-shared").status is Status.OK


def test_each_study_is_judged_and_the_one_with_most_such_trials_named() -> None:
    parts = {"long": [0.3 + k / 1e4 for k in range(200)] + [0.0] * 10, "coarse": [0.1, 0.2] * 30, "short": GOOD[:11]}
    parts["short"] = [*parts["short"], *[-1.0] * 9]
    runs = {name: searched(values) for name, values in parts.items()}
    trials = pd.concat([run.trials.assign(study=name) for name, run in runs.items()], ignore_index=True)
    studies = pd.concat([run.studies.assign(study=name) for name, run in runs.items()], ignore_index=True)
    told = verdict_of(gd.Run(trials=trials, studies=studies), "worst-value-shared")
    assert told.summary.startswith("9 of 20 completed trials of different parameters in study short ended with exactly")
    assert told.summary.endswith("Trials short/11, short/12 and short/13 are among them.")


def test_where_nothing_says_which_values_are_better_it_is_not_judged() -> None:
    run = searched([*GOOD, 0.0, 0.0, 0.0])
    run = gd.Run(trials=run.trials, studies=run.studies.assign(directions=""))
    told = verdict_of(run, "worst-value-shared")
    assert told.status is Status.NOT_ASSESSED and "direction" in told.remedy
