"""Losses that are NaN to the end of a log, and what they cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudiag.errors import NotMeasurable
from gpudiag.load import load_run
from gpudiag.measures.divergence import DivergenceProfile, measure_divergence

GPU = "".join(
    f"2026-03-01T10:{at // 60:02}:{at % 60:02}Z,{gpu},{95 if gpu < 2 else 0},20000,80000\n"
    for at in range(0, 1200, 10)
    for gpu in range(3)
)


def log(losses: str, minute: int = 0, *, dated: bool = True) -> str:
    """A line each 10 s and 10 steps: ``.`` a finite loss, ``x`` none."""
    out = []
    for count, loss in enumerate(losses, 1):
        stamp = f"2026-03-01 10:{minute + count // 6:02}:{count % 6}0 " if dated else ""
        speed = "" if dated else " 1.0 s/step"
        out.append(f"{stamp}step {10 * count}/600 loss {'nan' if loss == 'x' else 0.5}{speed}\n")
    return "".join(out)


def measured(tmp_path: Path, **files: str) -> DivergenceProfile:
    for name, text in files.items():
        (tmp_path / f"{name}.log").write_text(text, encoding="utf-8")
    (tmp_path / "gpu.csv").write_text("timestamp,gpu,util_pct,mem_used_mib,mem_total_mib\n" + GPU, encoding="utf-8")
    return measure_divergence(load_run(tmp_path, timezone="UTC"))


def test_time_counts_from_the_first_line_without_a_finite_loss_on_the_gpus_that_worked(tmp_path: Path) -> None:
    found = measured(tmp_path, train=log(20 * "." + 40 * "x"))
    row = found.trainings.iloc[0]
    assert (found.n_logs, found.n_not_finite, row["since_step"], row["total_steps"]) == (1, 40, 210, 600)
    assert row["wasted_s"] == 390 and row["wasted_pct"] == pytest.approx(100 * 390 / 590)
    assert found.wasted_gpu_h == pytest.approx(2 * 390 / 3600)


@pytest.mark.parametrize("losses", ["." * 20, "x" * 19 + ".", ".....x" * 5 + ".", "." * 10 + "xxx" + "."])
def test_a_loss_that_is_finite_again_is_no_fault(tmp_path: Path, losses: str) -> None:
    found = measured(tmp_path, train=log(losses))
    assert (found.n_logs, found.n_not_finite, len(found.trainings)) == (1, 0, 0)


def test_a_training_that_was_resumed_from_before_lost_nothing_to_the_end(tmp_path: Path) -> None:
    again = "2026-03-01 10:12:00 resuming from checkpoint at step 100\n" + "".join(
        f"2026-03-01 10:{12 + count // 6}:{count % 6}0 step {100 + 10 * count}/600 loss 0.4\n" for count in range(1, 40)
    )
    assert not len(measured(tmp_path, job_1=log(20 * "." + 20 * "x"), job_2=again).trainings)


def test_without_timestamps_a_share_is_told_and_no_time(tmp_path: Path) -> None:
    found = measured(tmp_path, train=log(15 * "." + 45 * "x", dated=False))
    row = found.trainings.iloc[0]
    assert row["wasted_pct"] == pytest.approx(100 * (600 - 160) / 600) and row["wasted_s"] != row["wasted_s"]
    assert found.wasted_gpu_h != found.wasted_gpu_h


def test_where_each_epoch_counts_its_steps_the_epoch_is_told(tmp_path: Path) -> None:
    lines = "".join(
        f"Epoch {epoch}/10\n200/200 ━━━━━━━━━━━━━━━━━━━━ 200s 1s/step - loss: {'nan' if epoch > 3 else 1.2}\n"
        for epoch in range(1, 11)
    )
    row = measured(tmp_path, train=lines).trainings.iloc[0]
    assert row["since_epoch"] == 4 and row["since_step"] != row["since_step"]
    assert row["wasted_pct"] == pytest.approx(60)
    assert row["wasted_s"] != row["wasted_s"]  # 200 s is the time of one epoch


def test_of_two_trainings_nobody_knows_whose_gpus_these_are(tmp_path: Path) -> None:
    found = measured(tmp_path, seed_1=log(20 * "." + 40 * "x"), seed_2=log(60 * "."))
    assert (found.n_logs, len(found.trainings)) == (2, 1) and found.wasted_gpu_h != found.wasted_gpu_h


def test_a_log_without_losses_does_not_tell(tmp_path: Path) -> None:
    with pytest.raises(NotMeasurable):
        measured(tmp_path, train=log(10 * ".", dated=False).replace("loss 0.5", ""))


def test_a_loss_that_was_never_finite_may_be_none(tmp_path: Path) -> None:
    found = measured(tmp_path, train=log(60 * "x"))
    assert (found.n_logs, found.n_never, found.n_not_finite, len(found.trainings)) == (1, 1, 0, 0)


def test_bars_of_epochs_that_start_anew_tell_neither_step_nor_time(tmp_path: Path) -> None:
    bars = "".join(
        f"Training: {step}%|##| {step}/100 [{step // 60:02}:{step % 60:02}<00:10,  1.00it/s, loss={loss}]\n"
        for loss in (2.5, 1.5, "nan", "nan")
        for step in range(10, 101, 10)
    )
    row = measured(tmp_path, train=bars).trainings.iloc[0]
    assert row["since_step"] != row["since_step"] and row["wasted_s"] != row["wasted_s"]
    assert row["wasted_pct"] == pytest.approx(50, abs=5)


@pytest.mark.slow
def test_a_later_log_that_ran_through_is_named(tmp_path: Path) -> None:
    found = measured(tmp_path, try_1=log(10 * "." + 5 * "x"), try_2=log(60 * ".", minute=5))
    assert found.trainings["rerun"].map(lambda path: Path(path).name).tolist() == ["try_2.log"]
    both = measured(tmp_path, try_1=log(10 * "." + 5 * "x"), try_2=log(40 * "." + 20 * "x", minute=5))
    assert both.trainings["rerun"].tolist() == ["", ""], "the later one was lost as well"
