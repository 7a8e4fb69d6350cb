"""Evaluations whose time is stated in logs without a clock, where the time of steps is stated, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import gpudiag as gd
from gpudiag.measures.steps import StepsProfile, measure_steps
from gpudiag.report._render.blocks import Note
from gpudiag.report._sections.steps import steps

N, EACH, STEP_S, EVALUATED_S = 400, 100, 0.5, 30.0


def measured(folder: Path, lines: list[str]) -> StepsProfile:
    (folder / "train.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return measure_steps(gd.load_run(folder, timezone="UTC"))


def litgpt() -> Iterator[str]:
    """litgpt/pretrain.py: a line each 4 iterations, and one behind each evaluation."""
    for at in range(4, N + 1, 4):
        yield (
            f"Epoch 1 | iter {at} step {at // 2} | loss train: 3.123, val: n/a | iter time: {1000 * STEP_S:.2f} ms "
            "(step) remaining time: 0:10:00"
        )
        if at % EACH == 0:
            yield f"iter {at}: val loss 3.2000, val time: {1000 * EVALUATED_S:.2f} ms"


def torchvision() -> Iterator[str]:
    """references/classification/train.py: MetricLogger each 10 of 100 steps of an epoch, and its own test."""
    for epoch in range(N // EACH):
        for at in range(0, EACH, 10):
            yield (
                f"Epoch: [{epoch}]  [{at:2d}/{EACH}]  eta: 0:00:40  lr: 0.1  img/s: 60.0  loss: 2.3 (2.4)  "
                f"acc1: 10.0 (9.0)  time: {STEP_S:.4f}  data: 0.0100  max mem: 5000"
            )
        yield f"Epoch: [{epoch}] Total time: 0:00:50 ({STEP_S:.4f} s / it)"
        yield "Test:   [ 0/20]  eta: 0:00:30  loss: 2.0 (2.0)  acc1: 12 (12)  time: 1.5  data: 0.1  max mem: 5000"
        yield f"Test:  Total time: 0:00:{EVALUATED_S:02.0f}"
        yield "Test:  Acc@1 10.000 Acc@5 30.000"
    yield "Training time 0:05:20"


@pytest.mark.parametrize(("log", "left"), [(litgpt, 0), (torchvision, EACH / 10 - 1)])
def test_evaluations_are_counted_as_stated(tmp_path: Path, log: Callable[[], Iterator[str]], left: float) -> None:
    """``left``: steps behind the last line."""
    said = measured(tmp_path, list(log()))
    evaluated_s, steps_s = N // EACH * EVALUATED_S, (N - left) * STEP_S
    assert said.n_evaluations == N // EACH
    assert said.evaluations_low_s == said.evaluations_s == pytest.approx(evaluated_s)
    assert said.logged_s == pytest.approx(steps_s + evaluated_s)
    assert said.pauses_pct == pytest.approx(100 * evaluated_s / (steps_s + evaluated_s))
    assert said.step_s == pytest.approx(STEP_S)
    assert said.n_unseen > 0, "what else passed outside of steps is unknown"


def test_short_evaluations_add_up(tmp_path: Path) -> None:
    """No clock rounds them: each counts, however short it is beside its steps."""
    lines = [line.replace(f"val time: {1000 * EVALUATED_S:.2f}", "val time: 400.00") for line in litgpt()]
    assert measured(tmp_path, lines).evaluations_s == pytest.approx(N // EACH * 0.4)


@pytest.mark.slow
def test_the_share_is_judged_as_in_other_logs(tmp_path: Path) -> None:
    measured(tmp_path, list(litgpt()))
    diagnosis = gd.diagnose(gd.load_run(tmp_path))
    verdict = diagnosis.verdicts["steps-paused"]
    assert (
        verdict.severity.value == "warning"
        and "It may be more: its lines on steps have no timestamps" in verdict.summary
    )
    said = " ".join(block.text for block in steps(diagnosis.document) if isinstance(block, Note))
    assert "At least 2 min passed outside of steps." in said and "unknown" not in said, "4 evaluations of 30 s"


def fairseq(*, holding: bool) -> Iterator[str]:
    """Its updates per second are those since the line before, with what was evaluated in between."""
    for at in range(10, N + 1, 10):
        took_s = 10 * STEP_S + (EVALUATED_S if holding and at % EACH == 10 and at > 10 else 0.0)
        yield (
            f"| INFO | train_inner | epoch 001: {at} / 900 loss=3.1, wps=900, ups={10 / took_s:.4f}, wpb=450, bsz=8, "
            f"num_updates={at}, lr=0.0001"
        )
        if at % EACH == 0:
            yield f"evaluation done in {EVALUATED_S:.0f} s, valid loss 3.2"


def test_stated_times_that_hold_the_evaluation_are_not_added_to(tmp_path: Path) -> None:
    said = measured(tmp_path, list(fairseq(holding=True)))
    assert said.logged_s == pytest.approx(N * STEP_S + N // EACH * EVALUATED_S, rel=1e-3)
    assert said.evaluations_s == pytest.approx(N // EACH * EVALUATED_S)
    assert measured(tmp_path, list(fairseq(holding=False))).logged_s == pytest.approx(said.logged_s, rel=1e-3)


def test_a_speed_of_unknown_meaning_is_not_added_to(tmp_path: Path) -> None:
    """Whether it holds the evaluation is open."""
    lines = [f"step {at} | loss 3.1 | {1 / STEP_S:.2f} it/s" for at in range(10, N + 1, 10)]
    lines.insert(20, f"evaluation done in {EVALUATED_S:.0f} s, valid loss 3.2")
    said = measured(tmp_path, lines)
    assert said.logged_s == pytest.approx(N * STEP_S) and said.pauses_s == 0 and said.n_unseen > 0


def trainer(*, buffered: bool) -> Iterator[str]:
    """Hugging Face's Trainer: its bar, and dictionaries, which Python holds back where stdout is a file."""
    printed = []
    for at in range(N + 1):
        before_s = at * STEP_S + (at - 1) // EACH * EVALUATED_S if at else 0.0
        yield f"{100 * at // N:3d}%|###| {at}/{N} [{clock(before_s)}<01:00,  2.00it/s]"
        if at and at % EACH == 0:
            epoch = f"'epoch': {at / EACH:.2f}"
            speed = f"'eval_runtime': {EVALUATED_S}, 'eval_samples_per_second': 9.0"
            said = [
                f"{{'loss': 2.5, 'grad_norm': 1.2, 'learning_rate': 1e-05, {epoch}}}",
                f"{{'eval_loss': 1.9, {speed}, {epoch}}}",
            ]
            printed += said
            yield from [] if buffered else said
            yield f"{100 * at // N:3d}%|###| {at}/{N} [{clock(before_s + EVALUATED_S)}<01:00,  2.00it/s]"
    yield from printed if buffered else []


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60:02}:{int(seconds) % 60:02}"


@pytest.mark.parametrize("buffered", [False, True])
def test_lines_that_a_buffer_held_back_are_of_no_time_behind_the_steps(tmp_path: Path, *, buffered: bool) -> None:
    said = measured(tmp_path, list(trainer(buffered=buffered)))
    paused_s = N // EACH * EVALUATED_S
    assert said.logged_s == pytest.approx(N * STEP_S + paused_s, abs=1)
    assert said.pauses_s == pytest.approx(paused_s, abs=4)
    assert said.evaluations_s == (0 if buffered else pytest.approx(paused_s, abs=4))
