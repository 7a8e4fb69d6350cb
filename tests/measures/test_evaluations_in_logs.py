"""Lines on evaluations among those on steps: which lines count the steps, and what a log ends with."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import gpudiag as gd
from gpudiag.measures._steps.log_files import LogFile
from gpudiag.measures.steps import StepsProfile, measure_steps
from tests.readers.steps.written_logs import BEGIN

Writer = Callable[[int, int], Iterator[tuple[float, str]]]
EVALUATED_S, SAVED_S = 30.0, 5.0
EVALUATED = "step {step}: train loss 3.5000, val loss 3.5100"


def measured(folder: Path, said: Iterator[tuple[float, str]], *, dated: bool = True) -> StepsProfile:
    """Of lines, each with the second in which it was written; the clock of the log shows whole seconds."""
    lines = [f"{BEGIN + timedelta(seconds=at):%Y-%m-%d %H:%M:%S} {text}" if dated else text for at, text in said]
    (folder / "train.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return measure_steps(gd.load_run(folder, timezone="UTC"))


def nanogpt(n: int, each: int) -> Iterator[tuple[float, str]]:
    """Steps of 0.5 s. Before some it evaluates and saves, which the time of that step holds."""
    at_s = 0.0
    for step in range(n + 1):
        took_s = 0.5
        if step % each == 0:
            at_s, took_s = at_s + EVALUATED_S, took_s + EVALUATED_S
            yield at_s, EVALUATED.format(step=step)
            if step:
                yield at_s, "saving checkpoint to out"
                at_s, took_s = at_s + SAVED_S, took_s + SAVED_S
        at_s += 0.5
        if step % 10 == 0:
            yield at_s, f"iter {step}: loss 3.5000, time {1000 * took_s:.2f}ms, mfu 40.22%"


def own(n: int, each: int) -> Iterator[tuple[float, str]]:
    """The same by a script of one's own, whose lines on steps state a speed."""
    for at_s, text in nanogpt(n, each):
        step = text.split()[1].rstrip(":")
        yield at_s, f"iter {step} | loss 3.5000 | 2.00 it/s" if text.startswith("iter") else text


@pytest.mark.parametrize("each", [200, 500, 1000])
@pytest.mark.parametrize("log", [nanogpt, own])
def test_a_line_on_an_evaluation_counts_no_step(tmp_path: Path, log: Writer, each: int) -> None:
    p = measured(tmp_path, log(2000, each))
    n = 2000 // each
    paused_s = n * (EVALUATED_S + SAVED_S)
    assert p.step_s == pytest.approx(0.5, abs=0.01)
    assert (p.n_pauses, p.pauses_s) == (n, pytest.approx(paused_s, abs=1.5 * n))
    assert p.evaluations_s == p.checkpoints_s == pytest.approx(paused_s, abs=1.5 * n), "it may be of either"


@pytest.mark.parametrize("log", [nanogpt, own])
def test_steps_up_to_the_last_evaluation_are_no_part_of_it(tmp_path: Path, log: Writer) -> None:
    """The log ends before the next line on a step."""
    p = measured(tmp_path, ((at_s, text) for at_s, text in log(2000, 400) if "iter 2000" not in text))
    saved_s = 4 * SAVED_S  # the last began when the log ended
    assert (p.n_pauses, p.pauses_s) == (5, pytest.approx(5 * EVALUATED_S + saved_s, abs=3))


def test_a_file_goes_on_by_its_lines_on_steps(tmp_path: Path) -> None:
    """Also where those on evaluations span more time."""
    lines = [text for text in nanogpt(2000, 200) if "iter 0:" not in text[1] and "iter 2000:" not in text[1]]
    measured(tmp_path, iter(lines))
    steps = gd.load_run(tmp_path, timezone="UTC").steps
    assert steps is not None
    (written,) = LogFile("train.log", steps).written.values()
    assert (written.kind, written.last.step) == ("nanogpt", 1991)


def test_lines_on_evaluations_alone_are_a_course(tmp_path: Path) -> None:
    said = ((float(at), EVALUATED.format(step=10 * at)) for at in range(0, 400, 40))
    assert measured(tmp_path, said).step_s == pytest.approx(0.1)


def test_few_lines_that_count_steps_are_no_course_beside_many_of_epochs(tmp_path: Path) -> None:
    epochs = [(60.0 * n, f"Epoch {n}/20 train loss 0.5 time: 60.0s") for n in range(1, 21)]
    checks = [(float(n), f"step {n}: loss 0.7") for n in (1, 2)] + [(1300.0, "step 3: loss 0.6")]
    p = measured(tmp_path, iter(sorted(epochs + checks)))
    assert (p.unit, p.step_s) == ("epoch", pytest.approx(60))


def torchvision(at_s: int, epoch: int) -> Iterator[tuple[float, str]]:
    yield from ((at_s + 0.4 * n, f"Epoch: [{epoch}]  [{n:3d}/400]  eta: 0:01:00  lr: 0.1  loss: 6.9 (6.9)  "
                 "time: 0.4000  data: 0.0040  max mem: 21034") for n in [*range(0, 400, 10), 399])  # fmt: skip
    yield at_s + 160, f"Epoch: [{epoch}] Total time: 0:02:40"
    yield from ((at_s + 160 + 0.5 * n, f"Test:   [{n:2d}/80]  eta: 0:00:40  loss: 4.9 (4.9)") for n in range(0, 80, 20))
    yield at_s + 200, "Test:  Total time: 0:00:40"


def megatron(at_s: int, epoch: int) -> Iterator[tuple[float, str]]:
    begun = 100 * epoch
    yield from ((at_s + 1.6 * n, f" iteration {begun + n:8d}/     300 | elapsed time per iteration (ms): 1600.0 | "
                 "lm loss: 5.1E+00 |") for n in range(10, 101, 10))  # fmt: skip
    yield from ((at_s + 160 + n, f"Evaluating iter {n}/40") for n in (10, 20, 30, 40))
    yield at_s + 200, "    evaluate .......................................: (39990.00, 40000.00)"
    yield at_s + 200, f" validation loss at iteration {begun + 100} | lm loss value: 5.1E+00 | lm loss PPL: 1.6E+02 | "


@pytest.mark.parametrize("log", [torchvision, megatron])
def test_the_evaluation_behind_the_last_step_counts(tmp_path: Path, log: Writer) -> None:
    """Also where lines of another kind stand between them."""
    p = measured(tmp_path, (line for epoch in range(3) for line in log(210 * epoch, epoch)))
    assert (p.n_pauses, p.evaluations_s) == (3, pytest.approx(120, abs=3))


def test_what_follows_the_steps_of_all_ranks_is_told_of_each(tmp_path: Path) -> None:
    said = ((at, f"[rank{rank}]: {text}") for at, text in megatron(0, 0) if "iteration  " in text for rank in (0, 1))
    lines = [*said, (200.0, "evaluation done in 40 s")]
    assert measured(tmp_path, iter(lines)).evaluations_s == pytest.approx(40)


def test_other_steps_end_what_follows_those_of_one_kind(tmp_path: Path) -> None:
    """Whole trainings by other lines are no pause of the first."""
    first = list(megatron(0, 0))
    other = [(1000.0 + n, f"step {n}: loss 0.5") for n in range(1, 400, 10)]
    p = measured(tmp_path, iter([*first, *other, (1400.0, "evaluation done in 3 s")]))
    assert p.pauses_s < 10


def modded(*, evaluates: bool) -> Iterator[tuple[float, str]]:
    """Its clock stops for evaluations."""
    for step in range(1, 601):
        yield 0.0, f"step:{step}/600 train_time:{500 * step}ms step_avg:500.00ms"
        if evaluates and step % 100 == 0:
            yield 0.0, f"step:{step}/600 val_loss:3.9000 train_time:{500 * step}ms step_avg:500.00ms"


def test_a_clock_that_stops_for_evaluations_tells_nothing_of_them(tmp_path: Path) -> None:
    p = measured(tmp_path, modded(evaluates=True), dated=False)
    assert p.step_s == pytest.approx(0.5) and math.isnan(p.productive_pct) and p.n_unseen == 5
    p = measured(tmp_path, modded(evaluates=False), dated=False)
    assert p.productive_pct == pytest.approx(100) and p.n_unseen == 0
