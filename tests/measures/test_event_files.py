"""Event files of TensorBoard beside each other and beside other logs: one training counts once, with its moments."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from pathlib import Path

import pytest

import gpudiag as gd
from gpudiag.measures._steps.logs import training_logs
from gpudiag.measures.divergence import measure_divergence
from gpudiag.measures.steps import StepsProfile, measure_steps
from tests.writtenevents import BEGIN_S, Course, scalar, written

COURSE = Course()
EVALUATED_S, HUNG_S, DOWN_S, AGAIN = 4 * 60.0, 300.0, 200.0, 240
"""Evaluations at 500, 1,000, 1,500 and 2,000 steps, the hang, the time down, and steps that were done again."""


def measured(folder: Path) -> StepsProfile:
    return measure_steps(gd.load_run(folder))


def is_true(said: StepsProfile, *, down_s: float = DOWN_S) -> None:
    assert (said.n_trainings, said.n_resumed, said.n_repeated) == (1, 1, pytest.approx(AGAIN, abs=10))
    assert said.step_s == pytest.approx(1, rel=0.01)
    assert said.evaluations_s == pytest.approx(EVALUATED_S, abs=2)
    assert said.unnamed_s == pytest.approx(HUNG_S, abs=3)
    assert said.down_s == pytest.approx(down_s, abs=10)


@pytest.mark.parametrize("trainer", [False, True])
def test_a_training_and_its_resumption_by_event_files_alone(tmp_path: Path, trainer: bool) -> None:
    COURSE.events(tmp_path / "runs", trainer=trainer)
    said = measured(tmp_path)
    is_true(said)
    assert said.n_joined == 1 and said.n_twice == 0


@pytest.mark.slow
def test_beside_a_bar_and_a_history_nothing_counts_twice(tmp_path: Path) -> None:
    """The bar tells more of the steps and the event files when they were: before, nothing told how long it was down."""
    COURSE.bars(tmp_path / "train.out")
    history = [{"epoch": step / 1000, "loss": 0.5, "step": step} for step in range(100, 2001, 100)]
    state = {"global_step": 2000, "is_world_process_zero": True, "log_history": history, "max_steps": 2000}
    (tmp_path / "trainer_state.json").write_text(json.dumps(state))
    alone = measured(tmp_path)
    assert alone.down_s == 0 and alone.n_down_unknown == 1
    Course(every=50).events(tmp_path / "runs", trainer=True)
    said = measured(tmp_path)
    is_true(said)
    assert said.n_steps == pytest.approx(alone.n_steps, abs=10) and said.n_down_unknown == 0
    lines = training_logs(gd.load_run(tmp_path)).lines
    assert {Path(path).name for path in lines["path"].unique()} == {"train.out"} and lines["time"].notna().all()


def test_a_bar_is_not_dated_by_another_training(tmp_path: Path) -> None:
    """As many steps at another pace."""
    COURSE.bars(tmp_path / "train.out")
    written(tmp_path / "other", [scalar("loss", 0.5, step, BEGIN_S + 1.3 * step) for step in range(10, 2001, 10)])
    lines = training_logs(gd.load_run(tmp_path)).lines
    assert lines.groupby("path")["time"].count().loc[str(tmp_path / "train.out")] == 0


@pytest.mark.parametrize("folder", ["runs", "runs/rank_{}", "runs/w{}"])
def test_ranks_that_write_event_files_are_one_training(tmp_path: Path, folder: str) -> None:
    for rank in range(4):
        events = [scalar("loss", 0.5, step, BEGIN_S + step + rank / 100) for step in range(10, 901, 10)]
        written(tmp_path / folder.format(rank), events, more=f".{rank}")
    said = measured(tmp_path)
    assert (said.n_trainings, said.n_twice, said.n_steps) == (1, 3, 890)


def test_scalars_with_folders_of_their_own_are_of_one_training(tmp_path: Path) -> None:
    """``add_scalars("loss", {"G": ..., "D": ..., "val": ...})``."""
    for place, (name, tag) in enumerate((("", "lr"), ("loss_G", "loss"), ("loss_D", "loss"), ("loss_val", "loss"))):
        every = 100 if name == "loss_val" else 10
        events = [scalar(tag, 0.5, step, BEGIN_S + step + place / 1000) for step in range(every, 901, every)]
        written(tmp_path / "exp" / name, events)
    said = measured(tmp_path)
    assert (said.n_trainings, said.n_twice, said.n_steps) == (1, 2, 890)


@pytest.mark.slow
def test_the_evaluation_behind_the_last_step_counts_in_a_file_of_its_own(tmp_path: Path) -> None:
    """40 s after steps 300, 600 and 900, the last; what is written of that step a day later is of another training."""
    at_s = [BEGIN_S + step + 40 * ((step - 1) // 300) for step in range(10, 901, 10)]
    for place, (name, tag) in enumerate((("", "lr"), ("loss_train", "loss"))):
        events = [scalar(tag, 0.5, 10 * k, s + place / 1000) for k, s in enumerate(at_s, 1)]
        written(tmp_path / "exp" / name, events)
    told = [scalar("loss", 0.5, step, at_s[step // 10 - 1] + 40) for step in (300, 600, 900)]
    written(tmp_path / "exp" / "loss_val", told)
    written(tmp_path / "exp" / "loss_val", [scalar("loss", 0.5, 900, at_s[-1] + 86_400)], more=".later")
    said = measured(tmp_path)
    assert (said.n_trainings, said.n_pauses, said.n_evaluations) == (1, 3, 3)
    assert said.pauses_s == pytest.approx(120, abs=1)


@pytest.mark.slow
def test_evaluations_in_files_of_their_own_are_named(tmp_path: Path) -> None:
    """As Keras writes them, and ``add_scalars``: 60 s each 200 steps, the last behind the last step."""
    moments = {step: BEGIN_S + step + 60 * ((step - 1) // 200) for step in range(10, 1001, 10)}
    evaluated = {step: at_s + 60 for step, at_s in moments.items() if step % 200 == 0}
    for folder, of_train, of_val in (("keras", "train", "validation"), ("torch", "loss_train", "loss_val")):
        written(tmp_path / folder / of_train, [scalar("loss", 0.5, step, at_s) for step, at_s in moments.items()])
        written(tmp_path / folder / of_val, [scalar("loss", 0.5, step, at_s) for step, at_s in evaluated.items()])
        said = measured(tmp_path / folder)
        assert (said.n_trainings, said.n_pauses, said.unnamed_s) == (1, 5, pytest.approx(0, abs=0.1))
        assert said.evaluations_s == pytest.approx(300)
    others = [scalar("val/loss", 0.5, step, at_s) for step, at_s in evaluated.items()]
    written(tmp_path / "other", [scalar("loss", 0.5, step, at_s) for step, at_s in moments.items()])
    written(tmp_path / "other" / "test_run", others)
    assert measured(tmp_path / "other").evaluations_s == 0, "those of another training"


def test_trainings_side_by_side_stay_several(tmp_path: Path) -> None:
    for number in range(3):
        events = [scalar("loss", 0.5, step, BEGIN_S + (1 + number / 50) * step) for step in range(10, 901, 10)]
        written(tmp_path / f"run{number}", events)
    said = measured(tmp_path)
    assert (said.n_trainings, said.n_twice, said.n_joined) == (3, 0, 0)


@pytest.mark.slow
def test_a_text_log_over_both_attempts_is_told_twice(tmp_path: Path) -> None:
    """Its lines are fewer than those of the event files, which are two."""

    def stamp(at_s: float) -> str:
        return datetime.fromtimestamp(BEGIN_S + at_s, UTC).isoformat(timespec="milliseconds")

    lines = []
    for what, step, at_s in COURSE.moments():
        if what == "resumption":
            lines.append(f"{stamp(at_s)} resumed from checkpoint at step {step}")
        elif what == "step" and step % 20 == 0:
            lines.append(f"{stamp(at_s)} step {step}/2000 loss 0.5")
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    COURSE.events(tmp_path / "runs")
    said = measured(tmp_path)
    is_true(said)
    assert said.n_twice == 1
    assert set(training_logs(gd.load_run(tmp_path)).lines["total"]) == {2000}, "which only the text log tells"


@pytest.mark.parametrize("states", [True, False])
def test_a_loss_that_two_logs_state_was_lost_once(tmp_path: Path, states: bool) -> None:
    """Of the text log, where that states one."""
    lost = [0.5 if step < 600 else math.nan for step in range(10, 1001, 10)]
    written(tmp_path, [scalar("train/loss", loss, 10 * k, BEGIN_S + 10 * k) for k, loss in enumerate(lost, 1)])
    text = [
        f"{datetime.fromtimestamp(BEGIN_S + 10 * k, UTC).isoformat()} step {10 * k}/1000 1.0 s/it"
        + (f" loss {loss}" if states else "")
        for k, loss in enumerate(lost, 1)
    ]
    (tmp_path / "train.log").write_text("\n".join(text) + "\n")
    said = measure_divergence(gd.load_run(tmp_path))
    assert (said.n_logs, said.n_not_finite, len(said.trainings)) == (1, 41, 1)
    assert Path(str(said.trainings["training"].iloc[0])).name.startswith("train.log" if states else "")
    assert said.trainings["total_steps"].notna().iloc[0] == states


def test_where_each_interval_holds_an_evaluation_its_stated_time_is_none_of_the_steps(tmp_path: Path) -> None:
    """Hugging Face's Trainer evaluates as often as it logs by default."""
    Course(every=500, n=6000).events(tmp_path, trainer=True)
    said = measured(tmp_path)
    assert said.step_s == pytest.approx(1, rel=0.01)
    assert (said.n_pauses, said.n_evaluations) == (11, 11), "that at step 1,000 is part of the time of the resumption"
    assert said.evaluations_s == pytest.approx(11 * 60, abs=2) and said.unnamed_s == pytest.approx(HUNG_S, abs=3)


def test_a_bar_without_a_word_on_evaluations_has_them_from_event_files(tmp_path: Path) -> None:
    """Not in the hang, which is the longest pause between two lines of the event file."""
    COURSE.bars(tmp_path / "train.err")
    bars = [line for line in (tmp_path / "train.err").read_text().splitlines() if "eval" not in line]
    (tmp_path / "train.err").write_text("\n".join(bars) + "\n")
    Course(every=250).events(tmp_path / "runs", trainer=True)
    said = measured(tmp_path)
    assert said.unnamed_s >= HUNG_S and said.evaluations_s in (pytest.approx(120), pytest.approx(180))
