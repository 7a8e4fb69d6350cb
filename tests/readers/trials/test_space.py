"""The space that a study declares, from distributions as Optuna writes and wrote them."""

from __future__ import annotations

import json
from pathlib import Path

import optuna
import pandas as pd
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution, distribution_to_json

import gpudiag as gd
from gpudiag.readers._studies.space import declared_space

optuna.logging.set_verbosity(optuna.logging.ERROR)


def space(*rows: tuple[int, str, str]) -> dict[object, object]:
    """Of trials 1 to 3 of study 7 and trial 4 of study 8: trial, parameter and JSON of its distribution."""
    params = pd.DataFrame([(trial - 1, *row) for trial, *row in rows], columns=["row", "name", "distribution"])
    trials = pd.DataFrame({"trial_id": [1, 2, 3, 4], "study_id": [7, 7, 7, 8]})
    return {key: json.loads(text) for key, text in declared_space(params, trials).items()}


def test_each_study_has_its_own() -> None:
    lr, width = (
        distribution_to_json(FloatDistribution(1e-4, 1e-1, log=True)),
        distribution_to_json(IntDistribution(1, 4)),
    )
    assert space((1, "lr", lr), (2, "lr", lr), (4, "lr", lr), (4, "width", width)) == {
        7: {"lr": {"low": 1e-4, "high": 1e-1, "step": None, "log": True}},
        8: {
            "lr": {"low": 1e-4, "high": 1e-1, "step": None, "log": True},
            "width": {"low": 1, "high": 4, "step": 1, "log": False},
        },
    }


def test_distributions_of_one_parameter_are_taken_together() -> None:
    one, other = distribution_to_json(IntDistribution(1, 4)), distribution_to_json(IntDistribution(2, 9))
    some, more = (distribution_to_json(CategoricalDistribution(c)) for c in (["a", None], ["a", 3]))
    assert space((1, "n", one), (2, "n", other), (1, "c", some), (3, "c", more)) == {
        7: {"c": {"choices": ["a", "null", "3"]}, "n": {"low": 1, "high": 9, "step": 1, "log": False}}
    }
    assert space((1, "n", one), (2, "n", some), (3, "n", other), (3, "m", "{damaged")) == {7: {}}


def test_distributions_of_old_versions() -> None:
    old = '{"name": "LogUniformDistribution", "attributes": {"low": 0.1, "high": 10.0}}'
    grid = '{"name": "DiscreteUniformDistribution", "attributes": {"low": 0.0, "high": 1.0, "q": 0.25}}'
    assert space((1, "x", old), (1, "y", grid)) == {
        7: {
            "x": {"low": 0.1, "high": 10.0, "step": None, "log": True},
            "y": {"low": 0.0, "high": 1.0, "step": 0.25, "log": False},
        }
    }


@pytest.mark.slow
def test_a_study_file_and_its_study_declare_the_same(tmp_path: Path) -> None:
    study = optuna.create_study(study_name="s", storage=f"sqlite:///{tmp_path / 'optuna.db'}")
    for _ in range(3):
        trial = study.ask({"x": FloatDistribution(0, 2), "kind": CategoricalDistribution(["a", "b"])})
        study.tell(trial, trial.params["x"])
    wanted = {"kind": {"choices": ["a", "b"]}, "x": {"low": 0.0, "high": 2.0, "step": None, "log": False}}
    for run in (gd.load_run(trials=study), gd.load_run(tmp_path / "optuna.db")):
        assert json.loads(run.studies["space"].iloc[0]) == wanted
        assert "space" not in run.trials_where(lambda t: t["trial"] > 0).studies
