"""What Hugging Face's Trainer keeps: its history, which goes on over resumptions, and the results of a training."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import gpudiag as gd
from gpudiag.errors import InputError
from gpudiag.readers._io.source import Source
from gpudiag.readers.artifacts import READERS, trainer_results, trainer_state
from gpudiag.readers.base import ReadOptions, Trials
from gpudiag.timezones import parse_zone
from tests.readers.steps.written_by_trainer import Trainer


def read(folder: Path) -> Trials:
    return trainer_state.read(Source.open(folder / "trainer_state.json"), ReadOptions(parse_zone("UTC")))


def whole_s(trainer: Trainer, folder: Path) -> list[float]:
    """The times of whole trainings that are used."""
    trainer.save(folder)
    return [float(seconds) for seconds in read(folder).steps.reindex(columns=["elapsed_s"])["elapsed_s"].dropna()]


@pytest.mark.parametrize("newer", [False, True])
def test_the_history_by_step(tmp_path: Path, newer: bool) -> None:
    trainer = Trainer(newer=newer)
    assert whole_s(trainer, tmp_path) == [trainer.train_s]
    steps = read(tmp_path).steps
    evaluated = steps[steps["evaluation_s"].notna()]
    assert evaluated["step"].tolist() == [100, 200, 300] and set(steps["total"]) == {300}
    assert evaluated["evaluation_s"].tolist() == pytest.approx([40.1, 40.2, 40.3])
    assert steps["time"].isna().all(), "no line has a clock"


@pytest.mark.parametrize("newer", [False, True])
@pytest.mark.parametrize("begun", [10, 150, 290])
@pytest.mark.parametrize("falls", [400.0, 1e9])
def test_the_time_since_a_resumption_is_not_that_of_all(tmp_path: Path, newer: bool, begun: int, falls: float) -> None:
    """Also where the loss does not fall."""
    assert whole_s(Trainer(begun=begun, newer=newer, falls=falls), tmp_path) == []
    assert any("resumed" in note for note in read(tmp_path).notes)


@pytest.mark.parametrize(
    "trainer",
    [
        Trainer(log=7),  # the last four steps are logged nowhere
        Trainer(n=200),  # stopped early: up to 5.0 speeds are those of all steps that were planned
        Trainer(log=1, falls=40.0, loss=9.0),
        Trainer(step_s=0.01, evaluate_s=0.5),
        Trainer(newer=True, n=200),
        Trainer(loss=0.025, falls=40000.0),  # rounded to four decimals
    ],
)
def test_a_training_in_one_go_is_told_from_one_that_was_resumed(tmp_path: Path, trainer: Trainer) -> None:
    assert whole_s(trainer, tmp_path) == [trainer.train_s]


@pytest.mark.parametrize(
    "trainer",
    [
        Trainer(log=500),  # no loss shows whether it was resumed
        Trainer(loss=0.0, falls=1e9),
        Trainer(loss=float("nan")),
        Trainer(newer=True, step_s=300.0),  # steps per second with three decimals
        Trainer(ends=False),
    ],
)
def test_what_cannot_be_told_is_not_used(tmp_path: Path, trainer: Trainer) -> None:
    assert whole_s(trainer, tmp_path) == []


def test_lines_that_count_tokens_have_a_clock(tmp_path: Path) -> None:
    """``include_num_input_tokens_seen``: each line on a step states the time since the training was begun."""
    Trainer(counts_tokens=True).save(tmp_path)
    steps = read(tmp_path).steps
    assert steps["step"].tolist() == list(range(10, 301, 10))
    assert steps["elapsed_s"].iloc[[0, 9, 10, 29]].tolist() == pytest.approx([10, 100, 110 + 40.1, 300 + 80.3])
    assert steps["evaluation_s"].iloc[10] == pytest.approx(40.1)


def test_a_cut_file_says_so(tmp_path: Path) -> None:
    Trainer().save(tmp_path)
    path = tmp_path / "trainer_state.json"
    path.write_text(path.read_text()[:-200], encoding="utf-8")
    assert trainer_state.READER.recognises(Source.open(path))
    with pytest.raises(InputError, match="no whole JSON document"):
        read(tmp_path)


@pytest.mark.parametrize("name", ["train", "eval", "all"])
def test_results_are_named_and_not_used(tmp_path: Path, name: str) -> None:
    """trainer_pt_utils.py, save_metrics."""
    said = {"epoch": 3.0, "total_flos": 1e15, "train_loss": 2.1, "train_runtime": 432.6, "train_samples": 800}
    said |= {"train_samples_per_second": 5.548, "train_steps_per_second": 0.693}
    if name != "train":
        said |= {"eval_loss": 1.9, "eval_runtime": 40.3, "eval_samples_per_second": 24.8, "perplexity": 6.7}
    path = tmp_path / f"{name}_results.json"
    path.write_text(json.dumps(said, indent=4, sort_keys=True), encoding="utf-8")
    assert [one.name for one in READERS if one.recognises(Source.open(path))] == [trainer_results.NAME]
    Trainer().save(tmp_path)
    run = gd.load_run(tmp_path)
    (note,) = [note for record in run.info.inputs for note in record.notes if path.name in note]
    assert "not used" in note and "train 7 min 13 s" in note
    assert {Path(path).name for path in run.steps["path"]} == {"trainer_state.json"}


@pytest.mark.parametrize(
    "said",
    [
        {"global_step": 3, "log_history": []},  # of another tool
        {"train_runtime": 3.0, "loss": 2.0, "step": 1},
        {"results": {"train_runtime": 3.0, "train_samples_per_second": 3.0}},
    ],
)
def test_json_of_other_tools_is_none_of_them(tmp_path: Path, said: dict[str, object]) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(said), encoding="utf-8")
    assert not any(one.recognises(Source.open(path)) for one in (trainer_state.READER, trainer_results.READER))
