"""The steps of trainings whose course is known, from their logs as frameworks write them."""

from __future__ import annotations

import itertools
import math
import random
from datetime import timedelta
from pathlib import Path

import pandas as pd
import pytest

import gpudiag as gd
from gpudiag.analysis import Analysis
from gpudiag.errors import NotMeasurable
from gpudiag.measures.causes import measure_causes
from gpudiag.measures.steps import StepsProfile, measure_steps
from gpudiag.report._sections.bottleneck import limit
from gpudiag.report._sections.key_numbers import key_numbers
from gpudiag.report.sections import SECTIONS
from gpudiag.report.timeline.lanes import lanes_of
from gpudiag.simulation.trainings.spec import Between, LoaderSpec, StepSpec, TrainingSpec
from gpudiag.simulation.trainings.training import simulate_training
from tests.readers.steps.written_logs import BEGIN, WRITERS, Training, megatron, stamped, train

SECOND_S = 1.0
"""What a log that is stamped to the second can be off by."""


def measured(folder: Path, lines: list[str], name: str = "train.log") -> StepsProfile:
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return measure_steps(gd.load_run(artifacts=path, timezone="UTC"))


@pytest.mark.parametrize("dialect", WRITERS)
def test_time_of_a_step(tmp_path: Path, dialect: str) -> None:
    run = train(random.Random(3), 2000, 1.7, wait=0.2)
    said = measured(tmp_path, WRITERS[dialect](run, 20))
    assert said.unit == "step"
    assert said.step_s == pytest.approx(sum(run.step_s) / len(run.step_s), rel=0.03)
    assert said.n_pauses == 0 and said.n_resumed == 0
    if dialect == "timm":  # without timestamps
        assert said.n_unseen > 0 and math.isnan(said.productive_pct)
    else:
        assert said.n_unseen == 0 and said.productive_pct > 97
    if dialect in ("mmengine", "timm"):
        assert said.loader_pct == pytest.approx(100 * sum(run.wait_s) / sum(run.step_s), rel=0.02)
    else:
        assert not said.loader_pct >= 0, "nothing is said of the loader"


@pytest.mark.parametrize("dialect", ["megatron", "mmengine", "bar", "stamped"])
def test_pauses_between_steps(tmp_path: Path, dialect: str) -> None:
    run = train(random.Random(7), 3000, 0.8, eval_every=500, eval_s=90.0)
    said = measured(tmp_path, WRITERS[dialect](run, 50))
    truth_s = sum(run.pause_s.values())
    assert said.n_pauses == len(run.pause_s)
    assert said.pauses_s == pytest.approx(truth_s, rel=0.05)
    assert said.pauses_pct == pytest.approx(100 * truth_s / run.span_s, abs=1.5)
    assert set(said.pauses["after_step"]) == {at + 50 for at in run.pause_s}
    assert said.productive_pct == pytest.approx(100 - 100 * truth_s / run.span_s, abs=2.5)


def test_the_first_steps_are_slow(tmp_path: Path) -> None:
    run = train(random.Random(1), 1000, 0.5, first_s=120.0)
    said = measured(tmp_path, WRITERS["bar"](run, 10))
    assert said.first_s == pytest.approx(120, abs=2 * SECOND_S)
    assert said.n_pauses == 0


def test_steps_that_grow(tmp_path: Path) -> None:
    steady = train(random.Random(2), 2000, 1.0)
    grows = train(random.Random(2), 2000, 1.0, drift=2.0)
    assert measured(tmp_path, megatron(steady, 10)).late_ratio == pytest.approx(1, abs=0.05)
    said = measured(tmp_path, megatron(grows, 10))
    assert said.late_ratio == pytest.approx(2**0.8, rel=0.05)
    assert said.steady_pct == 100


@pytest.mark.parametrize("dialect", ["megatron", "stamped"])
def test_the_seconds_of_a_clock_make_no_wave(tmp_path: Path, dialect: str) -> None:
    """Lines of 10 steps of 1.62 s are stamped 16 or 17 s apart, which is 1.6 or 1.7 s a step: 3 % off."""
    run = train(random.Random(5), 2000, 1.62)
    course = measured(tmp_path, WRITERS[dialect](run, 10)).course
    done = course["done"].astype(int).to_list()
    steps = [run.step_s[begin:end] for begin, end in itertools.pairwise(done)]
    truth = [sum(part) / len(part) for part in steps]
    assert course["each_s"].iloc[1:].to_list() == pytest.approx(truth, rel=0.001 if dialect == "megatron" else 0.02)
    assert len(course) > (190 if dialect == "megatron" else 50) and done[-1] == 2000


def _resumed(first: Training, second: Training, *, at: int, down_s: float, every: int) -> list[str]:
    """The first training's log, cut; then the second's, which goes on at step ``at`` after ``down_s``."""
    begins = first.span_s + down_s
    again = Training(second.step_s, second.wait_s, [begins + moment for moment in second.at_s])
    lines = stamped(again, every)
    return [
        *stamped(first, every),
        "RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:1970, unhandled system error",
        *(
            line.replace(f"step {n} ", f"step {n + at} ")
            for n, line in zip(range(every, 10_000, every), lines, strict=False)
        ),
    ]


@pytest.mark.parametrize("every", [1, 20, 50])
def test_a_resumption_costs_the_time_down_and_the_steps_done_twice(tmp_path: Path, every: int) -> None:
    rng = random.Random(5)
    first, second = train(rng, 900, 1.0), train(rng, 600, 1.0)
    said = measured(tmp_path, _resumed(first, second, at=500, down_s=600, every=every))
    assert (said.n_resumed, said.n_repeated) == (1, 400)
    assert said.n_steps == 1500 - every  # of those up to the first line no time is known
    assert said.down_s == pytest.approx(600, rel=0.03)
    logged_s = first.span_s - first.at_s[every - 1] + 600 + second.span_s
    lost_s = logged_s - sum(first.step_s[every:500]) - sum(second.step_s)
    assert said.resumption_s == pytest.approx(lost_s, rel=0.02)
    assert said.resumption_pct == pytest.approx(100 * lost_s / logged_s, abs=1)
    assert said.productive_pct + said.resumption_pct == pytest.approx(100)


def test_steps_done_twice_of_which_no_time_is_known_cost_nothing_that_is_known(tmp_path: Path) -> None:
    """A bar's clock begins anew with each attempt: the steps up to a later attempt's first line are not in the span."""
    lines = []
    for begins, ends in [(0, 70), (40, 100)]:
        for n in range(begins + 10, ends + 1, 10):
            took_s = 2 * (n - begins)
            lines.append(f"{n}%|##  | {n}/100 [{took_s // 60:02d}:{took_s % 60:02d}<00:10,  2.00s/it]")
    said = measured(tmp_path, lines)
    assert (said.n_resumed, said.n_repeated) == (1, 30)
    assert said.logged_s == 140 + (120 - 20) and said.down_s == 0
    assert said.resumption_s == (30 - 10) * 2


def test_bars_of_epochs_count_on(tmp_path: Path) -> None:
    lines = []
    for epoch in range(4):
        lines += [
            f"Epoch {epoch}: {n}%|##  | {n}/100 [00:{n // 2:02d}<00:10,  2.00it/s, loss=0.3]"
            for n in range(10, 101, 10)
        ]
    said = measured(tmp_path, lines)
    assert said.n_resumed == 0
    assert said.step_s == pytest.approx(0.5) and said.n_steps == 400 and said.logged_s == pytest.approx(200)


@pytest.mark.parametrize("every", [1, 3, 20])
def test_whole_seconds_do_not_round_short_steps(tmp_path: Path, every: int) -> None:
    run = train(random.Random(11), 3000, 0.13)
    said = measured(tmp_path, WRITERS["bar"](run, every))
    assert said.step_s == pytest.approx(0.13, rel=0.05) and said.late_ratio == pytest.approx(1, abs=0.1)
    assert said.n_pauses == 0


def test_bars_drawn_anew_each_epoch_hold_the_evaluation_between_them(tmp_path: Path) -> None:
    """100 steps of half a second, 40 s of evaluation, and so on; the log's lines are stamped."""
    lines, at = [], 0.0
    for _ in range(5):
        for n in range(0, 101, 20):
            moment = BEGIN + timedelta(seconds=at + n / 2)
            lines.append(f"{moment:%Y-%m-%d %H:%M:%S} {n:3d}%|##   | {n}/100 [00:{n // 2:02d}<00:10,  2.00it/s]")
        at += 50 + 40
    said = measured(tmp_path, lines)
    assert said.step_s == pytest.approx(0.5) and said.n_resumed == 0
    assert (said.n_pauses, said.pauses_s) == (4, 160) and said.logged_s == 5 * 50 + 4 * 40
    assert said.productive_pct == pytest.approx(100 * 250 / 410)


def test_a_bar_of_an_evaluation_is_no_training(tmp_path: Path) -> None:
    run = train(random.Random(9), 400, 2.0, eval_every=100, eval_s=60.0)
    lines = []
    for line in WRITERS["bar"](run, 10):
        lines.append(line)
        if " 100/400" in line or " 200/400" in line or " 300/400" in line:
            lines += [f" {n}%|##   | {n}/50 [00:{n:02d}<00:10, 1.20s/it]" for n in range(0, 51, 10)]
    said = measured(tmp_path, lines)
    assert said.step_s == pytest.approx(2, rel=0.03) and said.n_pauses == 3 and said.n_resumed == 0


@pytest.mark.slow
def test_ranks_are_told_apart(tmp_path: Path) -> None:
    run = train(random.Random(6), 500, 1.0)
    lines = []
    for line in stamped(run, 10):
        lines += [line.replace("INFO", f"INFO [rank{rank}]:") for rank in range(4)]
    said = measured(tmp_path, lines)
    assert said.n_trainings == 4 and said.trainings["rank"].tolist() == [0, 1, 2, 3]
    assert said.step_s == pytest.approx(1, rel=0.03)


def test_epochs_where_no_steps_are_named(tmp_path: Path) -> None:
    said = measured(tmp_path, [f"Epoch {n}/20 train loss 0.5 time: {90 + n % 2} s" for n in range(1, 21)])
    assert said.unit == "epoch" and said.n_steps == 20 and said.step_s == pytest.approx(90.5, abs=0.5)


@pytest.mark.parametrize("lines", [["Epoch 1/3 loss 0.2 time: 3 s"] * 2, ["CUDA out of memory"] * 5])
def test_what_is_no_course_is_withheld(tmp_path: Path, lines: list[str]) -> None:
    with pytest.raises(NotMeasurable, match="training log"):
        measured(tmp_path, lines)


@pytest.mark.slow
def test_idle_time_of_the_gpu_lies_in_the_pauses(tmp_path: Path) -> None:
    """Of two GPUs one works in the steps and idles in the pauses, the other never works: it is no part of this."""
    run = train(random.Random(8), 3000, 0.8, eval_every=500, eval_s=120.0)
    path = tmp_path / "train.log"
    path.write_text("\n".join(stamped(run, 50)) + "\n", encoding="utf-8")
    pauses = [(run.at_s[at - 1], run.at_s[at - 1] + took) for at, took in run.pause_s.items()]
    rows = []
    for second in range(0, int(run.span_s), 5):
        busy = not any(start < second < end for start, end in pauses)
        rows += [(BEGIN + timedelta(seconds=second), "0", 100.0 * busy), (BEGIN + timedelta(seconds=second), "1", 0.0)]
    gpu = pd.DataFrame(rows, columns=["time", "gpu", "util_pct"]).assign(time=lambda t: t["time"].dt.tz_localize("UTC"))
    whole = gd.load_run(telemetry=gpu, artifacts=path, timezone="UTC")
    said = measure_steps(whole)
    truth_h = sum(run.pause_s.values()) / 3600
    assert said.idle_paused_gpu_h == pytest.approx(truth_h, rel=0.05)
    assert said.idle_paused_pct > 95
    diagnosis = gd.diagnose(whole)
    assert limit(diagnosis.document).startswith("Other pauses between steps took")
    found = next(v for v in diagnosis.verdicts if v.rule == "steps-paused")
    assert found.lost_gpu_h == said.idle_paused_gpu_h
    assert "of the time that the GPU waited within its work" in found.summary


@pytest.mark.slow
@pytest.mark.parametrize(
    ("at_evaluation", "found"), [((90, 0, 0), (1, 2)), ((70, 90, 60), (3, 0)), ((0, 0, 0), (0, 3))]
)
def test_which_gpus_evaluate(tmp_path: Path, at_evaluation: tuple[float, ...], found: tuple[int, int]) -> None:
    run = train(random.Random(9), 2000, 0.8, eval_every=500, eval_s=120.0)
    lines = []
    for line in stamped(run, 50):
        lines.append(line)
        lines += [line.split("step")[0] + "running evaluation"] * any(f"step {at} " in line for at in run.pause_s)
    path = tmp_path / "train.log"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    pauses = [(run.at_s[at - 1], run.at_s[at - 1] + took) for at, took in run.pause_s.items()]
    rows = []
    for second in range(0, int(run.span_s), 5):
        paused = any(start < second < end for start, end in pauses)
        rows += [
            (BEGIN + timedelta(seconds=second), str(gpu), util if paused else 98.0)
            for gpu, util in enumerate(at_evaluation)
        ]
    gpu = pd.DataFrame(rows, columns=["time", "gpu", "util_pct"]).assign(time=lambda t: t["time"].dt.tz_localize("UTC"))
    said = measure_steps(gd.load_run(telemetry=gpu, artifacts=path, timezone="UTC"))
    assert said.n_evaluations == len(run.pause_s)
    assert (said.evaluating_gpus, said.waiting_gpus) == found


def test_what_the_log_tells_of_in_a_pause(tmp_path: Path) -> None:
    run = train(random.Random(12), 2000, 0.8, eval_every=500, eval_s=90.0)
    lines = []
    for line in WRITERS["mmengine"](run, 50):
        lines.append(line)
        if "[   500/2000]" in line or "[  1000/2000]" in line:
            lines += ["2026/01/05 10:20:00 - mmengine - INFO - Iter(val) [50/1843]    eta: 0:01:45  time: 0.0588"]
        if "[  1000/2000]" in line or "[  1500/2000]" in line:
            lines += ["2026/01/05 10:30:00 - mmengine - INFO - Saving checkpoint at 1000 iterations"]
    said = measured(tmp_path, lines)
    by_step = dict(zip(said.pauses["after_step"], said.pauses["since"], strict=True))
    assert by_step == {550: "evaluation", 1050: "evaluation, checkpoint", 1550: "checkpoint"}
    assert said.evaluations_s == pytest.approx(run.pause_s[500] + run.pause_s[1000], rel=0.05)
    assert said.checkpoints_s == pytest.approx(run.pause_s[1000] + run.pause_s[1500], rel=0.05)


def test_pauses_are_marks_of_the_timeline(tmp_path: Path) -> None:
    run = train(random.Random(13), 1000, 0.8, eval_every=500, eval_s=90.0)
    path = tmp_path / "train.log"
    path.write_text("\n".join(stamped(run, 50)) + "\n", encoding="utf-8")
    seconds = range(0, int(run.span_s), 5)
    gpu = pd.DataFrame({"time": [BEGIN + timedelta(seconds=at) for at in seconds], "gpu": "0", "util_pct": 90.0})
    whole = gd.load_run(telemetry=gpu.assign(time=gpu["time"].dt.tz_localize("UTC")), artifacts=path, timezone="UTC")
    (mark,) = lanes_of(Analysis(whole)).events
    assert mark.text.startswith("pause of 1 min") and mark.text.endswith("by step 550")
    begin_s = (pd.Timestamp(mark.start_us, unit="us") - pd.Timestamp(BEGIN)).total_seconds()
    assert begin_s == pytest.approx(run.at_s[499], abs=1) and mark.end_us > mark.start_us


def test_a_log_alone_has_key_numbers(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("\n".join(stamped(train(random.Random(1), 1000, 2.0), 20)) + "\n", encoding="utf-8")
    numbers = dict(key_numbers(gd.diagnose(gd.load_run(path, timezone="UTC")).document))
    assert numbers["median time of one step"] == "2 s"
    assert any(words.endswith("went into steps") for words in numbers)


def test_a_damaged_timestamp_is_no_pause_of_years(tmp_path: Path) -> None:
    lines = stamped(train(random.Random(4), 2000, 1.0), 20)
    lines[10], lines[50] = lines[10].replace("2026-", "2036-"), lines[50].replace("2026-", "1996-")
    said = measured(tmp_path, lines)
    assert said.n_pauses == 0 and said.step_s == pytest.approx(1, rel=0.03)
    assert said.logged_s == pytest.approx(2000 - 20 - 4 * 20, rel=0.02), "four intervals have no length"


@pytest.mark.slow
@pytest.mark.parametrize("seed", [6101, 6102, 6103])
def test_goodput_is_the_time_of_steps_that_were_not_lost(tmp_path: Path, seed: int) -> None:
    """A simulated training with start-up, slow first steps, checkpoints and a crash: its own steps say what counted."""
    spec = TrainingSpec(
        epochs=2,
        steps_per_epoch=400,
        step=StepSpec(gpu_s=0.2),
        loader=LoaderSpec(batch_s=0.1),
        between=Between(
            startup_s=50.0, first_step_s=20.0, checkpoint_every=150, checkpoint_s=12.0, crashes=(430,), down_s=90.0
        ),
        log_every=20,
    )
    made = simulate_training(spec, seed=seed)
    p = measure_steps(gd.load_run(made.write(tmp_path)))
    steps = made.history.ranks[0].steps
    counted = {step.number: step.end_s - step.start_s for step in steps}
    wall_s = steps[-1].end_s
    assert p.goodput_pct == pytest.approx(100 * (sum(counted.values()) - 2 * 20.0) / wall_s, abs=2)
    assert p.startup_s == pytest.approx(50, abs=3) and p.first_s == pytest.approx(20, abs=3)
    assert p.n_resumed == 1 and p.mttf_s == pytest.approx(wall_s, rel=0.02)
    assert p.down_s == pytest.approx(90 + 50 + 20, abs=8)
    lost = p.startup_s + p.first_s + p.pauses_s + p.resumption_s
    assert p.goodput_pct / 100 * (p.startup_s + p.logged_s) + lost == pytest.approx(p.startup_s + p.logged_s)
    assert p.ettr_pct == pytest.approx(100 * (p.logged_s - p.resumption_s) / (p.startup_s + p.logged_s))


def test_a_log_that_begins_with_a_step_says_nothing_of_the_start_up(tmp_path: Path) -> None:
    p = measured(tmp_path, megatron(train(random.Random(0), 600, 1.0), 20))
    assert math.isnan(p.startup_s) and p.goodput_pct == pytest.approx(p.productive_pct)


@pytest.mark.parametrize("stamped_lines", [False, True])
def test_a_stated_time_that_holds_the_evaluation_is_no_time_of_steps(tmp_path: Path, stamped_lines: bool) -> None:
    """nanoGPT states the time of a step with what came before it: 300 steps of 0.5 s, each 50 an evaluation of 20 s."""
    lines, at_s = ["number of parameters: 123.59M"], 0.0
    for step in range(300):
        took_s = 0.5 + (20 if step and step % 50 == 0 else 0)
        lines += [f"step {step}: train loss 3.0, val loss 3.1"] if took_s > 1 else []
        at_s += took_s
        stamp = f"{BEGIN + timedelta(seconds=at_s):%Y-%m-%d %H:%M:%S} " if stamped_lines else ""
        lines.append(f"{stamp}iter {step}: loss 3.1234, time {1000 * took_s:.2f}ms, mfu 35.12%")
    said = measured(tmp_path, lines)
    assert said.step_s == pytest.approx(0.5, abs=1 / 50)  # a clock of whole seconds between evaluations 50 steps apart
    assert (said.n_pauses, said.evaluations_s) == (5, pytest.approx(100, abs=3))
    assert said.productive_pct == pytest.approx(100 * 150 / 250, abs=2)


def plain_steps(begin_s: float, n: int, every: int = 10, total: str = "") -> list[str]:
    """Lines of steps of a second each."""
    moments = [(step, BEGIN + timedelta(seconds=begin_s + step)) for step in range(every, n + 1, every)]
    return [f"{moment:%Y-%m-%d %H:%M:%S} step {step}{total} loss 2.1" for step, moment in moments]


@pytest.mark.parametrize("evaluates", [True, False])
def test_epochs_that_no_line_numbers_are_one_training(tmp_path: Path, evaluates: bool) -> None:
    """Three epochs of 60 steps, with 40 s between them: their steps are counted anew, and always end at 60."""
    lines = []
    for epoch in range(3):
        lines += plain_steps(100.0 * epoch, 60)
        lines += [f"{BEGIN + timedelta(seconds=100 * epoch + 60):%Y-%m-%d %H:%M:%S} validating"] if evaluates else []
    said = measured(tmp_path, lines)
    assert (said.n_trainings, said.n_resumed, said.n_pauses) == (1, 0, 2)
    assert said.pauses_s == pytest.approx(80, abs=1) and said.evaluations_s == (said.pauses_s if evaluates else 0)


@pytest.mark.parametrize("between", ["=== seed {n} ===", "INFO: fold {n}/3", "saved final model run{n}.pt"])
@pytest.mark.parametrize("total", ["", "/60"])
def test_what_follows_the_end_of_a_training_is_another(tmp_path: Path, between: str, total: str) -> None:
    """Three trainings of 60 steps, 40 s apart, in which the next one starts: no pause of any, and no checkpoint."""
    lines = []
    for n in range(3):
        lines += plain_steps(100.0 * n, 60, total=total)
        lines += [f"{BEGIN + timedelta(seconds=100 * n + 60):%Y-%m-%d %H:%M:%S} {between.format(n=n + 1)}"]
    said = measured(tmp_path, lines)
    assert (said.n_trainings, said.n_resumed, said.n_pauses, said.checkpoints_s) == (3, 0, 0, 0)


@pytest.mark.parametrize("ends", [50, 70])
def test_steps_that_begin_anew_and_end_elsewhere_are_other_trainings(tmp_path: Path, ends: int) -> None:
    said = measured(tmp_path, [*plain_steps(0, 60), *plain_steps(100, ends)])
    assert (said.n_trainings, said.n_resumed) == (2, 0)


def test_a_restart_from_the_first_step_is_a_resumption_where_the_log_tells_of_it(tmp_path: Path) -> None:
    """100 steps, 100 s down, and all of them again."""
    told = "torch.distributed.elastic: restarting worker group"
    said = measured(tmp_path, [*plain_steps(0, 100, total="/900"), told, *plain_steps(200, 300, total="/900")])
    assert (said.n_trainings, said.n_resumed, said.n_repeated) == (1, 1, 100)
    assert said.down_s == pytest.approx(100) and said.resumption_s == pytest.approx(200)


FAILED = ["Traceback (most recent call last):", "torch.cuda.OutOfMemoryError: CUDA out of memory"]


@pytest.mark.parametrize(
    ("told", "total", "n_trainings", "n_repeated"),
    [
        ([], "/900", 1, 100),  # the same training, from the first step on again
        ([], "/450", 2, 0),  # another number of steps: another training
        (["Resuming from checkpoint-20"], "/900", 1, 80),
        (["Resuming from checkpoint-20"], "/450", 1, 80),  # with other settings, and from what was done
    ],
)
def test_what_begins_behind_a_failure(
    tmp_path: Path, told: list[str], total: str, n_trainings: int, n_repeated: int
) -> None:
    again = plain_steps(200, 300, total=total)[2 if told else 0 :]
    said = measured(tmp_path, [*plain_steps(0, 100, total="/900"), *FAILED, *told, *again])
    assert (said.n_trainings, said.n_repeated) == (n_trainings, n_repeated)
    assert said.n_resumed == (n_trainings == 1)


def test_a_training_that_was_resumed_before_does_not_begin_anew(tmp_path: Path) -> None:
    """Resumed from step 60 after 100, then a start from the first step of which no line says that it resumes."""
    resumed = ["Resuming from checkpoint-60", *plain_steps(200, 150, total="/900")[6:]]
    anew = plain_steps(500, 200, total="/900")
    said = measured(tmp_path, [*plain_steps(0, 100, total="/900"), *FAILED, *resumed, *FAILED, *anew])
    assert (said.n_trainings, said.n_resumed, said.n_repeated) == (2, 1, 40)


def test_what_is_told_before_a_bar_that_is_advanced_at_once_is_not_lost(tmp_path: Path) -> None:
    """Hugging Face draws a bar at 0, and then where its training goes on: at the step that its checkpoint holds."""
    first = bars([(0, 500, 1.0)])
    drawn = ["0%|  | 0/1000 [00:00<?, ?it/s]", *bars([(475, 700, 1.0)])]
    said = measured(tmp_path, [*first, *FAILED, "Resuming training from checkpoint-475", *drawn])
    assert (said.n_trainings, said.n_resumed, said.n_repeated) == (1, 1, 26)
    early = [bars([(0, 25, 1.0)])[0], *bars([(200, 425, 1.0)])]  # its first known step is the first of all
    said = measured(tmp_path, [*early, *FAILED, "Resuming training from checkpoint-200", *early], "early.log")
    assert said.n_trainings == 1


def bars(spans: list[tuple[int, int, float]], total: int = 1000, name: str = "") -> list[str]:
    """By span a bar without a name: from which step to which, and seconds of a step; drawn at once, then every 25."""
    lines = []
    for begins, ends, step_s in spans:
        for n in range(begins, ends + 1, 25):
            took_s = round((n - begins) * step_s)
            clock = f"{took_s // 60:02d}:{took_s % 60:02d}"
            lines.append(f"{name}{100 * n // total}%|##  | {n}/{total} [{clock}<10:00, {step_s:.2f}s/it]")
    return lines


def test_a_bar_that_goes_on_is_drawn_where_no_step_is_done(tmp_path: Path) -> None:
    """A crash at step 900 of 1000, and on from the checkpoint at 500: 400 steps of a second are done twice."""
    said = measured(tmp_path, bars([(0, 900, 1.0), (500, 1000, 1.0)]))
    assert (said.n_resumed, said.n_repeated) == (1, 400)
    assert said.logged_s == 900 + 500 and said.resumption_s == 400


@pytest.mark.parametrize("n", [2, 3, 5])
def test_bars_that_nothing_numbers_may_be_trainings_of_their_own(tmp_path: Path, n: int) -> None:
    """Folds or models in a row, each at its own pace: none of them became slower."""
    each = bars([(0, 1000, 1.0 + 0.5 * k) for k in range(n)])
    assert measured(tmp_path, each).late_ratio == pytest.approx(1, abs=0.05)
    named = [line for k in range(n) for line in bars([(0, 1000, 1.0 + 0.5 * k)], name=f"Epoch {k}: ")]
    assert measured(tmp_path, named).late_ratio == pytest.approx(1 + 0.5 * (n - 1), abs=0.1 * n)


def test_many_bars_that_nothing_numbers_are_epochs(tmp_path: Path) -> None:
    said = measured(tmp_path, bars([(0, 1000, 1.0 + 0.05 * k) for k in range(20)]))
    assert said.late_ratio == pytest.approx((1 + 0.05 * 17.5) / (1 + 0.05 * 1.5), rel=0.05)
    assert said.steady_pct == 100


def test_a_short_training_counts_beside_a_long_one_of_its_log(tmp_path: Path) -> None:
    """Keras, fitted twice: 10 epochs of 30 s, then 4 of 60 s."""
    lines = []
    for epochs, took_s in [(10, 30), (4, 60)]:
        for epoch in range(1, epochs + 1):
            lines += [f"Epoch {epoch}/{epochs}", f"100/100 - {took_s}s - {10 * took_s}ms/step - loss: 0.5"]
    said = measured(tmp_path, lines)
    assert (said.n_trainings, said.n_left_out) == (2, 0)
    assert said.logged_s == pytest.approx(10 * 30 + 4 * 60)


@pytest.mark.slow
def test_trainings_with_too_few_lines_are_counted_and_said(tmp_path: Path) -> None:
    """Three attempts that each crash after three steps, before one that does not; and these alone."""
    few = [line for k in range(3) for line in plain_steps(100 * k, 30, total="/900")]
    said = measured(tmp_path, [*few, *plain_steps(400, 60, total="/900")])
    assert (said.n_trainings, said.n_left_out, said.logged_s) == (1, 3, 50)
    page = gd.diagnose(gd.load_run(artifacts=tmp_path / "train.log", timezone="UTC")).to_markdown()
    assert "3 trainings with too few lines to tell are left out." in page
    with pytest.raises(NotMeasurable, match="they are of 3 trainings, and 5 lines or more of one are needed"):
        measured(tmp_path, few, "few.log")


def whole_clock(seconds: float) -> str:
    return f"{int(seconds) // 60:02d}:{int(seconds) % 60:02d}"


@pytest.mark.slow
@pytest.mark.parametrize(("step_s", "every", "eval_s"), [(0.3, 30, 15.0), (0.3, 30, 6.0), (0.17, 40, 9.0)])
def test_evaluations_closer_than_a_clock_of_whole_seconds_tells_apart(
    tmp_path: Path, step_s: float, every: int, eval_s: float
) -> None:
    """Hugging Face's bar, which stands still while another bar evaluates, and is drawn again behind its result."""
    lines, at_s, evaluated_s = ["  0%|  | 0/1200 [00:00<?, ?it/s]"], 0.0, 0.0
    for step in range(1, 1201):
        at_s += step_s
        lines.append(f"{step // 12}%|##  | {step}/1200 [{whole_clock(at_s)}<10:00, 3.00it/s]")
        if step % every == 0:
            at_s += eval_s
            evaluated_s += eval_s
            lines += [f"{10 * k}%|#  | {k}/10 [00:0{k}<00:10, 1.00it/s]" for k in range(1, 10)]
            lines.append(f"{{'eval_loss': 0.7, 'eval_runtime': {eval_s}, 'epoch': 0.1}}")
            lines.append(f"{step // 12}%|##  | {step}/1200 [{whole_clock(at_s)}<10:00, 3.00it/s]")
    said = measured(tmp_path, lines)
    assert said.step_s == pytest.approx(step_s, rel=0.03)
    assert said.evaluations_s == said.pauses_s == pytest.approx(evaluated_s, rel=0.03)
    assert said.n_steps == 1200 and said.logged_s == pytest.approx(at_s, abs=1)


@pytest.mark.parametrize("step_s", [0.8, 1.2, 1.5, 2.7])
def test_timestamps_of_whole_seconds_do_not_bias_the_time_of_a_step(tmp_path: Path, step_s: float) -> None:
    steps = [(n, BEGIN + timedelta(seconds=n * step_s)) for n in range(1, 401)]
    said = measured(tmp_path, [f"{moment:%Y-%m-%d %H:%M:%S} step {n} loss 2.1" for n, moment in steps])
    assert said.step_s == pytest.approx(step_s, rel=0.005)


@pytest.mark.slow
@pytest.mark.parametrize("every", [1, 10, 50])
def test_the_stated_time_of_one_step_is_not_that_of_those_before(tmp_path: Path, every: int) -> None:
    """nanoGPT logs each tenth step, with the time of that one: 0.2 s, and 20 s more each 250 for an evaluation."""
    lines = []
    for step in range(0, 1001, every):
        evaluates = step > 0 and step % 250 == 0
        lines += [f"step {step}: train loss 3.0, val loss 3.1"] if evaluates else []
        lines.append(f"iter {step}: loss 3.1234, time {200 + 20_000 * evaluates:.2f}ms, mfu 35.12%")
    said = measured(tmp_path, lines)
    assert said.evaluations_s == pytest.approx(80, abs=1) and said.logged_s == pytest.approx(1000 * 0.2 + 80, abs=1)


TOLD = [
    "Traceback (most recent call last):",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
    "WARNING torch.distributed.elastic: Worker group FAILED. 3/3 attempts left; will restart worker group",
]


@pytest.mark.parametrize("told", TOLD)
def test_a_crash_and_a_start_from_the_first_step_is_a_resumption(tmp_path: Path, told: str) -> None:
    lines = [*plain_steps(0, 300, total="/1000"), told, *plain_steps(400, 310, total="/1000"), told]
    said = measured(tmp_path, [*lines, *plain_steps(800, 1000, total="/1000")])
    assert (said.n_trainings, said.n_resumed, said.n_repeated) == (1, 2, 300 + 310)
    assert said.down_s == pytest.approx(100 + 90, abs=2)
    assert said.resumption_s == pytest.approx(190 + 610, abs=3)


def test_a_failure_in_a_training_that_came_to_its_end_is_no_crash_before_the_next(tmp_path: Path) -> None:
    lines = [*plain_steps(0, 300, total="/300"), TOLD[0], *plain_steps(400, 300, total="/300")]
    said = measured(tmp_path, lines)
    assert (said.n_resumed, said.n_repeated) == (0, 0)


@pytest.mark.slow
def test_what_passes_for_all_ranks_passes_once(tmp_path: Path) -> None:
    lines = []
    for line in [*plain_steps(0, 130), "resuming from step 100", *plain_steps(160, 200)[10:]]:
        lines += [line.replace(" step", f" [rank{rank}]: step") for rank in range(4)] if " step " in line else [line]
    said = measured(tmp_path, lines)
    one = measured(tmp_path, [line for line in lines if "rank0" in line or "resuming" in line], "one.log")
    assert said.n_trainings == 4 and said.trainings["rank"].tolist() == [0, 1, 2, 3]
    for name in ("n_steps", "logged_s", "n_resumed", "n_repeated", "down_s", "resumption_s", "productive_pct"):
        assert getattr(said, name) == pytest.approx(getattr(one, name)), name


def test_steps_whose_thousands_are_set_apart(tmp_path: Path) -> None:
    moments = [(n, BEGIN + timedelta(seconds=n * 0.5)) for n in range(100, 3001, 100)]
    said = measured(tmp_path, [f"{moment:%Y-%m-%d %H:%M:%S} step {n:,}/30,000 loss 2.1" for n, moment in moments])
    assert said.n_steps == 2900 and said.step_s == pytest.approx(0.5) and said.n_trainings == 1


@pytest.mark.parametrize("first", [0, 1])
def test_the_example_on_imagenet_counts_from_either(tmp_path: Path, first: int) -> None:
    """500 steps of 0.3 s of which 0.1 s is a wait, and 30 s for the first batch; a line for steps 1, 11, 21, ..."""
    lines = []
    for step in range(1, 500, 10):
        mean_s, wait_s = 0.3 + 30 / step, 0.1 + 30 / step
        lines.append(
            f"Epoch: [0][{step - 1 + first:3d}/500]\tTime  0.300 ({mean_s:6.3f})\tData  0.100 ({wait_s:6.3f})\t"
            "Loss 6.9e+00 (6.9e+00)"
        )
    said = measured(tmp_path, lines)
    assert said.logged_s == pytest.approx(491 * 0.3 + 30, rel=0.01)
    assert said.first_s == pytest.approx(30, rel=0.02) and said.n_pauses == 0
    assert said.loader_pct == pytest.approx(100 * (491 * 0.1 + 30) / (491 * 0.3 + 30), abs=1)


@pytest.mark.parametrize("begins", [500, 900])
def test_a_stretch_of_slow_steps_is_no_pause(tmp_path: Path, begins: int) -> None:
    lines, at_s = [], 0.0
    for step in range(1, 1001):
        at_s += 3.0 if begins < step <= begins + 100 else 1.0
        lines.append(f"{BEGIN + timedelta(seconds=at_s):%Y-%m-%d %H:%M:%S} step {step} loss 2.1")
    said = measured(tmp_path, lines)
    assert said.n_pauses == 0 and said.step_s == pytest.approx(1.0, rel=0.01)


@pytest.mark.parametrize("after_the_last", [True, False])
def test_an_evaluation_with_a_bar_of_its_own_takes_the_time_that_it_shows(tmp_path: Path, after_the_last: bool) -> None:
    """Four epochs of 120 s by one bar, and between them 25 s of validation by another; no line has a timestamp."""
    lines = []
    for epoch in range(4):
        lines += [
            f"Epoch {epoch}: {n // 3}%|##  | {n}/300 [{whole_clock(0.4 * n)}<01:00,  2.50it/s, loss=1.2]"
            for n in range(0, 301, 5)
        ]
        if epoch < 3 or after_the_last:
            lines += [f"Validation: {2 * n}%|##  | {n}/50 [00:{n // 2:02d}<00:10,  2.00it/s]" for n in range(0, 51)]
    said = measured(tmp_path, lines)
    n = 3 + after_the_last
    assert (said.n_pauses, said.evaluations_s) == (n, pytest.approx(25 * n, abs=1))
    assert said.logged_s == pytest.approx(4 * 120 + 25 * n, abs=2)


def test_lines_of_two_trainings_at_once_tell_of_neither(tmp_path: Path) -> None:
    one, other = plain_steps(0, 1000), plain_steps(3, 1000)
    mixed = [line for pair in zip(one[7:], other, strict=False) for line in pair]
    with pytest.raises(NotMeasurable, match="5 lines or more of one are needed"):
        measured(tmp_path, mixed)


@pytest.mark.slow
def test_a_clock_that_is_set_back_is_said(tmp_path: Path) -> None:
    lines = [*plain_steps(0, 3000), *(line for line in plain_steps(-3600, 6000) if int(line.split()[3]) > 3000)]
    said = measured(tmp_path, lines)
    assert said.n_undated == 300 and said.step_s == pytest.approx(1)
    page = gd.diagnose(gd.load_run(artifacts=tmp_path / "train.log", timezone="UTC")).to_markdown()
    assert "300 lines have timestamps before those of earlier lines" in page


@pytest.mark.parametrize("step_s", [0.5, 4.0])
@pytest.mark.parametrize("back", [0, 100])
def test_a_bar_that_is_drawn_empty_before_it_goes_on(tmp_path: Path, step_s: float, back: int) -> None:
    """Hugging Face's: a crash at step 300 of 500, and on from there or from 100 before, in bars of their own."""
    lines = []
    for begins, ends in [(0, 300), (300 - back, 500)]:
        lines.append("  0%|  | 0/500 [00:00<?, ?it/s]")
        lines += [
            f"{n // 5}%|##  | {n}/500 [{whole_clock((n - begins) * step_s)}<10:00, {step_s:.2f}s/it]"
            for n in range(begins + 1, ends + 1)
        ]
    said = measured(tmp_path, lines)
    assert (said.n_trainings, said.n_resumed, said.n_repeated) == (1, 1, back)
    assert said.step_s == pytest.approx(step_s, rel=0.02)
    assert said.logged_s == pytest.approx((500 + back) * step_s, abs=2 * step_s + 1)


@pytest.mark.parametrize("said", ["eval loss 2.5 at step 200", "step 200 | val_loss: 2.5", "step 200 test/loss=2.5"])
def test_a_line_that_tells_of_the_loss_of_an_evaluation_alone_is_no_step(tmp_path: Path, said: str) -> None:
    """100 lines of 10 steps, and 40 s behind step 200."""
    at = BEGIN + timedelta(seconds=240)
    lines = [*plain_steps(0, 200), f"{at:%Y-%m-%d %H:%M:%S} {said}", *plain_steps(40, 1000)[20:]]
    found = measured(tmp_path, lines)
    assert (found.n_pauses, found.evaluations_s) == (1, pytest.approx(40))
    both = [line.replace("loss 2.1", "loss 2.1 val_loss 2.5") for line in plain_steps(0, 1000)]
    assert measured(tmp_path, both, "both.log").n_steps == 990


def dated(seconds: float, text: str) -> str:
    return f"{BEGIN + timedelta(seconds=seconds):%Y-%m-%d %H:%M:%S} {text}"


def test_a_crash_in_a_later_epoch_and_a_start_from_the_first_step(tmp_path: Path) -> None:
    """Two epochs of 100 steps and 50 of the third, 60 s, and all three from the beginning."""
    lines, at_s = [], 0.0
    for last in (250, 300):
        for done in range(10, last + 1, 10):
            at_s += 10
            lines.append(dated(at_s, f"Epoch {(done - 1) // 100 + 1} batch {(done - 1) % 100 + 1}/100 loss 2.0"))
        lines.append(dated(at_s, "Traceback (most recent call last):"))
        at_s += 60
    said = measured(tmp_path, lines)
    assert (said.n_trainings, said.n_resumed, said.n_repeated) == (1, 1, 250)
    assert said.resumption_s == pytest.approx(60 + 250, abs=1)


def test_a_line_of_another_kind_does_not_take_what_the_log_told(tmp_path: Path) -> None:
    lines = []
    for epoch in range(6):
        lines += plain_steps(108.0 * epoch, 100)
        lines += [
            dated(108 * epoch + 100, "running evaluation"),
            dated(108 * epoch + 108, f"epoch {epoch} done, train loss 0.5"),
        ]
    said = measured(tmp_path, lines)
    assert (said.n_pauses, said.evaluations_s) == (5, pytest.approx(40))


@pytest.mark.slow
@pytest.mark.parametrize("teller", ["[rank0]: ", ""])
def test_what_one_rank_tells_counts_for_all(tmp_path: Path, teller: str) -> None:
    """Four ranks; the first line after the evaluation is of another rank than the one that tells of it."""
    lines = []
    for part in range(4):
        steps = [line.split(" step ") for line in plain_steps(130.0 * part, 100)]
        lines += [
            f"{stamp} [rank{rank}]: step {int(rest.split()[0]) + 100 * part} loss 2.1"
            for stamp, rest in steps
            for rank in (3, 2, 1, 0)
        ]
        lines.append(dated(130 * part + 100, f"{teller}running evaluation"))
    said = measured(tmp_path, lines)
    assert said.evaluations_s == pytest.approx(90, abs=1) and said.n_pauses == 3


def test_torchtitan_s_validation_is_no_step(tmp_path: Path) -> None:
    lines, at_s = [], 0.0
    for step in range(10, 401, 10):
        at_s += 10
        lines.append(dated(at_s, f"[titan] - root - INFO - step: {step}  loss:  3.1  memory:  9.5GiB  tps: 24,000"))
        if step % 100 == 0:
            at_s += 40
            lines.append(dated(at_s, f"[titan] - root - INFO - validate step: {step}  loss:  3.2  tps: 90,000"))
    said = measured(tmp_path, lines)
    assert said.step_s == pytest.approx(1)
    assert (said.n_pauses, said.evaluations_s) == (4, pytest.approx(160))


@pytest.mark.parametrize("told", ["slurmstepd: error: *** JOB 7 CANCELLED DUE TO TIME LIMIT ***", TOLD[0]])
def test_a_stop_at_the_checkpoint_is_a_resumption_and_no_long_checkpoint(tmp_path: Path, told: str) -> None:
    """200 steps, a checkpoint, 1200 s in the queue, and on from step 201."""
    lines = [*plain_steps(0, 200), dated(200, "saving checkpoint to out/200"), told, dated(1390, "Loaded out/last.pt")]
    said = measured(tmp_path, [*lines, *plain_steps(1200, 400)[20:]])
    assert (said.n_resumed, said.n_repeated, said.n_pauses) == (1, 0, 0)
    assert said.down_s == pytest.approx(1200)


def test_a_failure_that_was_caught_is_no_resumption(tmp_path: Path) -> None:
    said = measured(tmp_path, [*plain_steps(0, 200), TOLD[0], *plain_steps(8, 400)[20:]])
    assert (said.n_resumed, said.n_pauses, said.pauses_s) == (0, 1, pytest.approx(8))


def test_timestamps_without_a_year_tell_of_the_time_between_attempts(tmp_path: Path) -> None:
    """detectron2: 500 steps, 600 s down, and on from step 400."""

    def line(seconds: float, step: int) -> str:
        moment = BEGIN + timedelta(seconds=seconds)
        return (
            f"[{moment:%m/%d %H:%M:%S} d2.utils.events]:  eta: 0:10:00  iter: {step - 1}  total_loss: 1.2  time: 1.0  "
        )

    lines = [line(n, n) for n in range(20, 501, 20)]
    lines += ["[01/05 10:18:00 d2.engine]: Loading checkpoint from out/model_0000399.pth at iteration 400"]
    said = measured(tmp_path, lines + [line(1100 + n - 400, n) for n in range(420, 1001, 20)])
    assert (said.n_trainings, said.n_resumed, said.n_repeated) == (1, 1, 100)
    assert said.down_s == pytest.approx(600, abs=1) and said.first_s == 0
    assert said.logged_s == pytest.approx(500 - 20 + 600 + 600, abs=1)


def test_a_slowdown_shows_in_the_stated_time_of_single_steps(tmp_path: Path) -> None:
    lines = [f"iter {n}: loss 3.1234, time {200 + 200 * n / 3000:.2f}ms, mfu 35.12%" for n in range(0, 3001, 10)]
    said = measured(tmp_path, lines)
    assert said.late_ratio == pytest.approx((200 + 180) / (200 + 20), rel=0.02)
    assert said.logged_s == pytest.approx(3001 * 0.3, rel=0.01)


def test_another_number_of_steps_is_another_training(tmp_path: Path) -> None:
    lines = [*plain_steps(0, 130, every=5, total="/130"), *plain_steps(160, 150, every=5, total="/150")]
    said = measured(tmp_path, lines)
    assert (said.n_trainings, said.n_pauses) == (2, 0) and said.n_steps == 125 + 145


def test_lines_that_name_trials_tell_of_waits_without_a_table_of_trials(tmp_path: Path) -> None:
    """Two trainings on one GPU, one after the other, each with an evaluation of 40 s; only the log names them."""
    lines, idle = [], []
    for trial in range(2):
        begins = 300.0 * trial
        steps = [line.replace(" step", f" Trial {trial} step") for line in plain_steps(begins, 200)]
        later = [line.replace(" step", f" Trial {trial} step") for line in plain_steps(begins + 40, 240)[20:]]
        lines += [*steps, dated(begins + 240, f"Trial {trial} eval loss 2.0"), *later]
        idle.append((begins + 200, begins + 240))
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    busy = [not any(low < second < high for low, high in idle) for second in range(581)]
    rows = [f"{BEGIN + timedelta(seconds=n):%Y/%m/%d %H:%M:%S}.000, 0, {100 * now} %" for n, now in enumerate(busy)]
    (tmp_path / "gpu.csv").write_text("\n".join(["timestamp, index, utilization.gpu [%]", *rows]) + "\n")
    by_cause = measure_causes(gd.load_run(tmp_path, timezone="UTC")).by_cause
    assert by_cause.at["evaluation", "gpu_s"] == pytest.approx(80, abs=4)


def test_a_slow_first_batch_counts_once_in_means_of_the_last_20(tmp_path: Path) -> None:
    """torchvision: three epochs of 500 steps of 0.2 s, the first batch of each 20 s longer; a line each 10 steps."""
    lines = []
    for epoch in range(3):
        took = [20.2, *[0.2] * 499]
        for k in range(0, 500, 10):
            last = took[max(k - 19, 0) : k + 1]
            lines.append(
                f"Epoch: [{epoch}]  [{k:3d}/500]  eta: 0:01:40  lr: 0.1  loss: 1.2  time: {sum(last) / len(last):.4f}  "
                "data: 0.0100  max mem: 900"
            )
    said = measured(tmp_path, lines)
    assert said.step_s == pytest.approx(0.2, rel=0.01)
    assert said.logged_s == pytest.approx(3 * (20 + 491 * 0.2) + 2 * 9 * 0.2, rel=0.02)
    # Of the nine steps behind an epoch's last line nothing is stated: they are in the time of the next first batch.
    assert said.first_s + said.pauses_s == pytest.approx(60, abs=2 * 9 * 0.2 + 0.5)


@pytest.mark.slow
def test_checks_of_a_search_do_not_apply_to_a_training_by_itself(tmp_path: Path) -> None:
    """A log of steps and nothing of a study; where run.toml has a setting of a search, the study may be missing."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "train.log").write_text("\n".join(megatron(train(random.Random(1), 2000, 1.0), 10)), encoding="utf-8")
    alone = gd.diagnose(gd.load_run(folder, timezone="UTC"))
    status = {verdict.rule: verdict.status.value for verdict in alone.verdicts}
    of_searches = ("pruning-rate-high", "failure-rate-high", "startup-dominated", "gaps-between-trials")
    asked = [rule for rule in of_searches if rule in status]
    assert len(asked) >= 2 and {status[rule] for rule in asked} == {"not_applicable"}
    assert not any("--trials" in verdict.remedy for verdict in alone.verdicts if verdict.status.value == "not_assessed")
    assert "Trials" not in dict(SECTIONS["masthead"](alone.document)[0].facts)
    page = alone.to_markdown()
    assert "## Memory" in page and "## Outcomes" not in page and "## Forecast" not in page
    (folder / "run.toml").write_text("[settings]\nn_trials = 20\n", encoding="utf-8")
    searched = gd.diagnose(gd.load_run(folder, timezone="UTC"))
    assert {v.status.value for v in searched.verdicts if v.rule in asked} == {"not_assessed"}
    assert "Trials" in dict(SECTIONS["masthead"](searched.document)[0].facts)
