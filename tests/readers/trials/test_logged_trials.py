"""Trials from Optuna's own log alone: states, values, parameters and direction; starts where one ran at a time."""

from __future__ import annotations

import heapq
import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import optuna
import pandas as pd
import pytest

import gpudiag as gd
from gpudiag.readers._batches.optuna_lines import StudyLine, TrialLine, told_by_optuna
from gpudiag.readers._studies.one_by_one import ran_one_by_one
from gpudiag.rules._engine.verdict import Status
from gpudiag.simulation import simulate

FORM = "[%(levelname)1.1s %(asctime)s] %(message)s"
DAY = "2026-11-20"
EXPERIMENTAL = pytest.mark.filterwarnings(
    "ignore::optuna.exceptions.ExperimentalWarning", "ignore:.*constraints_func.*:FutureWarning"
)
CREATED = f"[I {DAY} 10:00:00,000] A new study created in memory with name: hpo"


@contextmanager
def logged(path: Path) -> Iterator[None]:
    """Optuna's log written to a file as it is to a redirected stderr."""
    handler = logging.FileHandler(path)
    handler.setFormatter(logging.Formatter(FORM))
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.INFO)
    logging.getLogger("optuna").addHandler(handler)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
        logging.getLogger("optuna").removeHandler(handler)
        handler.close()


def objective(trial: optuna.Trial) -> float:
    """Of every four one is pruned, one raises and one returns NaN."""
    rate = trial.suggest_float("lr", 1e-5, 1e-1, log=True)
    trial.suggest_categorical("optimizer", ["it's", 'say "so"', None, True])
    trial.suggest_int("layers", 1, 8)
    if trial.number % 4 == 1:
        raise optuna.TrialPruned("at epoch 3: Trial 0 pruned.")
    if trial.number % 4 == 2:
        raise ValueError("bad {'lr': 1}. Best is trial 9 with value: 0.5.")
    return math.nan if trial.number % 4 == 3 else rate


def ends(*seconds: float, first: int = 0, value: float = 1.0) -> list[str]:
    """Lines of trials that completed so many seconds after 10:00, by number; each value lower than the one before."""
    lines = []
    for number, second in enumerate(seconds, start=first):
        at = pd.Timestamp(f"{DAY} 10:00") + pd.Timedelta(seconds=second)
        stamp = at.isoformat(sep=" ", timespec="milliseconds").replace(".", ",")
        now = value - number / 1000
        lines.append(
            f"[I {stamp}] Trial {number} finished with value: {now} and parameters: {{'x': {number}}}. "
            f"Best is trial {number} with value: {now}."
        )
    return lines


def read(path: Path, lines: list[str]) -> gd.Run:
    path.write_text("\n".join(lines) + "\n")
    return gd.load_run(path, timezone="UTC")


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_a_study_in_memory_is_read_from_its_log(direction: str, tmp_path: Path) -> None:
    with logged(tmp_path / "search.log"):
        study = optuna.create_study(direction=direction, sampler=optuna.samplers.RandomSampler(seed=4))
        study.optimize(objective, n_trials=12, catch=(ValueError,))
    run = gd.load_run(tmp_path)
    truth = study.trials_dataframe()
    assert run.studies[["study", "directions"]].to_numpy().tolist() == [[study.study_name, direction.upper()]]
    assert run.trials["trial"].tolist() == truth["number"].tolist()
    assert run.trials["state"].tolist() == truth["state"].tolist() == ["COMPLETE", "PRUNED", "FAIL", "FAIL"] * 3
    complete = truth["state"] == "COMPLETE"
    assert run.trials["value"][complete].tolist() == truth["value"][complete].tolist()
    told = truth["state"] != "PRUNED"  # Optuna logs no parameters of pruned trials
    for name in ("lr", "layers"):
        assert run.trials[f"params.{name}"][told].tolist() == truth[f"params_{name}"][told].tolist()
    chosen = run.trials["params.optimizer"]
    of_study = truth["params_optimizer"]
    assert chosen[told].isna().tolist() == of_study[told].isna().tolist()
    assert chosen[told].dropna().tolist() == of_study[told].dropna().tolist()
    assert run.trials["detail"][2] == "Trial 2 failed: ValueError(\"bad {'lr': 1}. Best is trial 9 with value: 0.5.\")."


@EXPERIMENTAL
@pytest.mark.parametrize("names", [None, ["loss", "time"]])
def test_several_objectives(names: list[str] | None, tmp_path: Path) -> None:
    with logged(tmp_path / "search.log"):
        study = optuna.create_study(directions=["minimize", "maximize"])
        if names:
            study.set_metric_names(names)
        study.optimize(lambda trial: (trial.suggest_float("x", 0, 1), math.inf), n_trials=3)
    run = gd.load_run(tmp_path)
    assert run.trials[["value_0", "value_1"]].to_numpy().tolist() == [list(trial.values) for trial in study.trials]
    assert run.studies["directions"].tolist() == [""]


@EXPERIMENTAL
def test_the_name_of_one_metric(tmp_path: Path) -> None:
    with logged(tmp_path / "search.log"):
        study = optuna.create_study()
        study.set_metric_names(["loss: mean"])
        study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
    assert gd.load_run(tmp_path).trials["value"].tolist() == [trial.value for trial in study.trials]


OLD = [
    ("A new study created in memory with name: no-name-1", StudyLine("no-name-1")),
    ("A new study created with name: a b", StudyLine("a b")),
    ("Using an existing study with name 'a b' instead of creating a new one.", StudyLine("a b")),
    ("Using an existing study with `study_name='a b'` instead of creating a new one.", StudyLine("a b")),
    (
        "Trial 0 finished with value: 1.5 and parameters: {'x': 1}. Best is trial 0 with value: 1.5.",
        TrialLine(0, "COMPLETE", (1.5,), {"x": 1}, 0, 1.5),
    ),
    (
        "Trial 3 finished with values: [1.0, -inf] and parameters: {'x': 0.25}. ",
        TrialLine(3, "COMPLETE", (1.0, -math.inf), {"x": 0.25}),
    ),
    ("Trial 3 finished with value: 2.0 and parameters: {}.", TrialLine(3, "COMPLETE", (2.0,))),
    ("Trial 5 pruned. ", TrialLine(5, "PRUNED")),
    ("Trial 5 pruned. Trial was pruned at epoch 3.", TrialLine(5, "PRUNED")),
    (
        "Trial 7 failed because of the following error: ValueError('x')",
        TrialLine(7, "FAIL", why="ValueError('x')"),
    ),
    (
        "Trial 7 failed, because the objective function returned nan.",
        TrialLine(7, "FAIL", why="the objective function returned nan."),
    ),
    (
        "Trial 7 failed with parameters: {'x': 1} because of the following error: E('y').",
        TrialLine(7, "FAIL", params={"x": 1}, why="E('y')."),
    ),
    ("Trial 7 failed with value None.", None),
    ("Trial 7 pruned at epoch 3", None),
    ("Trial #7 finished with value 0.5.", None),
    ("Trial 7 finished with value: 0.5", None),
    ("the study was created", None),
]


@pytest.mark.parametrize(("line", "told"), OLD)
def test_lines_of_versions_2_to_5(line: str, told: StudyLine | TrialLine | None) -> None:
    for before in (f"[I {DAY} 10:12:13,123] ", f"{DAY} 10:12:13,123 - optuna.study - INFO - ", "INFO:optuna:", ""):
        assert told_by_optuna(before + line) == told


@pytest.mark.slow
def test_one_at_a_time_starts_where_the_one_before_ended(tmp_path: Path) -> None:
    run = read(tmp_path / "a.log", [CREATED, *ends(61, 118, 160, 231, 290, 333, 401, 455, 521, 580)])
    seconds = (run.trials["start"] - pd.Timestamp(f"{DAY} 10:00", tz="UTC")).dt.total_seconds()
    assert seconds.tolist() == [0, 61, 118, 160, 231, 290, 333, 401, 455, 521]
    assert any("the order of their ends shows one at a time" in note for note in run.info.notes)
    verdicts = {one.rule: one for one in gd.diagnose(run).verdicts}
    assert verdicts["trial-gaps"].status is not Status.OK  # nothing tells of the time between trials


def test_the_start_behind_a_missing_number_is_unknown(tmp_path: Path) -> None:
    """A trial that was interrupted leaves no line: the next did not begin where the one before the gap ended."""
    run = read(tmp_path / "a.log", [CREATED, *ends(*range(60, 600, 60)), *ends(700, 790, 850, first=10)])
    assert run.trials["start"].isna().tolist() == [False] * 9 + [True, False, False]


def test_without_the_line_of_its_study_the_first_start_is_unknown(tmp_path: Path) -> None:
    run = read(tmp_path / "search.log", ends(*range(60, 900, 60)))
    assert run.trials["start"].isna().tolist() == [True] + [False] * 13
    assert run.studies["study"].tolist() == ["search"]


@pytest.mark.slow
def test_two_at_once_have_no_starts(tmp_path: Path) -> None:
    lines = ends(60, 61, 120, 122, 181, 182, 240, 243, 299, 303, 361, 364)  # in lockstep, and in order
    run = read(tmp_path / "a.log", [CREATED, *lines])
    assert run.trials["start"].isna().all() and run.trials["end"].notna().all()
    lines[3], lines[4] = lines[4], lines[3]
    run = read(tmp_path / "b.log", [CREATED, *lines])
    assert run.trials["start"].isna().all()
    assert any("Several ran at once" in note for note in run.info.notes)
    assert gd.diagnose(run).verdicts  # whatever needs starts is not assessed


def test_what_run_toml_states_decides(tmp_path: Path) -> None:
    (tmp_path / "few.log").write_text("\n".join([CREATED, *ends(60, 120, 180)]))
    assert gd.load_run(tmp_path).trials["start"].isna().all()
    (tmp_path / "run.toml").write_text("[settings]\nparallel = 1\n")
    assert gd.load_run(tmp_path).trials["start"].notna().all()
    (tmp_path / "few.log").write_text("\n".join([CREATED, *ends(*range(61, 1200, 59))]))
    (tmp_path / "run.toml").write_text("[settings]\nparallel = 2\n")
    assert gd.load_run(tmp_path).trials["start"].isna().all()


def by_workers(rng: np.random.Generator, n: int, workers: int, spread: float) -> np.ndarray:
    """Ends by number of so many trials by workers that begin together."""
    free, out = [0.01 * worker for worker in range(workers)], []
    for _ in range(n):
        end = heapq.heappop(free) + 100 * math.exp(spread * rng.standard_normal())
        heapq.heappush(free, end)
        out.append(end)
    return np.array(out)


@pytest.mark.parametrize("spread", [0.005, 0.05, 0.5])
def test_one_worker_is_known_from_ten_trials_on_and_several_are_seldom_taken_for_it(spread: float) -> None:
    rng = np.random.default_rng(71)
    one = [ran_one_by_one(by_workers(rng, 12, 1, spread)) for _ in range(25)]
    several = [ran_one_by_one(by_workers(rng, n, workers, spread)) for n in (8, 12, 20) for workers in (2, 3) * 25]
    assert np.mean(one) > 0.9
    assert np.mean(several) < 0.1


@EXPERIMENTAL
def test_what_broke_a_constraint_is_never_the_best(tmp_path: Path) -> None:
    def broken(trial: optuna.trial.FrozenTrial) -> list[float]:
        return [1.0 if trial.number in (0, 3) else -1.0]

    values = [0.1, 0.5, 0.8, 0.05, 0.3]
    with logged(tmp_path / "search.log"):
        study = optuna.create_study(sampler=optuna.samplers.TPESampler(constraints_func=broken))
        study.optimize(lambda trial: values[trial.number], n_trials=5)
    assert gd.load_run(tmp_path).studies["directions"].tolist() == ["MINIMIZE"]


@pytest.mark.slow
def test_beside_a_study_or_its_table_the_log_adds_no_second_table(tmp_path: Path) -> None:
    with logged(tmp_path / "search.log"):
        study = optuna.create_study(storage=f"sqlite:///{tmp_path / 'optuna.db'}", study_name="search")
        study.optimize(objective, n_trials=8, catch=(ValueError,))
    run = gd.load_run(tmp_path)
    assert len(run.trials) == 8 and run.studies["study"].tolist() == ["search"]
    assert run.trials["start"].notna().all()
    assert any(note.endswith("were set aside: a study or a table of trials is read.") for note in run.info.notes)
    study.trials_dataframe().to_csv(tmp_path / "trials.csv")
    (tmp_path / "optuna.db").unlink()
    assert len(gd.load_run(tmp_path).trials) == 8


def test_two_logs_of_the_same_trials_are_one_table(tmp_path: Path) -> None:
    lines = [CREATED, *ends(*range(60, 900, 60))]
    (tmp_path / "a.out").write_text("\n".join(lines))
    (tmp_path / "b.err").write_text("\n".join([*lines, "more"]))
    run = gd.load_run(tmp_path)
    assert len(run.trials) == 14 and run.studies["study"].tolist() == ["hpo"]


def test_workers_that_log_apart_are_one_study(tmp_path: Path) -> None:
    lines = ends(*range(60, 900, 60))
    (tmp_path / "0.log").write_text("\n".join([CREATED.replace("memory", "RDB"), *lines[::2]]))
    known = f"[I {DAY} 10:00:01,000] Using an existing study with name 'hpo' instead of creating a new one."
    (tmp_path / "1.log").write_text("\n".join([known, *lines[1::2]]))
    run = gd.load_run(tmp_path)
    assert sorted(run.trials["trial"]) == list(range(14)) and run.studies["study"].tolist() == ["hpo"]
    assert run.trials["start"].isna().sum() >= 12  # two ran at once


def test_two_studies_one_after_the_other(tmp_path: Path) -> None:
    second = CREATED.replace("10:00:00", "11:00:00").replace("hpo", "two")
    later = [line.replace("value: ", "value: 1") for line in ends(*range(3660, 4400, 60))]
    run = read(tmp_path / "a.log", [CREATED, *ends(*range(60, 900, 60)), second, *later])
    assert run.trials.groupby("study").size().to_dict() == {"hpo": 14, "two": 13}
    assert run.trials["start"].notna().all()


def test_studies_whose_lines_are_mixed_are_not_read(tmp_path: Path) -> None:
    """Two studies in threads of one process: their trials have the same numbers."""
    one, two = ends(*range(60, 900, 60)), ends(*range(90, 930, 60), value=5)
    mixed = [line for pair in zip(one, two, strict=True) for line in pair]
    run = read(tmp_path / "a.log", [CREATED, CREATED.replace("hpo", "two"), *mixed])
    assert run.trials.empty
    assert any("several studies are mixed" in problem.kind for problem in run.info.inputs[0].problems)


def test_a_second_handler_repeats_lines(tmp_path: Path) -> None:
    lines = [CREATED, *ends(*range(60, 900, 60))]
    doubled = [line for one in lines for line in (one, f"INFO:optuna.study:{one[32:]}")]
    assert len(read(tmp_path / "a.log", doubled).trials) == 14


def test_the_progress_bar_of_a_search_counts_no_steps(tmp_path: Path) -> None:
    lines = ends(*range(60, 900, 60))
    bars = ["  0%|          | 0/14 [00:00<?, ?it/s]"]
    for number, line in enumerate(lines):
        bar = (
            f"Best trial: {number}. Best value: 0.9:  {7 * number}%|██        | {number + 1}/14 [01:00<10:00, 60.0s/it]"
        )
        bars += [f"\r{' ' * 40}\r{line}", f"\r{bar}"]
    run = read(tmp_path / "a.log", [CREATED, *bars])
    assert run.steps.empty and len(run.trials) == 14


HOSTILE = [
    "[" * 5000 + "]" * 5000,
    "-" * 20000 + "1",
    "__import__('os').system('touch /tmp/never')",
    "1" * 6000,
    "'\\ud800'",
    "{1: 2}, 'y': b'x'",
    "lambda: 0",
    "0x" + "f" * 5000,
]


@pytest.mark.slow
@pytest.mark.parametrize("value", HOSTILE)
def test_parameters_are_constants_or_nothing(value: str, tmp_path: Path) -> None:
    line = f"[I {DAY} 10:01:00,000] Trial 0 finished with value: 1.0 and parameters: {{'x': {value}}}. "
    run = read(tmp_path / "a.log", [CREATED, line + "Best is trial 0 with value: 1.0."])
    assert run.trials["trial"].tolist() == [0]
    assert gd.diagnose(run).to_dict()


@pytest.mark.slow
def test_names_of_parameters_are_bounded(tmp_path: Path) -> None:
    lines = [CREATED]
    for number, line in enumerate(ends(*range(60, 360, 60))):
        many = ", ".join(f"'p{number}_{at}': {at}" for at in range(600))
        lines.append(line.replace(f"{{'x': {number}}}", f"{{{many}}}"))
    run = read(tmp_path / "a.log", lines)
    assert len(run.trials) == 5
    assert sum(name.startswith("params.") for name in run.trials) == 1000


def test_a_document_that_quotes_such_a_log_is_none(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("\n".join(["# Search", "```", CREATED, *ends(60, 120), "```"]))
    with pytest.raises(gd.InputError):
        gd.load_run(tmp_path)


@pytest.mark.slow
def test_fewer_at_once_at_the_end_are_no_lasting_fall_of_utilization(tmp_path: Path) -> None:
    """Two workers of which one goes on at the end, known by their log alone: a stored study shows why it fell."""
    sim = simulate(seed=212, n_trials=6, workers=2, timezone="UTC", gap_s=(0.02, 0.1), period_s=1.0, clock="optuna5")
    sim.write(tmp_path / "whole")
    stored = gd.load_run(tmp_path / "whole").trials.sort_values("end")
    began = pd.Timestamp("2025-10-24 17:00", tz="UTC")
    lines = [
        line.replace("Trial 0", f"Trial {number}")
        for number, end in zip(stored["trial"], stored["end"], strict=True)
        for line in [ends((end - began).total_seconds())[0].replace(f"[I {DAY} ", "[I 2025-10-24 ")]
    ]
    (tmp_path / "logged").mkdir()
    (tmp_path / "logged" / "gpu.csv").write_bytes((tmp_path / "whole" / "gpu.csv").read_bytes())
    (tmp_path / "logged" / "search.log").write_text("\n".join(lines))
    run = gd.load_run(tmp_path / "logged", timezone="UTC")
    assert len(run.trials) == 6 and run.trials["start"].isna().all()
    verdicts = {one.rule: one.status for one in gd.diagnose(run).verdicts}
    assert verdicts["gpu-level-shift"] is Status.NOT_ASSESSED
