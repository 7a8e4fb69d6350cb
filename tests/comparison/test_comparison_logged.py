"""Two trainings without trials, compared by the steps of their logs."""

from __future__ import annotations

import math
import random
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import gpudiag as gd
from gpudiag.comparison.compare import Comparison
from tests.readers.steps.written_by_trainer import Trainer

BEGIN = datetime(2026, 3, 10, 9, tzinfo=UTC)


PLAIN = "step {n}/900 loss 2.1"


def written(
    folder: Path, name: str, step_s: float, line: str = PLAIN, seed: int = 1, n: int = 300, pause_s: float = 30.0
) -> Path:
    """A log of steps of about that length, a line every ten, with an evaluation in the middle."""
    drawn, at, lines = random.Random(seed), 0.0, []
    for step in range(1, n + 1):
        at += step_s * drawn.uniform(0.9, 1.1)
        if step % 10 == 0:
            lines.append(f"{BEGIN + timedelta(seconds=at):%Y-%m-%d %H:%M:%S.%f} {line.format(n=step)}")
        if step == n // 2:
            at += pause_s
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
    assert found.leader is found.quantity("logged_wall_time") and found.verdict == "faster"
    assert quantity.low <= 0.8 <= quantity.high and quantity.high - quantity.low < 0.05
    assert (quantity.baseline, quantity.experiment) == (pytest.approx(2.0, rel=0.02), pytest.approx(1.6, rel=0.02))
    assert (quantity.n_baseline, quantity.n_experiment) == (29, 29)
    assert "run to run is not in it" in str(quantity.note)
    assert "Make sure that a step is the same work in both" in found.headline["sentences"][2]


@pytest.mark.slow
def test_the_same_training_is_equivalent(tmp_path: Path) -> None:
    assert compared(written(tmp_path, "a", 2.0), written(tmp_path, "b", 2.0, seed=2)).verdict == "equivalent"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("tokens/s: 8,192", "tokens/s: 10,240"),  # 16,384 and 32,768 a step
        ("samples_per_sec 16.0", "samples_per_sec 20.0"),
        ("batch_size=32", "batch_size=64"),
    ],
)
def test_where_steps_hold_other_amounts_the_time_is_that_of_a_token_or_sample(
    tmp_path: Path, one: str, other: str
) -> None:
    """Steps of twice the work that take 1.6 times the time are faster."""
    a = written(tmp_path, "a", 2.0, f"{PLAIN} {one}")
    found = compared(a, written(tmp_path, "b", 3.2, f"{PLAIN} {other}", seed=2))
    step, work = found.quantity("logged_step_time"), found.quantity("logged_work_time")
    assert step.verdict == "invalid" and step.ratio == pytest.approx(1.6, rel=0.02)
    assert work.ratio == pytest.approx(0.8, rel=0.03) and work.verdict == "faster"
    assert found.verdict == "faster" and found.leader is found.quantity("logged_wall_time")
    assert "2 times the" in str(found.gate[0].evidence) or "2.0" in str(found.gate[0].evidence)


@pytest.mark.slow
@pytest.mark.parametrize("head", ["args: batch_size={n} lr=0.1", "  Total train batch size (w. parallel) = {n}"])
def test_a_batch_size_that_the_log_begins_with_is_that_of_its_steps(tmp_path: Path, head: str) -> None:
    a, b = written(tmp_path, "a", 2.0), written(tmp_path, "b", 3.2, seed=2)
    for folder, n in ((a, 32), (b, 64)):
        log = folder / "train.log"
        log.write_text(head.format(n=n) + "\n  Instantaneous batch size per device = 8\n" + log.read_text())
    found = compared(a, b)
    assert found.quantity("logged_work_time").baseline == pytest.approx(2.0 / 32, rel=0.02)
    assert found.verdict == "faster"


@pytest.mark.slow
def test_steps_of_unknown_work_in_trainings_of_other_lengths_are_not_compared(tmp_path: Path) -> None:
    a = written(tmp_path, "a", 2.0)
    found = compared(a, written(tmp_path, "b", 3.2, PLAIN.replace("900", "450"), seed=2))
    assert found.verdict == "invalid" and [check.check for check in found.reasons] == ["same-unit"]
    assert "900 and 450 steps" in str(found.reasons[0].evidence)
    assert "tokens_per_step" in str(found.reasons[0].evidence)


@pytest.mark.slow
def test_as_many_samples_a_step_let_trainings_of_other_lengths_be_compared(tmp_path: Path) -> None:
    """Bars of one name whose totals differ count the same."""
    bar = " {pct}%|###  | {{n}}/{total} [00:00<00:00, 1.25it/s] batch_size=32"
    a, b = (
        written(tmp_path, name, s, bar.format(pct=3, total=total), seed=seed)
        for name, s, total, seed in (("a", 2.0, 900, 1), ("b", 2.0, 450, 2))
    )
    found = compared(a, b)
    assert found.verdict == "equivalent" and found.gate[0].status == "pass"
    assert "sample-size" not in [check.check for check in found.reasons]


@pytest.mark.slow
def test_pauses_count_in_the_verdict(tmp_path: Path) -> None:
    """Steps that take as long, with an evaluation of 30 s in 300 of them, against one of 150 s."""
    a, b = written(tmp_path, "a", 2.0, pause_s=150.0), written(tmp_path, "b", 2.0, seed=2)
    found = compared(a, b)
    wall = found.quantity("logged_wall_time")
    assert found.quantity("logged_step_time").verdict == "equivalent"
    assert found.leader is wall and found.verdict == "faster"
    assert wall.baseline - wall.experiment == pytest.approx(120 / 290, rel=0.05)
    assert wall.ratio == pytest.approx((580 + 30) / (580 + 150), rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("part", [1.0, 0.5])
def test_a_copy_of_a_log_is_no_second_training(tmp_path: Path, part: float) -> None:
    a, b = written(tmp_path, "a", 2.0), tmp_path / "b"
    b.mkdir()
    lines = (a / "train.log").read_text().splitlines(keepends=True)
    (b / "train.log").write_text("INFO copied\n" + "".join(lines[: round(part * len(lines))]))
    found = compared(a, b)
    assert found.verdict == "invalid" and found.reasons[0].check == "not-a-subset"
    assert ("the same run" if part == 1 else "a part of the other") in str(found.reasons[0].evidence)


@pytest.mark.slow
def test_a_log_without_times_is_known_by_its_content(tmp_path: Path) -> None:
    a = written(tmp_path, "a", 2.0)
    log = a / "train.log"
    bars = [f" {n}%|#  | {n}/100 [{n:02d}:00<00:00, 60.0s/it]" for n in range(1, 60)]
    log.write_text("\n".join(bars) + "\n")
    shutil.copytree(a, tmp_path / "b")
    assert compared(a, tmp_path / "b").reasons[0].check == "not-a-subset"


@pytest.mark.slow
def test_a_step_on_other_numbers_of_gpus_is_other_work_unless_all_of_it_is_stated(tmp_path: Path) -> None:
    a, b = (written(tmp_path, name, 2.0, f"{PLAIN} batch_size=32", seed=seed) for name, seed in (("a", 1), ("b", 2)))
    for folder, n in ((a, 1), (b, 4)):
        rows = [
            f"{BEGIN + timedelta(seconds=5 * i):%Y/%m/%d %H:%M:%S}.000, {g}, 80 %" for i in range(125) for g in range(n)
        ]
        (folder / "gpu.csv").write_text("timestamp, index, utilization.gpu [%]\n" + "\n".join(rows) + "\n")
        (folder / "run.toml").write_text('timezone = "UTC"\n')
    found = compared(a, b)
    assert found.verdict == "invalid" and "1 and 4 GPUs worked" in str(found.reasons[0].evidence)
    for folder in (a, b):
        (folder / "run.toml").write_text('timezone = "UTC"\n[training]\ntokens_per_step = 16384\n')
    known = compared(a, b)
    assert known.verdict == "equivalent"
    gpu_time = known.quantity("logged_gpu_time")
    assert gpu_time.ratio == pytest.approx(4, rel=0.02) and gpu_time.verdict == "higher"
    assert "GPU time of a step" in known.headline["sentences"][1]


@pytest.mark.slow
def test_tokens_that_run_toml_states_go_before_those_of_the_log(tmp_path: Path) -> None:
    a = written(tmp_path, "a", 2.0, "step {n}/900 loss 2.1 tokens/s: 8,192")
    b = written(tmp_path, "b", 2.0, "step {n}/900 loss 2.1 tokens/s: 16,384", seed=2)
    for folder in (a, b):
        (folder / "run.toml").write_text("[training]\ntokens_per_step = 16384\n")
    assert compared(a, b).verdict == "equivalent"


@pytest.mark.slow
def test_epochs_are_no_steps(tmp_path: Path) -> None:
    a = written(tmp_path, "a", 2.0)
    b = written(tmp_path, "b", 2.0, "Epoch {n}/900 finished, loss 2.1", seed=2)
    found = compared(a, b)
    assert found.leader is None and "share no measure of speed" in str(found.headline)
    assert "One log counts steps and the other epochs." in found.headline["sentences"][0]


@pytest.mark.slow
def test_a_log_with_too_few_lines_is_said_to_be_that(tmp_path: Path) -> None:
    """Four lines have three times between them; nothing is missing from the run but lines."""
    a, b = (written(tmp_path, name, 2.0, seed=seed) for seed, name in enumerate("ab"))
    log = next(path for path in b.iterdir() if "step" in path.read_text())
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:4]))
    said = compared(a, b).headline["sentences"][0]
    assert "How long a step of b takes is not known: Too few lines on steps" in said and "no trials" not in said


@pytest.mark.slow
@pytest.mark.parametrize("n", [300, 200])
def test_times_of_whole_trainings_are_described_and_not_tested(tmp_path: Path, n: int) -> None:
    """Of 3 epochs each, and of 3 against 2, where no time is that of the same work."""
    trainers = Trainer(), Trainer(n=n, step_s=0.6)
    for name, trainer in zip("ab", trainers, strict=True):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.out").write_text("\n".join(trainer.lines) + "\n")
    found = compared(tmp_path / "a", tmp_path / "b")
    assert found.verdict == ("costs less" if n == 300 else "no evidence")
    if n == 200:
        assert found.leader is None and "each line on a step has a timestamp" in str(found.headline)
        return
    held = found.quantity("logged_whole_time")
    assert found.leader is held and math.isnan(held.low) and "3 epochs" in str(held.title)
    assert (held.baseline, held.experiment) == pytest.approx([trainer.train_s for trainer in trainers])
    assert "Repeat both in turns" in found.headline["sentences"][2]
    assert "times the time that the logs state of a for as many epochs." in found.headline["verdict"]
    turned = compared(tmp_path / "b", tmp_path / "a")
    assert turned.verdict == "costs more" and turned.fails("regression")


@pytest.mark.slow
def test_few_lines_are_described_and_not_tested(tmp_path: Path) -> None:
    few = compared(written(tmp_path, "a", 2.0, n=60), written(tmp_path, "b", 1.0, seed=2, n=60))
    quantity = few.quantity("logged_step_time")
    assert quantity.ratio == pytest.approx(0.5, rel=0.05) and math.isnan(quantity.low)
    assert {check.check: check.status for check in few.gate}["sample-size"] == "fail"


@pytest.mark.slow
def test_a_training_that_died_is_no_success(tmp_path: Path) -> None:
    """It fails more than one that came to its end; which of the two is the baseline is no matter to the check."""
    whole, dead = (written(tmp_path, name, 2.0, "step {n}/300 loss 2.1", seed) for name, seed in (("a", 1), ("b", 2)))
    log = dead / "train.log"
    lines = log.read_text().splitlines()[:20]
    log.write_text("\n".join([*lines, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"]) + "\n")
    found, turned = compared(whole, dead), compared(dead, whole)
    assert found.verdict == "fails more" and found.fails("regression")
    assert found.headline["verdict"].startswith("FAILS MORE: the training of b ended with an error; ")
    assert turned.verdict != "fails more" and not turned.fails("regression")
    for one in (found, turned):
        check = one.gate[-1]
        assert (check.check, check.status) == ("equal-success", "fail")
        assert str(check.evidence).startswith("b ended with an error after step 190: torch.OutOfMemoryError")


@pytest.mark.slow
def test_two_that_came_to_their_end_succeeded_alike(tmp_path: Path) -> None:
    ended = compared(
        *(written(tmp_path, name, 2.0, "step {n}/300 loss 2.1", seed) for name, seed in (("a", 1), ("b", 2)))
    )
    assert (ended.gate[-1].check, ended.gate[-1].status) == ("equal-success", "pass")


@pytest.mark.slow
@pytest.mark.parametrize("first", [True, False])
def test_a_training_that_stops_short_of_its_last_step_is_told(tmp_path: Path, first: bool) -> None:
    whole = written(tmp_path, "whole", 2.0, "step {n}/300 loss 2.1")
    cut = written(tmp_path, "cut", 2.0, "step {n}/600 loss 2.1", seed=2)
    found = compared(cut, whole) if first else compared(whole, cut)
    check = next(c for c in found.gate if c.check == "equal-success")
    assert check.status == "fail" and "The log of cut stops at step 300 of 600" in str(check.evidence)
    assert "only one training came to its last step" in found.headline["verdict"] or found.invalid
    both = compared(cut, written(tmp_path, "too", 2.0, "step {n}/600 loss 2.1", seed=3))
    check = next(c for c in both.gate if c.check == "equal-success")
    assert check.status == "unknown" and str(check.evidence).count("stops at step 300 of 600") == 2


@pytest.mark.slow
def test_two_recordings_of_gpus_alone_are_asked_for_what_times_the_work(tmp_path: Path) -> None:
    lines = [f"2026/03/10 09:{s // 60:02}:{s % 60:02}.000, 0, A100, 80 %" for s in range(0, 1800, 5)]
    for name, day in (("a", "10"), ("b", "11")):
        (tmp_path / name).mkdir()
        text = "timestamp, index, name, utilization.gpu [%]\n" + "\n".join(lines).replace("03/10", f"03/{day}") + "\n"
        (tmp_path / name / "gpu.csv").write_text(text)
    found = compared(tmp_path / "a", tmp_path / "b")
    assert found.leader is None and "a log of its training" in found.headline["sentences"][2]
