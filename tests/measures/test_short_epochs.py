"""Evaluations and unlogged checkpoints between few steps of a bar that shows whole seconds, as Hugging Face's does."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import gpudiag as gd
from gpudiag.measures.steps import measure_steps


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60:02d}:{int(seconds) % 60:02d}"


def written(path: Path, n: int, step_s: float, every: int, evaluation_s: float, save_s: float) -> tuple[float, float]:
    """A log, and how long it is and what passed outside of steps, by the times that it was made of."""
    draw, at, paused_s, lines = random.Random(n), 0.0, 0.0, [f"  0%|   | 0/{n} [00:00<?, ?it/s]"]
    for step in range(1, n + 1):
        at += step_s * draw.gauss(1, 0.03)
        bar = f"{100 * step // n:3d}%|   | {step}/{n} [{{}}<99:00, {1 / step_s:5.2f}it/s]"
        lines.append(bar.format(clock(at)))
        if step % every == 0:
            each_s = evaluation_s / 10
            lines += [f"{10 * k}%|   | {k}/10 [{clock(k * each_s)}<00:00, {1 / each_s:5.2f}it/s]" for k in range(1, 11)]
            at += evaluation_s
            lines += [f"{{'eval_loss': 2.0, 'eval_runtime': {evaluation_s}, 'epoch': 1.0}}", bar.format(clock(at))]
            at += save_s
            paused_s += evaluation_s + save_s
    path.write_text("\n".join(lines) + "\n")
    return at - save_s, paused_s - save_s  # behind the last evaluation nothing shows a save


@pytest.mark.parametrize(
    ("n", "step_s", "every", "evaluation_s", "save_s"),
    [
        (2000, 0.25, 50, 3.0, 1.5),
        (2000, 0.25, 50, 10.0, 3.0),
        (1000, 0.6, 50, 10.0, 4.0),
        (600, 1.5, 20, 10.0, 0.2),
        (2000, 0.25, 200, 3.0, 0.0),
    ],
)
def test_what_follows_an_evaluation_unlogged_is_no_time_of_steps(
    tmp_path: Path, n: int, step_s: float, every: int, evaluation_s: float, save_s: float
) -> None:
    logged_s, paused_s = written(tmp_path / "train.log", n, step_s, every, evaluation_s, save_s)
    said = measure_steps(gd.load_run(tmp_path))
    assert said.step_s == pytest.approx(step_s, rel=0.04)
    assert said.pauses_pct == pytest.approx(100 * paused_s / logged_s, abs=2)
    assert said.n_pauses == n // every and said.evaluations_s == pytest.approx(n // every * evaluation_s, rel=0.05)
