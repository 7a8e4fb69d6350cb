"""What all of a training took, beside the time of its steps."""

from __future__ import annotations

import math
from dataclasses import replace

import pandas as pd
import pytest
from loggedruns import FREE, HELD, WORK, every, training

from gpudiag.analysis import Analysis
from gpudiag.comparison._quantities.whole_training import whole_training
from gpudiag.comparison.compare import Comparison, compare
from gpudiag.comparison.intervals import Ratio
from gpudiag.comparison.match import unmatched
from gpudiag.comparison.quantity import EQUIVALENT, FASTER, NO_EVIDENCE, SLOWER, TIME, TOTAL, Quantity, make
from gpudiag.comparison.side import Side
from gpudiag.manifest import Training
from gpudiag.report import comparison as reports
from gpudiag.report.comparison.headline import headline
from gpudiag.run import Run

SAMPLE_S = 20.0


def plain(name: str = "a", startup_s: float = 60.0, last: int = 1000, gpus: int = 1, **about: object) -> Run:
    """A start-up, and a step a second with a line on every twentieth."""
    stretches = [(FREE, 60.0), (HELD, startup_s), (WORK, float(last)), (FREE, 60.0)]
    return training(
        name, stretches, every(20, begin=60 + startup_s, last=last), gpus=gpus, day=int(name != "a"), **about
    )


def resumed() -> Run:
    """Ended behind step 540, down for 300 s, and resumed from the checkpoint at step 500."""
    stretches = [(FREE, 60.0), (HELD, 60.0), (WORK, 560.0), (FREE, 240.0), (HELD, 60.0), (WORK, 500.0), (FREE, 60.0)]
    before = every(20, begin=120, last=500)
    between = [(640.0, 520, "checkpoint"), (660.0, 540, "")]
    (at, step, _), *behind = every(20, begin=960, first=500, last=1000)
    return training("b", stretches, [*before, *between, (at + 20, step, "resumption"), *behind], day=1)


def undated(name: str, work_s: float, evaluations: tuple[int, ...], gap_s: float = 0.0) -> Run:
    """Lines without a timestamp that state the time of their step, a second, and nothing of what lies between."""
    stretches = [(FREE, 60.0), (HELD, 60.0), (WORK, work_s / 2), (FREE, gap_s), (WORK, work_s / 2), (FREE, 60.0)]
    lines = [(0.0, step, "evaluation" if step in evaluations else "") for step in range(1, 301)]
    return training(name, stretches, lines, day=int(name != "a"), dated=False)


def found(one: Run, other: Run) -> dict[str, Quantity]:
    a, b = (Side(Analysis(run), run.info.name) for run in (one, other))
    return {quantity.name: quantity for quantity in whole_training(a, b, unmatched(a, b))}


def said(*quantities: Quantity) -> Comparison:
    a, b = (Side(Analysis(run), run.info.name) for run in (plain(), plain("b")))
    return Comparison(a, b, unmatched(a, b), (), quantities, (), (), ())


def step(ratio: float, verdict: str) -> Quantity:
    made = make(
        "logged_step_time", "Time of a step by the training logs", "s", TIME, (1.0, ratio), Ratio(ratio, ratio, ratio)
    )
    return replace(made, verdict=verdict, n_baseline=99.0, n_experiment=99.0)


def total(name: str, a: float, b: float) -> Quantity:
    return make(name, "Total", "s", TOTAL, (a, b), tested=False)


@pytest.mark.slow
def test_a_longer_start_is_wall_time_and_gpu_time_of_the_same_steps() -> None:
    whole = found(plain(gpus=2), plain("b", startup_s=660.0, gpus=2))
    wall, gpu = whole["training_wall_time"], whole["training_gpu_time"]
    assert [wall.baseline, wall.experiment] == pytest.approx([1060, 1660], abs=SAMPLE_S)
    assert [gpu.baseline, gpu.experiment] == pytest.approx([2 * 1060 / 3600, 2 * 1660 / 3600], rel=0.01)
    start = whole["training_startup_time"]
    assert start.experiment - start.baseline == pytest.approx(600, abs=SAMPLE_S)
    assert (wall.kind, wall.tested) == (TOTAL, False) and math.isnan(wall.p)


@pytest.mark.slow
def test_work_long_before_a_dated_training_is_not_known_to_be_of_it() -> None:
    """A smoke test: 40 s of work two hours before, of which the log says nothing."""
    stretches = [(FREE, 60.0), (WORK, 40.0), (FREE, 7200.0), (HELD, 60.0), (WORK, 1000.0), (FREE, 60.0)]
    tested_before = training("b", stretches, every(20, begin=7360, last=1000), day=1)
    whole = found(plain(), tested_before)
    assert "training_gpu_time" not in whole and whole["training_wall_time"].ratio == pytest.approx(1)
    assert not compare(plain(), tested_before).fails("regression")


@pytest.mark.slow
def test_less_wall_time_for_more_gpu_time_does_not_cost_less() -> None:
    stated = {"training": Training(tokens_per_step=1000)}
    pair = compare(plain(startup_s=660.0, **stated), plain("b", gpus=2, **stated))
    assert pair.verdict == EQUIVALENT and not pair.costs_less() and not pair.costs_more()


@pytest.mark.slow
def test_a_restart_is_in_the_wall_time_and_its_part_of_it_is_told() -> None:
    whole = found(plain(), resumed())
    wall, lost = whole["training_wall_time"], whole["training_restart_time"]
    assert [wall.baseline, wall.experiment] == pytest.approx([1060, 1420], abs=SAMPLE_S)
    assert lost.baseline == 0 and lost.experiment == pytest.approx(320 + 40, abs=20)


@pytest.mark.slow
def test_a_log_without_a_clock_leaves_its_evaluations_to_the_telemetry() -> None:
    whole = found(undated("a", 600, (100, 200)), undated("b", 400, (100,)))
    outside = whole["training_untimed_time"]
    assert whole["training_wall_time"].ratio == pytest.approx(460 / 660, rel=0.02)
    assert outside.baseline - outside.experiment == pytest.approx(200, abs=SAMPLE_S)
    assert "2 and 1 evaluations" in str(outside.note)


@pytest.mark.slow
def test_steps_of_other_numbers_of_gpus_are_the_same_work_only_where_that_is_stated() -> None:
    stated = {"training": Training(tokens_per_step=8192)}
    assert found(plain(), plain("b", gpus=4)) == {}
    gpu = found(plain(**stated), plain("b", gpus=4, **stated))["training_gpu_time"]
    assert gpu.ratio == pytest.approx(4, rel=0.01)


@pytest.mark.parametrize(
    "other",
    [
        plain("b", last=900),  # another number of steps
        plain("b", gpus=2, training=Training(gpus=1)),  # somebody else's GPU is in the telemetry
        replace(undated("b", 300, ()), gpu=plain("b").gpu.iloc[:0]),
    ],
)
def test_what_is_not_known_to_be_the_same_work_has_no_gpu_time(other: Run) -> None:
    assert "training_gpu_time" not in found(plain(), other)


@pytest.mark.slow
def test_a_record_that_may_hold_two_trainings_tells_nothing_of_one_without_a_clock() -> None:
    assert found(undated("a", 600, (100,)), undated("b", 600, (100,), gap_s=120.0)) == {}


@pytest.mark.slow
def test_memory_counts_before_the_work_only_where_both_records_show_it_begin() -> None:
    """One recorder ran before the training and one began within it: what only one saw is no difference."""
    a, b = plain(), plain("b")
    later = replace(
        b, gpu=b.gpu[b.gpu["time"] >= b.gpu["time"].min() + (b.gpu["time"].max() - b.gpu["time"].min()) / 12]
    )
    assert later.gpu["mem_used_mib"].iloc[0] > 1000 and later.gpu["util_pct"].iloc[0] == 0
    assert found(a, later)["training_wall_time"].ratio == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize(
    ("quantities", "verdict", "fails"),
    [
        ((step(1.0, EQUIVALENT), total("training_wall_time", 100, 140)), "costs more", True),
        ((step(0.9, FASTER), total("training_gpu_time", 100, 140)), "costs more", True),
        ((step(1.0, EQUIVALENT), total("training_wall_time", 100, 107)), "costs more", False),
        ((step(1.0, EQUIVALENT), total("training_wall_time", 100, 103)), "equivalent", False),
        ((step(1.0, EQUIVALENT), total("training_wall_time", 100, 70)), "costs less", False),
        ((step(1.0, EQUIVALENT), total("training_wall_time", 100, 140), total("training_gpu_time", 100, 70)),
         "equivalent", False),
        ((step(0.9, FASTER), total("training_wall_time", 100, 70)), "faster", False),
        ((step(1.2, SLOWER), total("training_wall_time", 100, 70)), "slower", True),
    ],
)  # fmt: skip
def test_steps_that_are_equivalent_are_no_equivalent_runs(
    quantities: tuple[Quantity, ...], verdict: str, fails: bool
) -> None:
    made = said(*quantities)
    assert made.verdict == verdict and made.fails("regression") is fails and not made.fails("never")


def test_the_headline_says_what_is_equal_and_what_is_not() -> None:
    restarts = (total("training_wall_time", 3000, 4500), total("training_restart_time", 0, 1600))
    head = said(step(1.0, EQUIVALENT), *restarts, total("training_pause_time", 100, 20)).document.headline
    assert head.level == "warning"
    assert head.verdict == (
        "COSTS MORE: b needs 1.50 times the wall time of a for as many steps (mostly restarts); the time of each is "
        "equivalent: 1.00 (1.00–1.00)."
    )
    assert "wall time 50 min against 1 h 15 min, restarts 0 s against 26 min 40 s" in head.sentences[0]
    assert "what ended the training" in head.sentences[2] and "something else than speed" not in head.sentences[2]


@pytest.mark.parametrize("known", [(), (total("training_wall_time", 1000, 1000),)])
def test_equivalent_steps_of_trainings_of_unknown_length_are_said_to_be_that(known: tuple[Quantity, ...]) -> None:
    """By the logs alone the wall time is that from the first line on steps to the last."""
    head = headline(said(step(1.0, EQUIVALENT), *known).document)
    assert "In all" not in head.sentences[1]
    assert ("From the first line on steps to the last: wall time" in head.sentences[1]) is bool(known)
    assert "what the whole trainings took is not known" in head.verdict
    assert "something else than speed" not in head.sentences[2]


@pytest.mark.parametrize(
    ("verdict", "where"), [(EQUIVALENT, "outside of the steps."), (NO_EVIDENCE, "in the steps or outside of them.")]
)
def test_what_costs_more_is_looked_for_outside_of_the_steps_only_where_these_are_alike(
    verdict: str, where: str
) -> None:
    head = said(step(1.08, verdict), total("training_wall_time", 1000, 1080)).document.headline
    assert "COSTS MORE" in head.verdict and where in head.sentences[2]


@pytest.mark.slow
def test_two_logs_and_their_gpus_give_it_from_end_to_end() -> None:
    made = compare(plain(), plain("b", startup_s=660.0))
    assert isinstance(made, Comparison)
    assert made.verdict == "costs more" and made.fails("regression")
    assert "(mostly start-up)" in made.headline["verdict"] and "training_wall_time" in made.to_json()
    assert "Wall time of the whole training" in made.summary()
    assert "| b | COSTS MORE | 1." in reports.several([made.document])


@pytest.mark.slow
def test_a_record_that_ends_within_a_training_tells_nothing_of_its_gpu_time_and_means() -> None:
    """The recorder of the same training stopped in the middle of its 1,000 steps."""
    b = plain("b")
    stopped = replace(b, gpu=b.gpu[b.gpu["time"] < b.gpu["time"].min() + pd.Timedelta(seconds=60 + 60 + 500)])
    pair = compare(plain(), stopped)
    assert isinstance(pair, Comparison)
    by_name = {quantity.name: quantity for quantity in pair.quantities}
    assert "training_gpu_time" not in by_name and by_name["training_wall_time"].ratio == pytest.approx(1)
    use = by_name["utilization"]
    assert (use.verdict, pair.verdict) == ("invalid", EQUIVALENT) and "does not cover the job" in str(use.note)
    covers = next(check for check in pair.gate if check.check == "telemetry-covers-job")
    assert covers.status == "fail" and "covers 48 %" in str(covers.evidence)  # 470 of 980 s, from line to line


@pytest.mark.slow
def test_means_of_a_training_are_those_of_its_time_however_long_it_was_recorded() -> None:
    """The GPU works at 95 % for 1,000 s and holds memory for 60 s before; two hours more were recorded before that."""
    stretches = [(FREE, 7200.0), (HELD, 60.0), (WORK, 1000.0), (FREE, 60.0)]
    long = training("b", stretches, every(20, begin=7260, last=1000), day=1)
    pair = compare(plain(), long)
    assert isinstance(pair, Comparison)
    assert 95 * 1000 / 1120 - 1 < pair.quantity("utilization").experiment < 95 * 1000 / 1060 + 1


@pytest.mark.slow
def test_a_start_up_is_as_long_however_seldom_steps_are_logged() -> None:
    """Both hold memory for 60 s before 1,000 steps of a second; one has a line on every 20th, one on every 100th."""
    stretches = [(FREE, 60.0), (HELD, 60.0), (WORK, 1000.0), (FREE, 60.0)]
    seldom = training("b", stretches, every(100, begin=120, last=1000), day=1)
    start = found(plain(), seldom)["training_startup_time"]
    assert [start.baseline, start.experiment] == pytest.approx([60, 60], abs=SAMPLE_S)
    assert start.ratio == pytest.approx(1, abs=0.05)
