"""Two trainings without trials, compared by the steps of their logs."""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import gpudiag as gd
from gpudiag.comparison.compare import Comparison

BEGIN = datetime(2026, 3, 10, 9, tzinfo=UTC)


PLAIN = "step {n}/900 loss 2.1"


def written(folder: Path, name: str, step_s: float, line: str = PLAIN, seed: int = 1, n: int = 300) -> Path:
    """A log of steps of about that length, a line every ten, with an evaluation of 30 s in the middle."""
    drawn, at, lines = random.Random(seed), 0.0, []
    for step in range(1, n + 1):
        at += step_s * drawn.uniform(0.9, 1.1)
        if step % 10 == 0:
            lines.append(f"{BEGIN + timedelta(seconds=at):%Y-%m-%d %H:%M:%S.%f} {line.format(n=step)}")
        if step == n // 2:
            at += 30.0
            lines.append(f"{BEGIN + timedelta(seconds=at):%Y-%m-%d %H:%M:%S.%f} evaluation finished eval_loss 2.0")
    path = folder / name
    path.mkdir()
    (path / "train.log").write_text("\n".join(lines) + "\n")
    return path


def compared(one: Path, other: Path) -> Comparison:
    made = gd.compare(one, other)
    assert isinstance(made, Comparison)
    return made


@pytest.mark.slow
def test_the_time_of_a_step_is_compared(tmp_path: Path) -> None:
    found = compared(written(tmp_path, "a", 2.0), written(tmp_path, "b", 1.6, seed=2))
    quantity = found.quantity("logged_step_time")
    assert found.leader is quantity and found.verdict == "faster"
    assert quantity.low <= 0.8 <= quantity.high and quantity.high - quantity.low < 0.05
    assert (quantity.baseline, quantity.experiment) == (pytest.approx(2.0, rel=0.02), pytest.approx(1.6, rel=0.02))
    assert (quantity.n_baseline, quantity.n_experiment) == (29, 29)
    assert "run to run is not in it" in str(quantity.note)


@pytest.mark.slow
def test_the_same_training_is_equivalent(tmp_path: Path) -> None:
    assert compared(written(tmp_path, "a", 2.0), written(tmp_path, "b", 2.0, seed=2)).verdict == "equivalent"


@pytest.mark.slow
def test_steps_of_other_tokens_are_other_work(tmp_path: Path) -> None:
    a = written(tmp_path, "a", 2.0, "step {n}/900 loss 2.1 tokens/s: 8,192")
    b = written(tmp_path, "b", 2.0, "step {n}/900 loss 2.1 tokens/s: 16,384", seed=2)
    found = compared(a, b)
    assert found.verdict == "invalid" and found.reasons[0].check == "same-unit"
    assert "times the tokens of one of a" in str(found.reasons[0].evidence)
    for folder in (a, b):
        (folder / "run.toml").write_text("[training]\ntokens_per_step = 16384\n")
    assert compared(a, b).verdict == "equivalent"


@pytest.mark.slow
def test_epochs_are_no_steps(tmp_path: Path) -> None:
    a = written(tmp_path, "a", 2.0)
    b = written(tmp_path, "b", 2.0, "Epoch {n}/900 finished, loss 2.1", seed=2)
    found = compared(a, b)
    assert found.leader is None and "share no measure of speed" in str(found.headline)


@pytest.mark.slow
def test_few_lines_are_described_and_not_tested(tmp_path: Path) -> None:
    few = compared(written(tmp_path, "a", 2.0, n=60), written(tmp_path, "b", 1.0, seed=2, n=60))
    quantity = few.quantity("logged_step_time")
    assert quantity.ratio == pytest.approx(0.5, rel=0.05) and math.isnan(quantity.low)
    assert {check.check: check.status for check in few.gate}["sample-size"] == "fail"
