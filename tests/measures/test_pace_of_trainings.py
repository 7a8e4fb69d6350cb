"""Pauses of trainings whose pace changes, whose epochs evaluate, or wait for their first batch."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from verdicts import verdict_of

import gpudiag as gd
from gpudiag.measures._steps.pace import BESIDE, pace_s
from gpudiag.measures.steps import StepsProfile, measure_steps

SAVE_S = 30.0


def at(seconds: float) -> str:
    return f"{datetime(2026, 3, 1, 10) + timedelta(seconds=seconds):%Y-%m-%d %H:%M:%S.%f}"


def measured(folder: Path, lines: list[str]) -> StepsProfile:
    (folder / "train.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return measure_steps(gd.load_run(folder, timezone="UTC"))


def plain(step: int, step_s: float) -> str:
    return f"INFO step {step}/1200 loss 2.31"


def megatron(step: int, step_s: float) -> str:
    return f"iteration {step:8d}/    1200 | elapsed time per iteration (ms): {1000 * step_s:.1f} | lm loss: 2.3E+00 |"


@pytest.mark.parametrize("line", [plain, megatron])
@pytest.mark.parametrize("every", [10, 25])
@pytest.mark.parametrize(("early_s", "late_s"), [(2.0, 4.0), (4.0, 2.0), (1.0, 1.0)])
def test_a_pause_is_what_steps_of_the_pace_around_it_leave(
    tmp_path: Path, line: Callable[[int, float], str], every: int, early_s: float, late_s: float
) -> None:
    """The pace changes at step 750, between two of the 11 checkpoints of 30 s."""
    lines, now_s = [], 0.0
    for step in range(1, 1201):
        step_s = early_s if step <= 750 else late_s
        now_s += step_s
        if step % every == 0:
            lines.append(f"{at(now_s)} {line(step, step_s)}")
        if step % 100 == 0 and step < 1200:
            lines.append(f"{at(now_s)} checkpoint: step_{step}.pt")
            now_s += SAVE_S
    said = measured(tmp_path, lines)
    assert said.n_pauses == 11 and said.pauses_s == pytest.approx(11 * SAVE_S, abs=1.0)
    assert said.checkpoint_s == pytest.approx(SAVE_S, abs=0.1)


def test_where_the_pace_changes_at_a_pause_it_is_the_mean_of_both() -> None:
    took = np.array([20.0] * 12 + [40.0] * 12)
    n, plain_ones = np.full(24, 10.0), np.ones(24, bool)
    plain_ones[12] = False  # with a pause
    pace = pace_s(took, n, plain_ones, coarse=False)
    assert pace[12] == pytest.approx(3.0)
    assert pace[:12] == pytest.approx(2.0) and pace[14:] == pytest.approx(4.0)


def test_fewer_than_half_of_the_intervals_around_one_do_not_move_its_pace() -> None:
    took, n = np.full(40, 20.0), np.full(40, 10.0)
    took[20 : 20 + BESIDE - 1] = 90.0
    assert pace_s(took, n, np.ones(40, bool), coarse=False) == pytest.approx(2.0)


@pytest.mark.parametrize("print_freq", [10, 20, 50, 100, 250, 500])
def test_an_evaluation_between_epochs_is_none_of_their_steps(tmp_path: Path, print_freq: int) -> None:
    """torchvision: 4 epochs of 500 steps of 0.3 s, each with an evaluation of 60 s and 2 s more that nothing tells of;
    up to print_freq 20 more lines than an epoch's first state the time of just their steps.
    """
    lines, now_s = [], 0.0
    for epoch in range(4):
        for step in range(500):
            now_s += 0.3
            if step % print_freq == 0 or step == 499:
                lines.append(
                    f"{at(now_s)} Epoch: [{epoch}]  [{step:>3d}/500]  eta: 0:02:00  lr: 0.1  loss: 6.9 (7.0)  "
                    "time: 0.3000  data: 0.0100  max mem: 20000"
                )
        for batch in range(0, 201, 50):
            lines.append(f"{at(now_s + 0.3 * batch)} Test:   [{batch:>3d}/200]  eta: 0:01:00  time: 0.3000")
        now_s += 62.0
    said = measured(tmp_path, lines)
    assert said.n_pauses == said.n_evaluations == 4
    assert said.pauses_s == pytest.approx(3 * 62 + 60, abs=0.5)
    assert said.evaluations_low_s == said.evaluations_s == pytest.approx(4 * 60, abs=0.5)


def test_a_stated_wait_for_the_first_batch_is_no_checkpoint(tmp_path: Path) -> None:
    """timm: the first batch of each epoch comes after 40 s, beside the word of a checkpoint that took no time."""
    lines, now_s = [], 0.0
    for epoch in range(4):
        took = waited = 0.0
        for step in range(300):
            wait_s = 40.0 if step == 0 else 0.0
            now_s, took, waited = now_s + wait_s + 0.3, took + wait_s + 0.3, waited + wait_s + 0.005
            if step % 50 == 0 or step == 299:
                lines.append(
                    f"{at(now_s)} Train: {epoch} [{step:>4d}/300 ({100 * step / 299:>3.0f}%)]  Loss: 6.9 (6.9)  "
                    f"Time: {wait_s + 0.3:.3f}s, {256 / (wait_s + 0.3):.2f}/s  ({took / (step + 1):.3f}s, "
                    f"{256 * (step + 1) / took:.2f}/s)  LR: 1.0e-03  Data: {wait_s + 0.005:.3f} "
                    f"({waited / (step + 1):.3f})"
                )
        lines.append("Current checkpoints:")
    said = measured(tmp_path, lines)
    assert said.pauses_s == 0.0 and said.checkpoints_s == 0.0
    assert said.loader_pct == pytest.approx(100 * 4 * (40 + 300 * 0.005) / (4 * (40 + 300 * 0.3)), abs=1)


def test_a_checkpoint_before_a_failure_is_not_lost(tmp_path: Path) -> None:
    """Steps of 1 s; 25 s for the checkpoint of step 300, a failure at step 304, 500 s down, and again from step 300."""
    lines = [f"{at(step)} step {step}/600 loss 2.1" for step in range(10, 301, 10)]
    lines += [f"{at(325)} checkpoint saved in 25.0 s", "RuntimeError: NCCL error: unhandled system error"]
    lines += ["Resumed from the checkpoint of step 300"]
    lines += [f"{at(829 + step)} step {300 + step}/600 loss 2.1" for step in range(10, 301, 10)]
    said = measured(tmp_path, lines)
    assert said.n_resumed == 1 and said.down_s == pytest.approx(500 + 4)  # of the steps 301 to 304 no line tells
    assert said.checkpoints_low_s == said.checkpoints_s == said.pauses_s == pytest.approx(25)
    assert said.logged_s == pytest.approx(829 + 300 - 10)


def test_a_checkpoint_of_an_attempt_that_repeats_steps_is_not_lost(tmp_path: Path) -> None:
    """The same, with a failure at step 325 that repeats the steps from 301 on."""
    lines = [f"{at(step)} step {step}/600 loss 2.1" for step in range(10, 301, 10)]
    lines += [f"{at(325)} checkpoint saved in 25.0 s"]
    lines += [f"{at(25 + step)} step {step}/600 loss 2.1" for step in range(310, 321, 10)]
    lines += [f"{at(370)} checkpoint saved in 25.0 s", "RuntimeError: NCCL error: unhandled system error"]
    lines += ["Resumed from the checkpoint of step 300"]
    lines += [f"{at(870 + step)} step {300 + step}/600 loss 2.1" for step in range(10, 301, 10)]
    said = measured(tmp_path, lines)
    assert said.n_resumed == 1 and said.n_repeated == 20
    assert said.checkpoints_low_s == said.checkpoints_s == said.pauses_s == pytest.approx(50)
    assert said.down_s == pytest.approx(880 - 345 - 10 - 25) and said.logged_s == pytest.approx(870 + 300 - 10)
    assert said.resumption_s == pytest.approx(said.down_s + 20)


@pytest.mark.parametrize(
    ("told", "remedy", "other"),
    [("checkpoint: a.pt", "Save less often", "evaluat"), ("Evaluating", "Evaluate less often", "heckpoint")],
)
def test_what_is_not_in_the_pauses_is_not_advised(tmp_path: Path, told: str, remedy: str, other: str) -> None:
    lines, now_s = [], 0.0
    for step in range(1, 1001):
        now_s += 1.0
        if step % 10 == 0:
            lines.append(f"{at(now_s)} step {step}/1000 loss 2.1")
        if step % 100 == 0:
            lines.append(f"{at(now_s)} {told}")
            now_s += SAVE_S
    (tmp_path / "train.log").write_text("\n".join(lines), encoding="utf-8")
    paused = verdict_of(gd.load_run(tmp_path, timezone="UTC"), "steps-paused")
    assert paused.remedy.startswith(remedy) and other not in paused.remedy
