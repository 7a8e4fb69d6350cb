"""Times that lines on epochs state: of the epoch, since the start, of a part of it, or left."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import gpudiag as gd
from gpudiag.measures.steps import measure_steps

EPOCH_S = [64.0, 61.5, 62.0, 61.0, 62.5, 61.5, 62.0, 63.0]
SO_FAR_S = [sum(EPOCH_S[: k + 1]) for k in range(len(EPOCH_S))]
LEFT_S = [SO_FAR_S[-1] - so_far_s for so_far_s in SO_FAR_S]
USUAL_S = 62.0


def clock(seconds: float) -> str:
    return f"{int(seconds) // 3600}:{int(seconds) // 60 % 60:02}:{int(seconds) % 60:02}"


def columns(path: Path, form: Callable[[int], str]) -> dict[str, list[float]]:
    """The times of the rows of a log with these lines, by column, without those of which none is known."""
    (path / "train.log").write_text("".join(f"{form(k)}\n" for k in range(len(EPOCH_S))))
    steps = gd.load_run(path).steps
    return {name: steps[name].tolist() for name in {"step_s", "elapsed_s"} & {*steps.dropna(axis=1, how="all")}}


OWN: dict[str, Callable[[int], str]] = {
    "elapsed, which does not grow": lambda k: f"Epoch {k + 1}/8 loss 0.5 elapsed {EPOCH_S[k]}s",
    "behind the time left": lambda k: f"Epoch {k + 1}/8 loss 1 ETA time: {clock(LEFT_S[k])} epoch time: {EPOCH_S[k]}s",
    "behind the time since the start": lambda k: f"Epoch {k + 1} total time: {SO_FAR_S[k]}s epoch time: {EPOCH_S[k]}s",
    "before the time since the start": lambda k: f"Epoch {k + 1} time {EPOCH_S[k] / 60:.4f} min elapsed {SO_FAR_S[k]}s",
    "behind the wait for data": lambda k: f"Epoch {k + 1} loss 1 data time: 4.1s, batch time 0.3s, took {EPOCH_S[k]}s",
    "behind the mean of a batch": lambda k: f"Epoch {k + 1} average time 0.31s per batch, took {EPOCH_S[k]}s",
    "before the time of a step": lambda k: f"Epoch {k + 1} | loss 0.5 | time: {EPOCH_S[k]}s | step time: 0.3s",
    "in minutes and seconds": lambda k: f"Epoch: {k + 1:02} | Epoch Time: {EPOCH_S[k] // 60:.0f}m {EPOCH_S[k] % 60}s",
    "in minutes and seconds, tight": lambda k: f"epoch {k + 1} took {EPOCH_S[k] // 60:.0f}m{EPOCH_S[k] % 60}s, loss 1",
    "behind the loss of an evaluation": lambda k: f"Epoch [{k + 1}/8], Loss: 0.5, Val Loss: 0.6, Time: {EPOCH_S[k]}s",
    "beside its evaluation's": lambda k: f"epoch={k + 1} train_loss=0.5 val_time=12.1s epoch_time={EPOCH_S[k]}s",
    "behind how many were right": lambda k: f"Epoch {k + 1}: loss 0.5 acc 900/1000 (90%) time {EPOCH_S[k]}s",
    "in words": lambda k: f"Epoch {k + 1} time: 0 hours, {EPOCH_S[k] // 60:.0f} minutes, {EPOCH_S[k] % 60} seconds",
}
SINCE_START: dict[str, Callable[[int], str]] = {
    "elapsed": lambda k: f"Epoch {k + 1}/8 | train loss 0.5 | elapsed {SO_FAR_S[k]}s",
    "elapsed and left": lambda k: f"Epoch {k + 1}/8 loss 0.5 elapsed {SO_FAR_S[k] / 60:.6f} min eta {clock(LEFT_S[k])}",
    "total time": lambda k: f"Epoch {k + 1}/8 loss 0.5 total time: {SO_FAR_S[k]} s",
    "time elapsed": lambda k: f"Epoch {k + 1}/8 loss 0.5 Time elapsed: {SO_FAR_S[k]} s",
    "time": lambda k: f"Epoch {k + 1}/8 loss 0.5 time {SO_FAR_S[k]} s",
    "beside timestamps": lambda k: f"2026-03-01 10:{k:02}:00 Epoch {k + 1}/8 loss 0.5 elapsed {SO_FAR_S[k]} s",
}


@pytest.mark.parametrize("name", OWN)
def test_the_time_of_an_epoch(tmp_path: Path, name: str) -> None:
    assert columns(tmp_path, OWN[name]) == {"step_s": pytest.approx(EPOCH_S, abs=0.01)}
    assert measure_steps(gd.load_run(tmp_path)).step_s == pytest.approx(USUAL_S, abs=0.01)


@pytest.mark.parametrize("name", SINCE_START)
def test_the_time_since_the_start(tmp_path: Path, name: str) -> None:
    assert columns(tmp_path, SINCE_START[name]) == {"elapsed_s": pytest.approx(SO_FAR_S, abs=0.01)}
    if name != "beside timestamps":
        assert measure_steps(gd.load_run(tmp_path)).step_s == pytest.approx(USUAL_S, abs=0.5)


@pytest.mark.parametrize(
    "form",
    [
        lambda k: f"Epoch {k + 1}/8 | loss 0.5 | Remaining time: {clock(LEFT_S[k])}",
        lambda k: f"Epoch {k + 1}/8 | loss 0.5 | time: {clock(LEFT_S[k])} left",
        lambda k: f"Epoch {k + 1}/8 | loss 0.5 | est. time: {clock(LEFT_S[k])}",
        lambda k: f"Epoch {k + 1}/8 | loss 0.5 | batch time: 0.{k + 1}s | data time 0.1s",
        lambda k: f"Epoch {k + 1}/8 | loss 0.5 | time: 0.{k + 1}s/batch",
        lambda k: f"Epoch {k // 4 + 1}/2 [{2 * (k % 4) + 1}/8] loss: 0.5 time: 0.3{k}s",
        lambda k: f"Epoch [{k // 4 + 1}][{2 * (k % 4) + 1}/8] loss: 0.5 time: 0.3{k}s",
        lambda k: f"Epoch: {k // 4 + 1} | {2 * (k % 4) + 1}/8 | loss: 0.5 | time: 0.3{k}s",
        lambda k: f"Epoch {k // 4 + 1} ({25 * (k % 4)}%) loss: 0.5 elapsed {k % 4 + 1}.0s",
        lambda k: f"Train Epoch: {k // 4 + 1} [{64 * k}/640 ({10 * k}%)]\tLoss: 0.512345\tTime: 3.{k}s",
        lambda k: f"Epoch {k + 1}: saving model took 1.{k}s",
        lambda k: f"Epoch {k + 1} checkpoint saved, time 1.{k}s",
        lambda k: f"Epoch {k + 1}/8 val: loss 0.5 acc 0.9 time {EPOCH_S[k]}s",
        lambda k: f"Epoch {k + 1}/8 | loss 0.5 | took {SO_FAR_S[k]}s",  # which grows, though it is named otherwise
    ],
)
def test_what_is_no_time_of_the_epoch(tmp_path: Path, form: Callable[[int], str]) -> None:
    assert columns(tmp_path, form) == {}


def test_a_time_that_stays_the_same_is_that_of_the_epoch(tmp_path: Path) -> None:
    """It is rounded, and does not grow."""
    assert columns(tmp_path, lambda k: f"Epoch {k + 1}/8 time: 1.1 min") == {"step_s": pytest.approx([66.0] * 8)}


def test_each_training_of_a_log_has_a_start(tmp_path: Path) -> None:
    said = columns(tmp_path, lambda k: f"Epoch {k % 4 + 1}/4 loss 0.5 elapsed {60 * (k % 4 + 1)} s")
    assert said == {"elapsed_s": [60.0, 120.0, 180.0, 240.0] * 2}


@pytest.mark.parametrize(
    "other", ["evaluation took 12.1s", "validation time: 12.1s", "saving the checkpoint took 12.1s"]
)
def test_other_work_is_not_taken_off_a_time_that_is_stated(tmp_path: Path, other: str) -> None:
    """Whether the stated time holds it is open."""
    lines = [f"Epoch {k + 1} took {seconds}s\nEpoch {k + 1} {other}\n" for k, seconds in enumerate(EPOCH_S)]
    (tmp_path / "train.log").write_text("".join(lines))
    said = measure_steps(gd.load_run(tmp_path))
    assert said.step_s == pytest.approx(USUAL_S, abs=0.01) and said.n_unseen == len(EPOCH_S) - 1


def of_steps(path: Path, form: Callable[[int, int], str]) -> dict[str, list[float]]:
    """The same for two epochs of 60 steps of half a second, a line each 10, with 20 s between them."""
    lines = [form(epoch, step) for epoch in (1, 2) for step in range(10, 61, 10)]
    (path / "train.log").write_text("".join(f"{line}\n" for line in lines))
    steps = gd.load_run(path).steps
    return {name: steps[name].tolist() for name in {"step_s", "elapsed_s"} & {*steps.dropna(axis=1, how="all")}}


@pytest.mark.parametrize("name", ["elapsed", "Time", "total time"])
def test_a_time_of_steps_since_the_start_or_since_their_epoch(tmp_path: Path, name: str) -> None:
    of_epoch = of_steps(tmp_path, lambda e, k: f"Epoch [{e}/2], Step [{k}/60], Loss: 2.3, {name}: {k / 2:.2f}s")
    assert of_epoch == {"elapsed_s": pytest.approx([*range(5, 31, 5)] * 2)}
    of_steps(tmp_path, lambda e, k: f"Epoch [{e}/2], Step [{k}/60], Loss: 2.3, {name}: {k / 2 + 50 * (e - 1):.2f}s")
    said = measure_steps(gd.load_run(tmp_path))
    assert (said.step_s, said.pauses["paused_s"].tolist()) == (pytest.approx(0.5), [pytest.approx(20)])


def test_a_time_of_each_step(tmp_path: Path) -> None:
    took = of_steps(tmp_path, lambda e, k: f"step {6 * (e - 1) + k // 10} loss 2.3 time {0.5 + k / 1000:.2f}s")
    assert took == {"step_s": pytest.approx([0.5 + k / 1000 for k in range(10, 61, 10)] * 2, abs=0.01)}


def test_a_time_of_a_step_or_of_all_since_the_line_before_is_left(tmp_path: Path) -> None:
    assert not of_steps(tmp_path, lambda e, k: f"Epoch [{e}/2], Step [{k}/60], Loss: 2, Time: {5 + k / 1000:.3f}s")
