"""Trials that broke a constraint are never the best: against Optuna's own best_trial and best_trials."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import optuna
import pandas as pd
import pytest
from smallruns import at, gpu, run, study, trials

import gpudiag as gd
from gpudiag.forecast.memory.constraint import _best as best_trials
from gpudiag.forecast.pruning.recorded import recorded_studies
from gpudiag.measures._trials.constraints import infeasible
from gpudiag.measures._trials.pareto import pareto_front
from gpudiag.measures.costs import measure_costs
from gpudiag.measures.trials import measure_trials
from gpudiag.report._render.blocks import Note
from gpudiag.report._sections.topics import trials as section

NEEDS_SET = pytest.mark.skipif(not hasattr(optuna.trial.Trial, "set_constraint"), reason="this Optuna is older than 5")


def _excess(trial: optuna.trial.FrozenTrial) -> tuple[float, float]:
    return trial.params["x"] - 0.3, trial.params["y"] - 2


def _optimized(storage: str, directions: list[str], *, named: bool = False) -> optuna.Study:
    """Thirty trials whose best values break a constraint: x should be 1 and may be 0.3."""
    sign = 1 if directions[0] == "minimize" else -1

    def objective(trial: optuna.Trial) -> float | tuple[float, float]:
        x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 3)
        if named:
            trial.set_constraint("width", x - 0.3)
            trial.set_constraint("height", y - 2)
        first = sign * ((1 - x) ** 2 + 0.1 * y)
        return first if len(directions) == 1 else (first, x + abs(y - 1))

    sampler = optuna.samplers.TPESampler(
        seed=3, n_startup_trials=30, **({} if named else {"constraints_func": _excess})
    )
    made = optuna.create_study(study_name="s", directions=directions, sampler=sampler)
    made.optimize(objective, n_trials=30)  # drawn at random: fitting densities takes most of the time
    copy = optuna.create_study(study_name="s", storage=storage, directions=directions)
    copy.add_trials(made.trials)  # in one go: a file that is written to with every value takes seconds
    return copy


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("direction", "named"), [("minimize", False), ("maximize", False), pytest.param("maximize", True, marks=NEEDS_SET)]
)
def test_the_best_is_the_best_feasible_trial(tmp_path: Path, direction: str, named: bool) -> None:
    made = _optimized(f"sqlite:///{tmp_path}/s.db", [direction], named=named)
    found = measure_trials(gd.load_run(tmp_path / "s.db"))
    broken = [any(value > 0 for value in _excess(trial)) for trial in made.trials]
    pick = min if direction == "minimize" else max
    assert broken[pick(made.trials, key=lambda trial: trial.value).number], "else this test shows nothing"
    assert found.best["trial"].tolist() == [made.best_trial.number]
    assert found.best["value"].tolist() == [made.best_value]
    assert found.n_infeasible == sum(broken)
    assert found.pareto.empty


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_several_objectives_have_a_front_and_no_best(tmp_path: Path) -> None:
    made = _optimized(f"sqlite:///{tmp_path}/s.db", ["maximize", "minimize"])
    found = measure_trials(gd.load_run(tmp_path / "s.db"))
    assert found.best.empty
    assert found.pareto["trial"].tolist() == [trial.number for trial in made.best_trials]
    assert found.pareto[["value_0", "value_1"]].to_numpy().tolist() == [trial.values for trial in made.best_trials]
    assert found.n_infeasible == sum(any(value > 0 for value in _excess(trial)) for trial in made.trials)


def test_the_front_holds_whatever_nothing_dominates() -> None:
    losses = np.random.default_rng(1).integers(0, 6, (200, 3)).astype(float)
    losses[:3] = [[0, 9, math.inf], [9, -math.inf, 9], [9, 9, 9]]

    def dominated(row: np.ndarray) -> bool:
        return any((other <= row).all() and (other < row).any() for other in losses)

    assert pareto_front(losses).tolist() == [not dominated(row) for row in losses]
    assert pareto_front(np.array([[1.0, 2.0], [1.0, 2.0], [1.0, 3.0]])).tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("cell", "broken"),
    [("[-0.1, 0.0]", False), ("[-0.1, 1e-9]", True), ("(0.2,)", True), ("(-0.2,)", False), ("[Infinity]", True),
     ("[]", False), (None, False), (math.nan, False), (0.5, True), ("null", False)],
)  # fmt: skip
@pytest.mark.parametrize("key", ["constraints", "nsga2:constraints", "botorch:constraints"])
def test_cells_as_storages_and_exports_write_them(cell: object, broken: bool, key: str) -> None:
    table = pd.DataFrame({f"system_attrs.{key}": pd.Series([cell, None], dtype=object)})
    assert infeasible(table).tolist() == [broken, False]


def test_each_named_constraint_counts_and_other_attributes_do_not() -> None:
    table = pd.DataFrame(
        {"system_attrs.constraints:a": [0.0, 1, np.nan], "system_attrs.constraints:b": [0.1, -1, np.nan],
         "system_attrs.tpe:constraints_of": [1, 1, 1]}
    )  # fmt: skip
    assert infeasible(table).tolist() == [True, True, False]


def test_progress_and_replays_pass_over_infeasible_trials() -> None:
    lives = [("COMPLETE", 10 * i, 10 * i + 10) for i in range(4)]
    table = trials(lives, value=[0.2, 0.9, 0.1, 0.7], **{"system_attrs.constraints": ["[-1]", "[2]", None, "[0]"]})
    found = measure_costs(run(gpu=gpu(range(60), util_pct=60.0), trials=table, studies=study("MAXIMIZE")))
    assert found.progress[["trial", "best"]].to_numpy().tolist() == [[0, 0.2], [3, 0.7]]
    assert found.progress["at"].tolist() == list(at([10, 40]))
    steps = [{"study": "s", "trial": t, "step": k, "value": 0.1} for t, k in itertools.product(range(4), range(3))]
    reported = run(trials=table, reports=pd.DataFrame(steps), studies=study("MAXIMIZE"))
    assert recorded_studies(reported)[0].infeasible.tolist() == [False, True, False, False]


@pytest.mark.slow
def test_the_report_says_how_many_trials_broke_a_constraint() -> None:
    lives = [("COMPLETE", 10 * i, 10 * i + 10) for i in range(3)] + [("PRUNED", 40, 50)]
    table = trials(lives, value=[0.2, 0.9, 0.1, 0.3], **{"system_attrs.constraints": ["[-1]", "[2]", None, "[9]"]})
    said = "1 of 3 COMPLETE trials broke a constraint: none counts as best."
    for frame, expected in ((table, [said]), (table.drop(columns="system_attrs.constraints"), [])):
        blocks = section(gd.diagnose(run(trials=frame, studies=study("MAXIMIZE"))).document)
        assert [
            block.text for block in blocks if isinstance(block, Note) and "constraint" in str(block.text)
        ] == expected


@pytest.mark.slow
def test_the_report_says_how_many_values_are_infinite() -> None:
    """Optuna's best_trial would be the one of -inf; here a number is best, and the others are told."""
    lives = [("COMPLETE", 10 * i, 10 * i + 10) for i in range(4)] + [("PRUNED", 40, 50)]
    table = trials(lives, value=[0.2, -math.inf, 0.1, math.inf, -math.inf])
    found = gd.diagnose(run(trials=table, studies=study("MINIMIZE")))
    assert found.profiles["trials"].best["trial"].tolist() == [2]
    said = [str(block.text) for block in section(found.document) if isinstance(block, Note)]
    assert "2 of 4 COMPLETE trials ended with an infinite value: none counts as best." in said


def test_a_memory_limit_names_the_best_feasible_trial() -> None:
    table = trials(
        [("COMPLETE", 0, 10)] * 3, value=[0.1, 0.2, 0.3], **{"system_attrs.constraints": ["[1]", "[0]", None]}
    )
    for direction, expected in (("MINIMIZE", 1), ("MAXIMIZE", 2)):
        assert best_trials(run(trials=table, studies=study(direction))) == {("s", expected)}
