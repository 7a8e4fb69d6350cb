"""How long evaluations and checkpoints took, as the lines between those on steps state it."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from pathlib import Path

import pytest

import gpudiag as gd
from gpudiag.measures.steps import StepsProfile, measure_steps
from gpudiag.readers._steps.other_work import OtherWork

BEGIN = datetime(2026, 1, 5, 8)


def stated(*lines: tuple[str, float], work: str) -> float:
    """Seconds of the work by these lines and their moments."""
    taker = OtherWork()
    return sum(taker.told_by(line, moment_s).get(work, 0.0) for line, moment_s in lines)


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        ("Finished saving the checkpoint (or staging if async is enabled)in 12.00 seconds.", 12.0),
        ("Saved checkpoint ckpt/1_300.pt (epoch 1 @ 300 updates, score 4.1) (writing took 12.5 seconds)", 12.5),
        ("    save-checkpoint ................................: (11000.00, 12000.00)", 12.0),
        ("    save-checkpoint ................................: 12000.00", 12.0),
        ("Checkpoint saved in 900 ms", 0.9),
        ("Saving checkpoint every 500 steps, next in 10 min", 0.0),
        ("Saving model checkpoint to out/checkpoint-300", 0.0),
    ],
)
def test_a_line_states_how_long_a_checkpoint_took(line: str, seconds: float) -> None:
    assert stated((line, math.nan), work="checkpoint") == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        ("{'eval_loss': 2.1, 'eval_runtime': 30.0, 'eval_samples_per_second': 3.1}", 30.0),
        ("  eval_runtime            =     0:01:30.12", 90.12),
        ("    evaluate .......................................: (29000.40, 30000.30)", 30.0003),
        ("[d2.evaluation.evaluator]: Total inference time: 0:00:30.000000 (0.03 s / iter per device)", 30.0),
        ("evaluation done in 2 min", 120.0),
        ("evaluation done in 2 min 5 s", 125.0),
        ("Validation took 1h 0m 5.5s", 3605.5),
        ("validation time: 12.5 s", 12.5),
        ("validation step 10/40 took 0.25 s per batch", 0.0),
        ("eval: loss 2.1, 0.25 s/it", 0.0),
        ("val loss 2.1, time elapsed: 3600s", 0.0),
        ("validation loss at iteration 300 | lm loss value: 2.5E+00 |", 0.0),
    ],
)
def test_a_line_states_how_long_an_evaluation_took(line: str, seconds: float) -> None:
    assert stated((line, math.nan), work="evaluation") == pytest.approx(seconds)


def test_it_lasts_from_the_line_that_it_begins_to_the_line_that_it_is_over() -> None:
    saves = ("Checkpoint step300 is about to be saved!", 100.0), ("Checkpoint step300 is ready now!", 112.0)
    assert stated(*saves, work="checkpoint") == 12
    assert stated(*saves, ("Checkpoint saved in 12.0 s", 112.0), work="checkpoint") == 12, "the same told twice"
    evaluates = ("Running evaluation", 100.0), ("saving checkpoint", 130.0), ("checkpoint saved", 135.0)
    assert (stated(*evaluates, work="evaluation"), stated(*evaluates, work="checkpoint")) == (0, 5)
    assert stated(("Saving model checkpoint to out", 1.0), ("Configuration saved in out/checkpoint-3/x", 3.0),
                  work="checkpoint") == 0  # fmt: skip


def test_ranks_that_save_at_once_state_one_checkpoint() -> None:
    lines = [(f"[rank{rank}]: checkpoint saved in 12 s", at) for rank, at in ((0, 112.0), (1, 112.1), (2, 112.0))]
    assert stated(*lines, work="checkpoint") == pytest.approx(12.1)
    assert stated(*((line, math.nan) for line, _ in lines), work="checkpoint") == 12


def test_bars_and_lines_of_one_evaluation_count_once() -> None:
    bars = [(f"Evaluating: 50%|##| {n}/40 [00:{n}<00:10, 1.00it/s]", math.nan) for n in (10, 20, 30)]
    assert stated(*bars, work="evaluation") == 30
    assert stated(*bars, ("{'eval_loss': 2.1, 'eval_runtime': 30.5}", math.nan), work="evaluation") == 30.5


def paused(folder: Path, *said: tuple[float, str], after_s: float, n: int = 40) -> StepsProfile:
    """A line each 10 s, but for 42 s more behind the lines of ``said``, twice."""
    lines, at = [], 0.0
    for step in range(1, n + 1):
        if step in (15, 30):
            lines += [f"{BEGIN + timedelta(seconds=at + later)} INFO {what}" for later, what in said]
            at += after_s
        at += 10
        lines.append(f"{BEGIN + timedelta(seconds=at)} INFO step {10 * step}/400 loss 2.0")
    (folder / "train.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return measure_steps(gd.load_run(folder / "train.log", timezone="UTC"))


def test_stated_times_divide_a_pause(tmp_path: Path) -> None:
    said = (0, "Running evaluation"), (30, "evaluation done"), (30, "Saving checkpoint"), (42, "Checkpoint saved")
    found = paused(tmp_path, *said, after_s=42)
    assert found.pauses_s == pytest.approx(84, abs=1) and found.both_s == 0
    assert (found.evaluations_low_s, found.evaluations_s) == pytest.approx((60, 60), abs=1)
    assert (found.checkpoints_low_s, found.checkpoints_s) == pytest.approx((24, 24), abs=1)
    assert found.checkpoint_s == pytest.approx(12, abs=1)


def test_what_no_line_states_is_bounded_by_the_pause(tmp_path: Path) -> None:
    found = paused(tmp_path, (30, "val loss 2.1"), (30, "Saving checkpoint"), after_s=42)
    assert (found.evaluations_low_s, found.checkpoints_low_s) == (0, 0)
    assert (found.evaluations_s, found.checkpoints_s, found.both_s) == pytest.approx((84, 84, 84), abs=1)
    found = paused(tmp_path, (30, "val loss 2.1"), (42, "Checkpoint saved in 12.0 s"), after_s=42)
    assert (found.evaluations_low_s, found.evaluations_s) == pytest.approx((0, 60), abs=1)
    assert (found.checkpoints_low_s, found.checkpoints_s) == pytest.approx((24, 24), abs=1)


def test_a_checkpoint_beside_the_steps_holds_no_more_than_the_pause(tmp_path: Path) -> None:
    found = paused(tmp_path, (8, "Checkpoint saved in the background, took 60 s"), after_s=8)
    assert found.pauses_s == pytest.approx(16, abs=1)
    assert (found.checkpoints_low_s, found.checkpoints_s) == pytest.approx((0, 16), abs=1)


def test_trials_that_evaluate_at_once_each_take_their_time(tmp_path: Path) -> None:
    lines = []
    for at in range(0, 400, 10):
        for trial in (0, 1):
            moment = BEGIN + timedelta(seconds=at + trial + 40 * (at >= 200))
            lines.append(f"{moment} INFO trial {trial} step {at + 10}/400 loss 2.0")
            if at == 190:
                begun, ended = (BEGIN + timedelta(seconds=at + trial + seconds) for seconds in (2, 32))
                lines += [
                    f"{begun} INFO trial {trial} running evaluation",
                    f"{ended} INFO trial {trial} evaluation done",
                ]
    (tmp_path / "train.log").write_text("\n".join(sorted(lines)) + "\n", encoding="utf-8")
    steps = gd.load_run(tmp_path / "train.log", timezone="UTC").steps
    assert steps.groupby("trial")["evaluation_s"].sum().tolist() == [30, 30]
