"""What Hugging Face's Trainer prints, with the progress bar in another file or absent."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pandas as pd
import pytest

from gpudiag.readers._io.source import Source
from gpudiag.readers._steps.trainer_line import trainer_line
from gpudiag.readers.artifacts import READERS, training_log
from gpudiag.readers.base import ReadOptions
from gpudiag.timezones import parse_zone
from tests.readers.steps.written_by_trainer import Trainer

STARTED = ["Map: 100%", "Using auto half precision backend"]


def read(folder: Path, lines: list[str]) -> pd.DataFrame:
    path = folder / "train.out"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert [one.name for one in READERS if one.recognises(Source.open(path))] == ["training-log"]
    steps = training_log.read(Source.open(path), ReadOptions(parse_zone("UTC"))).steps
    return steps.reindex(columns=[*steps, *{"elapsed_s", "evaluation_s"} - {*steps}])


def told(folder: Path, lines: list[str]) -> list[tuple[float, list[float]]]:
    """By training whose time is used: its time, and those of its evaluations."""
    steps = read(folder, lines)
    out = []
    for _, part in steps.groupby("series", sort=False):
        if part["elapsed_s"].notna().any():
            out.append((float(part["elapsed_s"].max()), part["evaluation_s"].dropna().tolist()))
    return out


@pytest.mark.parametrize("newer", [False, True])
@pytest.mark.parametrize("prefix", ["", "0: ", "[rank0]: ", "\x1b[0m", "2026-03-01 10:00:00 "])
def test_lines_as_they_are_printed(tmp_path: Path, newer: bool, prefix: str) -> None:
    trainer = Trainer(newer=newer)
    ((whole_s, evaluated_s),) = told(tmp_path, [prefix + line for line in [*STARTED, *trainer.lines]])
    assert whole_s == pytest.approx(trainer.train_s, rel=5e-4)
    assert evaluated_s == pytest.approx([40.1, 40.2, 40.3], rel=5e-4)


def test_a_file_may_begin_with_such_a_line(tmp_path: Path) -> None:
    assert len(read(tmp_path, Trainer().lines)) == 30 + 3 + 1


@pytest.mark.parametrize("begun", [0, 120])
def test_a_resumed_training_prints_its_own_evaluations(tmp_path: Path, begun: int) -> None:
    trainer = Trainer(begun=begun)
    ((whole_s, evaluated_s),) = told(tmp_path, trainer.lines)
    assert whole_s == trainer.train_s and sum(evaluated_s) == pytest.approx(trainer.evaluated_s)


def test_one_that_goes_on_in_the_same_file(tmp_path: Path) -> None:
    """It was stopped at step 250, and resumed at step 200: no line states the time of the first part."""
    first, second = Trainer(n=250, ends=False), Trainer(begun=200)
    assert told(tmp_path, [*first.lines, "Traceback (most recent call last):", *second.lines]) == [
        (second.train_s, pytest.approx([40.3]))
    ]


@pytest.mark.parametrize("newer", [False, True])
@pytest.mark.parametrize("said", [["Continuing training from checkpoint, will skip to saved global_step"], []])
def test_one_that_goes_on_with_the_next_line(tmp_path: Path, said: list[str], newer: bool) -> None:
    """What its time holds is open: it may be said, and losses show it."""
    first, second = Trainer(n=150, ends=False, newer=newer), Trainer(begun=150, newer=newer)
    assert told(tmp_path, [*first.lines, *said, *second.lines]) == []


def test_a_loss_that_falls_early_is_no_resumption(tmp_path: Path) -> None:
    """Few lines, of which the first is the mean of much more than the others."""
    trainer = Trainer(log=100, loss=9.0, falls=40.0)
    assert [whole_s for whole_s, _ in told(tmp_path, trainer.lines)] == [trainer.train_s]


def test_one_that_was_stopped_states_no_time(tmp_path: Path) -> None:
    assert told(tmp_path, Trainer(ends=False, n=250).lines) == []


def test_one_that_was_stopped_and_counts_tokens_states_it_in_its_last_line(tmp_path: Path) -> None:
    ((whole_s, evaluated_s),) = told(tmp_path, Trainer(ends=False, n=255, counts_tokens=True).lines)
    assert (whole_s, evaluated_s) == (pytest.approx(250 + 80.3), pytest.approx([40.1, 40.2]))


@pytest.mark.parametrize("n", [2, 3])
def test_several_trainings_one_after_another(tmp_path: Path, n: int) -> None:
    folds = [Trainer(step_s=1.0 + fold, loss=2.5 + fold) for fold in range(n)]
    found = told(tmp_path, [line for fold in folds for line in fold.lines])
    assert [whole_s for whole_s, _ in found] == [fold.train_s for fold in folds]
    assert all(sum(evaluated_s) == pytest.approx(120.6) for _, evaluated_s in found)


@pytest.mark.parametrize("shift", [0, 1, 3, 12])
def test_trainings_side_by_side_are_not_told_apart(tmp_path: Path, shift: int) -> None:
    """Whose evaluation it is, no line says."""
    one, other = Trainer().lines, Trainer(loss=2.6, step_s=1.1).lines
    behind = [*other[:0], *[""] * shift, *other]
    lines = [line for line in chain.from_iterable(zip([*one, *[""] * shift], behind, strict=True)) if line]
    assert told(tmp_path, lines) == []


@pytest.mark.parametrize("newer", [False, True])
def test_processes_that_print_the_same_count_once(tmp_path: Path, newer: bool) -> None:
    """Each node prints, with times of its own."""
    one, other = Trainer(newer=newer), Trainer(newer=newer, evaluate_s=40.02)
    ((_, evaluated_s),) = told(tmp_path, [line for both in zip(one.lines, other.lines, strict=True) for line in both])
    assert evaluated_s == pytest.approx([40.1, 40.2, 40.3], rel=5e-4)


def test_what_is_printed_again_counts_once(tmp_path: Path) -> None:
    """A script that prints the metrics it is given, which are not rounded."""
    trainer = Trainer(newer=True)
    again = [str({k: v for k, v in entry.items() if k != "step"}) for entry in trainer.history]
    ((_, evaluated_s),) = told(
        tmp_path,
        [line for both in zip(trainer.lines, again, strict=True) for line in (both if "eval" in both[0] else both[:1])]
        + [f"TrainOutput(global_step=300, training_loss=2.1, metrics={again[-1]})"],
    )
    assert len(evaluated_s) == 3


def test_an_evaluation_behind_the_training_is_no_part_of_its_time(tmp_path: Path) -> None:
    trainer = Trainer()
    last = trainer.printed(trainer.speed("eval", 77.7, 1000, 125) | {"eval_loss": 1.5, "epoch": 3.0})
    steps = read(tmp_path, [*trainer.lines, last, last])
    assert steps["evaluation_s"].sum() == pytest.approx(trainer.evaluated_s)
    assert steps["then_evaluation_s"].dropna().tolist() == [pytest.approx(77.7)]


def test_an_evaluation_before_the_first_step_may_be_no_part_of_it(tmp_path: Path) -> None:
    trainer = Trainer()
    first = trainer.printed(trainer.speed("eval", 500.0, 1000, 125) | {"eval_loss": 9.5, "epoch": 0})
    ((_, evaluated_s),) = told(tmp_path, [first, *trainer.lines])
    assert sum(evaluated_s) == pytest.approx(trainer.evaluated_s)


def test_evaluations_alone_are_no_training(tmp_path: Path) -> None:
    trainer = Trainer()
    only = [
        trainer.printed(trainer.speed("eval", 70.0 + k, 1000, 125) | {"eval_loss": 1.5, "epoch": k}) for k in range(5)
    ]
    assert told(tmp_path, only) == []


def test_beside_a_bar_they_count_no_steps(tmp_path: Path) -> None:
    lines = [f" {at:2d}%|## | {at}/100 [{at // 60:02d}:{at % 60:02d}<00:10,  1.00it/s]" for at in range(1, 101)]
    steps = read(tmp_path, [*lines[:50], *Trainer().lines[:-1], *lines[50:]])
    assert set(steps["series"]) == {"|100"}


@pytest.mark.parametrize(
    "line",
    [
        "{'loss': 2.3, 'lr': 0.1, 'epoch': 3}",
        "{'eval_loss': 0.4, 'eval_runtime': 3.0, 'epoch': 1.0}",  # without a speed: no line of the Trainer
        "{'distributed_type': 'MULTI_GPU', 'mixed_precision': 'bf16', 'num_processes': 8, 'epoch': 1}",
        '{"loss": 2.3, "learning_rate": 0.1, "epoch": 0.5}',
        "{'train_runtime': 9.0, 'train_loss': 2.0, 'eval_runtime': 3.0, 'eval_samples_per_second': 3.0, 'epoch': 1.0}",
        "wandb: {'eval/loss': 2.3, 'eval/runtime': 3.2, 'eval/samples_per_second': 3.2, 'train/epoch': 1.0}",
        "{'loss': 2.3, 'learning_rate': 0.1, 'epoch': nan}",
        "{'eval_a_runtime': 1.0, 'eval_b_runtime': 2.0, 'eval_a_samples_per_second': 1.0, 'epoch': 1.0}",
    ],
)
def test_dictionaries_of_other_tools_are_none_of_its_lines(line: str) -> None:
    assert trainer_line(line) is None
