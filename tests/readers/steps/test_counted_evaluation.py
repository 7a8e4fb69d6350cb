"""Evaluations that say how far they are: lines of batches, bars, and what comes out."""

from __future__ import annotations

from pathlib import Path

import pytest

import gpudiag as gd
from gpudiag.measures.steps import StepsProfile, measure_steps
from gpudiag.readers._steps.counted_evaluation import CountedEvaluation, count_of
from gpudiag.readers._steps.other_work import OtherWork


def evaluated_s(*lines: tuple[str, float]) -> float:
    taker = OtherWork()
    return sum(taker.told_by(line, moment_s).get("evaluation", 0.0) for line, moment_s in lines)


TIMM = "Test: [{:>4d}/200]  Time: 0.300 (0.300)  Loss:   1.2345 (1.3456)  Acc@1:  70.123 ( 69.123)"
TORCHVISION = "Test:   [{:>3d}/200]  eta: 0:01:00  loss: 6.9 (7.0)  acc1: 0.3 (0.2)  time: 0.3000"
MMENGINE = "mmengine - INFO - Epoch(val)  [3][ {}/200]    eta: 0:00:30  time: 0.3000  data_time: 0.0100"
DETECTRON2 = "d2.evaluation.evaluator]: Inference done {}/200. Dataloading: 0.0010 s/iter. Inference: 0.0900 s/iter."


@pytest.mark.parametrize("form", [TIMM, TORCHVISION, MMENGINE, DETECTRON2])
@pytest.mark.parametrize("least", [0, 50])
def test_its_lines_tell_how_long_it_took(form: str, least: int) -> None:
    """A batch takes 0.3 s; what came before the first line went on as fast."""
    assert evaluated_s(*((form.format(n), 500 + 0.3 * n) for n in range(least, 201, 50))) == pytest.approx(60)


def test_several_in_a_row_count_each() -> None:
    lines = [(TIMM.format(n), 0.3 * n) for n in (50, 100, 200)] + [(TIMM.format(n), 80 + 0.6 * n) for n in (50, 200)]
    assert evaluated_s(*lines) == pytest.approx(60 + 120)
    near = [(TIMM.format(n), 0.3 * n) for n in (0, 200)] + [(TIMM.format(n), n - 30) for n in (100, 200)]
    assert evaluated_s(*near) == pytest.approx(60 + 110), "the second cannot have begun before the first was over"


def test_a_stated_time_and_counted_batches_are_one_evaluation() -> None:
    lines = [(TORCHVISION.format(n), 0.3 * n) for n in (0, 100, 200)]
    assert evaluated_s(*lines, ("Test:  Total time: 0:01:00 (0.3 s / it)", 60.0)) == pytest.approx(60)
    assert evaluated_s(*lines[:2], (" *   Acc@1 70.123 Acc@5 90.123", 60.0)) == pytest.approx(60), "up to its result"
    assert evaluated_s(("Evaluating on 200 batches", -5.0), *lines) == pytest.approx(65), "it began before"


def test_what_lies_behind_a_checkpoint_is_another_evaluation() -> None:
    saved = "Current checkpoints:"
    lines = [(TIMM.format(0), 0.0), (TIMM.format(200), 60.0), (saved, 90.0), (TIMM.format(0), 95.0)]
    assert evaluated_s(*lines, (TIMM.format(200), 100.0)) == pytest.approx(60 + 5)


def test_without_moments_nothing_is_known() -> None:
    told = CountedEvaluation()
    for n in (0, 50, 100):
        told.take(n, float("nan"))
    assert told.s == 0.0
    assert count_of("2026/03/01 Epoch(val) [1/12][ 50/200]") == 50 and count_of("2026/03/01 val loss 2") is None


@pytest.mark.parametrize(
    ("line", "is_one"),
    [
        (" *   Acc@1 70.123 Acc@5 90.123", True),
        (" Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ] = 0.371", True),
        ("Test (EMA): [  50/196]  Time: 0.2", True),
        ("Averaged stats of train: loss 2.1 Acc@1 60.2", False),
        ("Average forward time: 5.0 ms, Average NMS time: 1.0 ms", False),
        ("Latest: [12/40] files copied", False),
    ],
)
def test_lines_that_tell_of_an_evaluation(line: str, is_one: bool) -> None:
    assert ("evaluation" in OtherWork().told_by(line, 0.0)) is is_one


@pytest.mark.parametrize(
    ("begins", "ends"),
    [("Saving checkpoint a.pt", "checkpoint written to a.pt"), ("saving checkpoint", "wrote checkpoint")],
)
def test_a_checkpoint_that_is_written_is_over(begins: str, ends: str) -> None:
    taker = OtherWork()
    taker.told_by(begins, 10.0)
    assert taker.told_by(ends, 40.0) == {"checkpoint": 30.0}
    taker = OtherWork()
    taker.told_by(begins, 10.0)
    assert taker.told_by("checkpoints will be written to disk", 40.0) == {"checkpoint": 0.0}


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60:02d}:{int(seconds) % 60:02d}"


def tqdm_bar(k: int, n: int, each_s: float) -> str:
    full = 10 * k // n
    left = f"{clock((n - k) * each_s)},  {1 / each_s:.2f}it/s" if k else "?,  ?it/s"
    return f"{100 * k // n:3.0f}%|{'█' * full}{' ' * (10 - full)}| {k}/{n} [{clock(k * each_s)}<{left}]"


def own_bar(k: int, n: int, each_s: float) -> str:
    full = 12 * k // n
    left = f"<{(n - k) * each_s:.1f}s" if k < n else ""
    return f"{100 * k // n}% {'━' * full}{'─' * (12 - full)} {k}/{n} {1 / each_s:.1f}it/s {k * each_s:.1f}s{left}"


@pytest.mark.parametrize("bar", [tqdm_bar, own_bar])
@pytest.mark.parametrize(
    "columns", ["Class     Images  Instances      Box(P          R", "classes   top1_acc   top5_acc"]
)
def test_bars_of_ultralytics_tell_of_validations(tmp_path: Path, bar, columns: str) -> None:  # type: ignore[no-untyped-def]
    """Six epochs of 250 steps of 0.2 s, each with a validation of 20 batches of 0.5 s."""
    out = ""
    for epoch in range(1, 7):
        for k in range(5, 251, 5):
            out += f"\r      {epoch}/6      4.51G     1.234     2.345        56        640: {bar(k, 250, 0.2)}"
        out += "\n"
        out += "".join(f"\r                 {columns}: {bar(k, 20, 0.5)}" for k in range(2, 21, 2)) + "\n"
        out += "                   all       5000      36335      0.634      0.475\n"
    (tmp_path / "train.log").write_text(out, encoding="utf-8")
    said: StepsProfile = measure_steps(gd.load_run(tmp_path))
    assert said.n_steps == 1500 and said.step_s == pytest.approx(0.2)
    assert said.evaluations_low_s == said.evaluations_s == said.pauses_s == pytest.approx(60)
    assert said.n_unseen == 5 and said.logged_s == pytest.approx(360)
