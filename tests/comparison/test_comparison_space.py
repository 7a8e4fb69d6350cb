"""Whether two searches draw from the same space: studies of Optuna itself, and tables without declarations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
from batchruns import batch
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

import gpudiag as gd
from gpudiag.comparison.compare import Comparison, compare
from gpudiag.comparison.space import Domain, apart, shared
from gpudiag.run import Run

optuna.logging.set_verbosity(optuna.logging.ERROR)
Space = dict[str, BaseDistribution]
SPACE: Space = {
    "width": IntDistribution(1, 4),
    "lr": FloatDistribution(1e-4, 1e-1, log=True),
    "optimizer": CategoricalDistribution(["adam", "sgd"]),
}


def study(space: Space, n: int, sampler: optuna.samplers.BaseSampler) -> optuna.Study:
    made = optuna.create_study(sampler=sampler)
    for _ in range(n):
        trial = made.ask(space)
        made.tell(trial, float(trial.params["width"]) + trial.params["lr"])
    return made


def as_run(name: str, of: optuna.Study, first: int = 0, **info: Any) -> Run:
    """The trials from ``first`` on as trials of 20 s, one after another."""
    run = gd.load_run(trials=of)
    run = replace(run, trials=run.trials.iloc[first:].reset_index(drop=True))
    seconds = np.random.default_rng(len(name) + first).lognormal(3, 0.2, len(run.trials))
    times = batch(name, seconds, begin_s=1e5 * first).trials
    about = batch(name, seconds, **info).info
    return replace(run, trials=run.trials.assign(start=times["start"], end=times["end"]), info=about)


def searched(name: str, space: Space, seed: int = 0, **info: Any) -> Run:
    return as_run(name, study(space, 24, optuna.samplers.RandomSampler(seed=seed)), **info)


def undeclared(run: Run) -> Run:
    return replace(run, studies=run.studies.drop(columns="space"))


def workload(a: Run, b: Run) -> tuple[str, str]:
    pair = compare(a, b)
    assert isinstance(pair, Comparison)
    found = next((check.status, str(check.evidence)) for check in pair.gate if check.check == "same-workload")
    assert (found[0] == "fail") <= (pair.verdict == "invalid")
    return found


@pytest.mark.slow
def test_the_same_space_passes() -> None:
    assert workload(searched("a", SPACE, 1), searched("bb", SPACE, 2)) == (
        "pass",
        "Trials without names, drawn from a search over the same 3 parameters: compared as samples, not item by item.",
    )


@pytest.mark.slow
def test_a_study_that_was_continued_passes_though_its_sampler_has_learned() -> None:
    space: Space = {"width": IntDistribution(1, 64), "lr": SPACE["lr"]}
    made = study(space, 90, optuna.samplers.TPESampler(seed=3))
    early, late = as_run("a", study(space, 30, optuna.samplers.RandomSampler(seed=3))), as_run("bb", made, 50)
    assert late.trials["params.width"].median() < 0.3 * early.trials["params.width"].median(), "it has learned"
    assert workload(early, late)[0] == "pass"
    status, evidence = workload(undeclared(early), undeclared(late))
    assert status == "unknown" and "a sampler that learns" in evidence and "width" in evidence


@pytest.mark.slow
@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"width": IntDistribution(4, 16)}, "width 1 to 4 and 4 to 16"),
        ({"width": IntDistribution(1, 6)}, "width 1 to 4 and 1 to 6"),
        ({"optimizer": CategoricalDistribution(["adam", "lion"])}, "optimizer adam, sgd and adam, lion"),
    ],
)
def test_another_declared_space_is_another_workload(other: Space, words: str) -> None:
    status, evidence = workload(searched("a", SPACE, 1), searched("bb", {**SPACE, **other}, 2))
    assert status == "fail" and words in evidence and "lr" not in evidence


@pytest.mark.slow
def test_what_steers_the_learning_is_a_note() -> None:
    wider = {**SPACE, "lr": FloatDistribution(1e-6, 1e-1, log=True)}
    status, evidence = workload(searched("a", SPACE, 1), searched("bb", wider, 2))
    assert status == "unknown" and "what steers the learning: lr 0.0001 to 0.1 and 1.00e-06 to 0.1" in evidence


@pytest.mark.slow
def test_values_of_one_space_that_lie_apart_are_another_workload() -> None:
    """Two halves of a grid over one declared space."""
    runs = []
    for name, widths in (("a", [1, 2, 3, 4]), ("bb", [4, 8, 12, 16])):
        made = optuna.create_study()
        for i in range(16):
            made.enqueue_trial({"width": widths[i % 4]})
            made.tell(made.ask({"width": IntDistribution(1, 64)}), 0.0)
        runs.append(as_run(name, made))
    for pair in (runs, [undeclared(run) for run in runs]):
        status, evidence = workload(*pair)
        assert status == "fail" and "lie apart: width 1 to 4 and 4 to 16" in evidence


@pytest.mark.slow
def test_values_outside_what_is_declared_refute_the_declaration() -> None:
    a, b = searched("a", SPACE, 1), searched("bb", SPACE, 2)
    b = replace(b, trials=b.trials.assign(**{"params.width": 10 * b.trials["params.width"]}))
    assert workload(a, b)[0] == "fail"


@pytest.mark.slow
def test_the_trials_that_both_spaces_allow_can_be_compared() -> None:
    wide = searched("bb", {**SPACE, "width": IntDistribution(1, 8)}, 2)
    narrow = wide.trials_where(lambda t: t["params.width"] <= 4)
    assert workload(searched("a", SPACE, 1), wide)[0] == "fail"
    assert workload(searched("a", SPACE, 1), narrow)[0] == "pass"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fixed", "status"),
    [({"epochs": (10, 20)}, "fail"), ({"dataset": ("cifar", "imagenet")}, "fail"), ({"cache": ("ram", "disk")}, "pass"),
     ({"seed": (1, 2)}, "pass"), ({"epochs": (10, 10)}, "pass")],
)  # fmt: skip
def test_fixed_values_that_say_how_much_work_a_trial_is(fixed: dict[str, tuple[Any, Any]], status: str) -> None:
    rng = np.random.default_rng(4)
    runs = [
        batch(n, rng.lognormal(3, 0.2, 12), named=False, begin_s=i, params={k: v[i] for k, v in fixed.items()})
        for i, n in enumerate(("a", "b"))
    ]
    found, evidence = workload(*runs)
    assert found == status
    assert ("this is taken for the change that is tested" in evidence) == ("cache" in fixed)


@pytest.mark.slow
def test_data_and_budget_are_part_of_the_work() -> None:
    a, b = searched("a", SPACE, 1), searched("bb", SPACE, 2)
    named = [
        replace(run, trials=run.trials.assign(**{"user_attrs.dataset": d})) for run, d in ((a, "x"), (b, "secret"))
    ]
    status, evidence = workload(*named)
    assert status == "fail" and "dataset of the trials is another" in evidence and "secret" not in evidence
    budgets = [searched(n, SPACE, i, settings={"max_steps": 10 * (i + 1)}) for i, n in enumerate(("a", "bb"))]
    assert "A trial may take 10 steps in a and 20 in bb" in workload(*budgets)[1]
    asked = [searched(n, SPACE, i, settings={"command": f"x --epochs {i + 3}"}) for i, n in enumerate(("a", "bb"))]
    assert "epochs 3 and 4" in workload(*asked)[1] and workload(*asked)[0] == "fail"


def test_what_two_domains_share() -> None:
    assert shared(Domain(1, 4), Domain(3, 7)) == pytest.approx(1 / 6)
    assert shared(Domain(1, 100, True), Domain(10, 1000, True)) == pytest.approx(1 / 3)
    assert shared(Domain(1, 2), Domain(3, 4)) == 0 and shared(Domain(3, 3), Domain(3, 3)) == 1
    both = Domain(choices=frozenset("ab")), Domain(choices=frozenset("bcd"))
    assert shared(*both) == pytest.approx(1 / 4) and shared(both[0], Domain(1, 2)) == 0


def test_few_values_lie_apart_by_chance() -> None:
    few, many = pd.Series([1.0, 2, 3]), pd.Series([5.0, 6, 7, 8, 9, 10])
    assert not apart(few, many) and apart(pd.concat([few, few]), many)
    assert not apart(pd.Series([2.0] * 6), pd.Series([2.0] * 6))
    assert apart(pd.Series(["x"] * 6), pd.Series(["y"] * 6)) and not apart(
        pd.Series(["x", "y"] * 3), pd.Series(["y"] * 6)
    )
