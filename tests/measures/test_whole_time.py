"""Trainings of Hugging Face's Trainer that state their time as a whole: how much of it were evaluations."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from verdicts import verdict_of

import gpudiag as gd
from gpudiag.errors import NotMeasurable
from gpudiag.measures._ends.logged import log_ends
from gpudiag.measures.steps import StepsProfile, measure_steps
from tests.readers.steps.written_by_trainer import Trainer


def write(folder: Path, lines: list[str], name: str = "train.out") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def measured(folder: Path) -> StepsProfile:
    return measure_steps(gd.load_run(folder, timezone="UTC"))


def bar(trainer: Trainer) -> list[str]:
    """tqdm's, which stands still while a bar without a name evaluates."""
    lines, at_s = [], 0.0
    for step in range(trainer.total + 1):
        at_s += trainer.step_s if step else 0.0
        lines.append(f"{100 * step // trainer.total:3d}%|## | {step}/{trainer.total} [{clock(at_s)}<00:10,  1.00it/s]")
        if step and step % trainer.evaluate == 0:
            took_s = trainer.evaluation_s(step)
            lines += [f"{2 * k:3d}%|# | {k}/50 [{clock(k * took_s / 50)}<00:01,  1.25it/s]" for k in range(1, 51)]
            at_s += took_s
    return lines


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60:02d}:{int(seconds) % 60:02d}"


def check(said: StepsProfile, trainer: Trainer, n: int = 1, *, rel: float = 1e-6) -> None:
    assert said.n_trainings == n and said.n_evaluations == 3 * n
    assert said.evaluations_s == said.evaluations_low_s == pytest.approx(n * trainer.evaluated_s, rel=rel)
    assert said.logged_s == pytest.approx(n * trainer.train_s, rel=rel)
    assert said.pauses_pct == pytest.approx(100 * trainer.evaluated_s / trainer.train_s, rel=rel)


def test_of_what_was_printed(tmp_path: Path) -> None:
    trainer = Trainer()
    write(tmp_path, trainer.lines)
    said = measured(tmp_path)
    check(said, trainer)
    unknown = (
        said.n_steps, said.step_s, said.p95_step_s, said.productive_pct, said.goodput_pct, said.ettr_pct,
        said.resumption_pct, said.first_s, said.down_s, said.late_ratio, said.loader_pct, said.startup_s,
        said.between_epochs_s,
    )  # fmt: skip
    assert all(map(math.isnan, unknown)) and said.course.empty and said.n_unseen == 1


def test_of_its_history(tmp_path: Path) -> None:
    trainer = Trainer(newer=True)
    trainer.save(tmp_path)
    said = measured(tmp_path)
    check(said, trainer)
    assert said.n_steps == 300 and said.pauses["after_step"].tolist() == [300, 200, 100]
    assert math.isnan(said.step_s) and math.isnan(said.late_ratio)


def test_told_of_often_it_counts_once(tmp_path: Path) -> None:
    """In what it printed, in each checkpoint, in a copy, and by another node with a time of its own."""
    trainer = Trainer(newer=True)
    write(tmp_path, trainer.lines)
    write(tmp_path, Trainer(newer=True, evaluate_s=40.05).lines, "node-1.out")
    for folder in (tmp_path, tmp_path / "copy", tmp_path / "checkpoint-300"):
        trainer.save(folder)
    for n in (100, 200):
        Trainer(n=n, newer=True, ends=False).save(tmp_path / f"checkpoint-{n}")
    check(measured(tmp_path), trainer)


def test_other_trainings_count_each(tmp_path: Path) -> None:
    """Of two seeds, alike to a second in seven minutes."""
    for seed in range(2):
        write(tmp_path / f"seed-{seed}", Trainer(evaluate_s=40.0 + seed).lines)
    assert measured(tmp_path).n_trainings == 2
    write(tmp_path / "seed-0", [*Trainer().lines, *Trainer(step_s=2.0, loss=2.6).lines])
    assert measured(tmp_path).trainings["training"].str.contains("train.out (2)", regex=False).sum() == 1


@pytest.mark.parametrize("lines", [Trainer(ends=False).lines, Trainer(begun=150).lines[:10]])
def test_without_its_time_nothing_is_told(tmp_path: Path, lines: list[str]) -> None:
    write(tmp_path, lines)
    with pytest.raises(NotMeasurable, match="have no clock"):
        measured(tmp_path)


def test_a_history_of_a_resumed_training(tmp_path: Path) -> None:
    """Its time is that of the last call, and its evaluations are those of all; what was printed tells of the call."""
    trainer = Trainer(begun=150)
    trainer.save(tmp_path)
    with pytest.raises(NotMeasurable, match="have no clock"):
        measured(tmp_path)
    write(tmp_path, trainer.lines)
    said = measured(tmp_path)
    assert said.evaluations_s == pytest.approx(40.2 + 40.3) and said.logged_s == pytest.approx(trainer.train_s)


def test_an_evaluation_behind_it_is_a_pause(tmp_path: Path) -> None:
    trainer = Trainer()
    last = trainer.printed(trainer.speed("eval", 77.7, 1000, 125) | {"eval_loss": 1.5, "epoch": 3.0})
    write(tmp_path, [*trainer.lines, last])
    said = measured(tmp_path)
    assert said.logged_s == pytest.approx(trainer.train_s + 77.7)
    assert said.evaluations_s == pytest.approx(trainer.evaluated_s + 77.7)


@pytest.mark.slow
def test_a_bar_tells_more(tmp_path: Path) -> None:
    """It counts; what was printed adds no training, and the history names the pauses in it."""
    trainer = Trainer()
    write(tmp_path, trainer.lines, "slurm-1.out")
    write(tmp_path, bar(trainer), "slurm-1.err")
    said = measured(tmp_path)
    assert (said.n_trainings, said.step_s, said.n_evaluations) == (1, pytest.approx(1.0, abs=0.05), 0)
    trainer.save(tmp_path)
    said = measured(tmp_path)
    assert (said.n_trainings, said.n_evaluations) == (1, 2), "the third lies behind the bar's last step"
    assert said.evaluations_low_s == said.evaluations_s == pytest.approx(80.3, abs=1)


def test_a_history_of_another_training_names_no_pause(tmp_path: Path) -> None:
    write(tmp_path, bar(Trainer()), "slurm-1.err")
    Trainer(evaluate=70).save(tmp_path)
    assert measured(tmp_path).n_evaluations == 0


@pytest.mark.parametrize("beside", ["checkpoint", "bar"])
def test_a_history_with_a_clock_counts_once(tmp_path: Path, beside: str) -> None:
    trainer = Trainer(counts_tokens=True)
    trainer.save(tmp_path)
    if beside == "bar":
        write(tmp_path, bar(trainer), "slurm-1.err")
    else:
        Trainer(n=200, ends=False, counts_tokens=True).save(tmp_path / "checkpoint-200")
    said = measured(tmp_path)
    assert (said.n_trainings, said.n_twice) == (1, 1)
    assert said.step_s == pytest.approx(1.0, abs=0.05)
    assert said.logged_s == pytest.approx(300 + (120.6 if beside == "checkpoint" else 80.3), abs=1.5)


def test_a_history_with_a_clock_tells_of_a_resumption(tmp_path: Path) -> None:
    Trainer(begun=150, counts_tokens=True).save(tmp_path)
    said = measured(tmp_path)
    assert (said.n_resumed, said.n_down_unknown) == (1, 1)
    assert said.step_s == pytest.approx(1.0) and said.evaluations_s == pytest.approx(120.6)


def test_an_error_in_such_a_log_is_its_end(tmp_path: Path) -> None:
    """But not one behind which it went on."""
    lines = Trainer(ends=False).lines
    error = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
    write(tmp_path, [*lines[:10], error, *lines[10:]])
    assert not any(len(end.errors) for end in log_ends(gd.load_run(tmp_path)))
    write(tmp_path, [*lines, error])
    (end,) = log_ends(gd.load_run(tmp_path))
    assert len(end.errors) == 1


@pytest.mark.slow
def test_the_share_of_evaluations_is_judged(tmp_path: Path) -> None:
    write(tmp_path, Trainer().lines)
    found = gd.diagnose(gd.load_run(tmp_path))
    paused = found.verdicts["steps-paused"]
    assert paused.status.value == "found" and paused.severity.value == "warning"
    assert "in 3 pauses. The longest took 40 s. Evaluations took" in paused.summary
    assert all(found.verdicts[name].status.value == "not_assessed" for name in ("steps-lost", "steps-slower"))
    assert "It states that all of it took 7 min 13 s and its evaluations 2 min 01 s" in found.to_markdown()
    write(tmp_path, Trainer(evaluate_s=1.0).lines)
    few = verdict_of(gd.load_run(tmp_path), "steps-paused")
    assert few.status.value == "not_assessed", "checkpoints and waits may be in the rest"
