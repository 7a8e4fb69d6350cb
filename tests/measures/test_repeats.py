"""Why trials have the parameters of earlier ones, and when a space is smaller than the search."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import optuna
import pandas as pd
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, GridSampler, NSGAIISampler, RandomSampler, TPESampler
from verdicts import verdict_of

import gpudiag as gd
from gpudiag.measures.search import SearchProfile, measure_search
from gpudiag.run import Run

optuna.logging.set_verbosity(optuna.logging.ERROR)
START = pd.Timestamp("2026-03-02T09:00:00")
UNIT: dict[str, Any] = {"x": FloatDistribution(0, 1)}


def added(values: list[dict[str, Any]], space: dict[str, Any], attrs: list[dict[str, Any]] | None = None) -> Run:
    """A study with a COMPLETE trial for each of these parameters."""
    study = optuna.create_study()
    for k, params in enumerate(values):
        trial = optuna.trial.create_trial(
            params=params, distributions=space, value=1.0, system_attrs=attrs[k] if attrs else {}
        )
        trial.datetime_start = (START + pd.Timedelta(seconds=60 * k)).to_pydatetime()
        trial.datetime_complete = (START + pd.Timedelta(seconds=60 * k + 59)).to_pydatetime()
        study.add_trial(trial)
    return gd.load_run(study)


def asked(samplers: list[BaseSampler], space: dict[str, Any], n: int, *, one_by_one: bool = False) -> SearchProfile:
    """A study that workers with these samplers share: in turn, or ``one_by_one``, each when the one before it ended."""
    objectives = ["minimize"] * (2 if isinstance(samplers[0], NSGAIISampler) else 1)
    study, rng = optuna.create_study(directions=objectives), random.Random(n)
    for k in range(n):
        study.sampler = samplers[k * len(samplers) // n if one_by_one else k % len(samplers)]
        trial = study.ask(space)
        study.tell(trial, [rng.random() for _ in objectives])
    return measure_search(gd.load_run(study))


@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.slow
def test_samplers_of_one_seed_draw_one_sequence(one_by_one: bool) -> None:
    space = {**UNIT, "n": IntDistribution(1, 1000), "kind": CategoricalDistribution(["a", "b"])}
    found = asked([RandomSampler(seed=3) for _ in range(2)], space, 40, one_by_one=one_by_one)
    assert (found.n_duplicates, found.n_same_seed) == (20, 20) and found.n_combinations != found.n_combinations
    assert set(found.repeats["why"]) == {"seed"}
    other = asked([RandomSampler(seed=k) for k in range(2)], space, 40, one_by_one=one_by_one)
    assert (other.n_duplicates, other.n_same_seed) == (0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_repeats_by_chance_or_crossover_are_no_sequence(seed: int) -> None:
    cells = {
        "m": CategoricalDistribution(list("abcd")),
        "n": IntDistribution(1, 4),
        "s": FloatDistribution(0, 1, step=0.25),
    }
    pair = {"a": FloatDistribution(0, 1), "b": FloatDistribution(0, 1)}
    tpe: list[BaseSampler] = [TPESampler(seed=seed + k) for k in range(3)]
    genes: list[BaseSampler] = [NSGAIISampler(seed=seed + k, population_size=8) for k in range(3)]
    for samplers, space in ((tpe, cells), (genes, pair), (genes, cells)):
        found = asked(samplers, space, 60)
        assert found.n_duplicates > 0 and found.n_same_seed == 0


@pytest.mark.slow
def test_a_continuous_space_is_never_small() -> None:
    rng = random.Random(1)
    drawn = [{"x": rng.random()} for _ in range(15)]
    assert measure_search(added([*drawn, *reversed(drawn)], UNIT)).space.empty
    written = [{"x": [0.1, 0.2, 0.3][k % 3]} for k in range(30)]
    assert measure_search(added(written, UNIT)).space.empty, "declared, whatever was tried of it"
    steps = {"x": FloatDistribution(0, 1, step=0.5)}
    assert measure_search(added([{"x": [0.0, 1.0][k % 2]} for k in range(30)], steps)).n_combinations == 2
    assert measure_search(added([{"n": k % 2} for k in range(30)], {"n": IntDistribution(0, 29)})).space.empty
    assert measure_search(added([{"n": k % 2} for k in range(31)], {"n": IntDistribution(0, 29)})).n_combinations == 2


@pytest.mark.parametrize(
    ("values", "small"),
    [
        ([0.1, 0.2, 0.3] * 10, True),
        ([0.1, 0.2, 0.3, 1 / 3] * 10, False),  # nobody writes all these digits into a list
        ([*range(15), *range(15)], False),  # two of each are no proof of a small space
        ([*range(10), *range(10), *range(10)], True),
    ],
)
def test_a_table_without_distributions(values: list[float], small: bool) -> None:
    start = [START.tz_localize("UTC") + pd.Timedelta(seconds=60 * k) for k in range(len(values))]
    trials = pd.DataFrame({
        "study": "s", "trial": range(len(values)), "state": "COMPLETE", "start": start,
        "end": [at + pd.Timedelta(seconds=59) for at in start], "params.x": values,
    })  # fmt: skip
    found = measure_search(Run(trials=trials, studies=pd.DataFrame({"study": ["s"], "directions": ["MINIMIZE"]})))
    assert (not found.space.empty) is small


TABLE = "number,value,state,datetime_start,datetime_complete,params_x,params_kind\n"


def rows(*, timed: bool, valued: bool = True) -> str:
    """30 trials a minute each; the parameters of 10 are those of the trial 10 before, one of which failed."""
    out = TABLE
    for k in range(30):
        state = "FAIL" if k == 3 else "COMPLETE"
        times = f"2026-03-02 09:{k:02}:00,2026-03-02 09:{k:02}:30" if timed else ","
        x = k - 10 if 10 <= k < 20 else k
        out += f"{k},{1.0 if valued and k != 3 else ''},{state},{times},0.{x:02},{'' if x % 2 else 'a'}\n"
    return out


@pytest.mark.slow
def test_repeats_need_no_direction(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(rows(timed=True))
    run = gd.load_run(path, timezone="UTC")
    found = measure_search(run)
    assert (found.n_with_params, found.n_duplicates) == (30, 9)
    assert found.duplicate_worker_h == pytest.approx(9 * 30 / 3600)
    told = verdict_of(run, "duplicate-trials")
    assert told.severity.name == "WARNING" and "9 of 30 trials (30 %) repeat" in told.summary
    assert "of an earlier one, for 30 % of the trial time." in told.summary
    assert found.n_same_seed == 0, "somebody's list, once more"
    path.write_text(rows(timed=True).replace(",0.", ",0.123456789"))
    assert measure_search(gd.load_run(path, timezone="UTC")).n_same_seed == 9


@pytest.mark.slow
def test_without_times_it_is_not_said_what_repeats_cost(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(rows(timed=False))
    run = gd.load_run(tmp_path / "t.csv", timezone="UTC")
    assert math.isnan(measure_search(run).duplicate_worker_h)
    diagnosis = gd.diagnose(run)
    (told,) = [one for one in diagnosis.findings if one.rule == "duplicate-trials"]
    assert told.severity.name == "NOTE" and told.summary.endswith("repeat the parameters of an earlier one.")
    assert "nan" not in diagnosis.to_markdown().lower().split()


def test_trials_without_a_value_are_no_search(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(rows(timed=True, valued=False))
    assert measure_search(gd.load_run(tmp_path / "t.csv", timezone="UTC")).n_with_params == 0


def test_a_choice_of_none_is_a_parameter() -> None:
    space: dict[str, Any] = {"kind": CategoricalDistribution([None, "a"])}
    found = measure_search(added([{"kind": None if k % 2 else "a"} for k in range(20)], space))
    assert (found.n_with_params, found.n_duplicates) == (20, 18)
    assert found.space.empty, "nothing tells the choice of None from no choice at all"


def test_a_grid_that_is_searched_again() -> None:
    study = optuna.create_study(sampler=GridSampler({"x": [0.1, 0.2, 0.3]}, seed=1))
    for _ in range(6):  # each but the first repeats one trial and stops
        study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
    found = measure_search(gd.load_run(study))
    assert (found.n_duplicates, found.n_after_grid, found.n_same_seed) == (5, 5, 0) and found.space.empty


def test_two_workers_in_one_cell_are_not_after_the_grid() -> None:
    ids = [0, 0, 1, 2, 2]
    attrs = [{"grid_id": k, "search_space": {"x": [0.1, 0.2, 0.3]}} for k in ids]
    found = measure_search(added([{"x": [0.1, 0.2, 0.3][k]} for k in ids], UNIT, attrs))
    assert found.repeats["why"].tolist() == ["", "grid"]


def test_repeats_that_were_enqueued() -> None:
    rng = random.Random(5)
    values = [{"x": 0.5 if k % 10 == 0 else rng.random()} for k in range(60)]
    attrs = [{"fixed_params": {"x": 0.5}} if k % 10 == 0 else {} for k in range(60)]
    found = measure_search(added(values, UNIT, attrs))
    assert (found.n_duplicates, found.n_enqueued, found.n_same_seed) == (5, 5, 0) and found.space.empty
