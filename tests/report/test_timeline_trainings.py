"""The lane of trainings: its areas are the times that the log tells of, however coarse it is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from smallruns import SECOND, T0, gpu, run, steps_of

from gpudiag.analysis import Analysis
from gpudiag.diagnosis import diagnose
from gpudiag.export.perfetto import LEAST_PAUSE_S, TRAININGS, trace
from gpudiag.report.timeline.lanes import lanes_of
from gpudiag.report.timeline.packed import pack
from gpudiag.report.timeline.trainings import PARTS, training_courses
from gpudiag.run import Run

ALL = (int(T0.value // 1000), int(T0.value // 1000) + 10**10)
STEPS, LOADER, PAUSE, START = range(len(PARTS))


def logged(rows: list[tuple[float, int]], **more: Any) -> Run:
    seconds = np.arange(0.0, rows[-1][0] + 60)
    return run(gpu=gpu(seconds, util_pct=90.0), steps=steps_of(rows, **more))


@pytest.fixture
def paused() -> Run:
    """A line each 10 steps of 1 s, of which 0.3 s wait for data; 40 s of evaluation follow step 50."""
    rows = [(10.0 * n + (40 if n > 5 else 0), 10 * n) for n in range(1, 11)]
    return logged(rows, step_s=1.0, loader_s=0.3, since={60: "evaluation"})


def test_the_parts_of_a_stretch_are_its_time(paused: Run) -> None:
    (course,) = training_courses(paused, ALL, 100)
    took_s = (course.end_us - course.start_us) / 1e6
    assert course.parts_s.sum(axis=1) == pytest.approx(took_s)
    assert course.parts_s[:, PAUSE].tolist() == pytest.approx([0, 0, 0, 0, 0, 40, 0, 0, 0, 0])
    assert course.parts_s[:, LOADER] == pytest.approx(np.full(10, 3.0))
    assert course.shares.sum(axis=1) == pytest.approx(np.ones(10))


@pytest.mark.slow
def test_coarser_stretches_hold_the_same_seconds() -> None:
    rows = [(10.0 * n + (40 if n > 5 else 0) + (90 if n > 15 else 0), 10 * n) for n in range(1, 31)]
    made = logged(rows, step_s=1.0, loader_s=0.3, since={60: "evaluation", 160: "checkpoint"})
    (exact,) = training_courses(made, ALL, 1000)
    for most in range(1, 41):
        (coarse,) = training_courses(made, ALL, most)
        assert len(coarse.start_us) <= most
        assert coarse.parts_s.sum(axis=0) == pytest.approx(exact.parts_s.sum(axis=0), rel=1e-6), most
        assert (coarse.shares <= 1 + 1e-6).all(), most
        if most <= 2:
            assert coarse.cause[-1] == exact.cause.tolist()[15], "the longest pause names the stretch"


def test_ranks_have_rows_of_their_own_and_attempts_after_each_other_share_one() -> None:
    rows = [(10.0 * n, n) for n in range(1, 8)]
    later = [(at + 500, step) for at, step in rows]
    both = pd.concat([steps_of(rows, rank=float(rank), path=f"{rank}.log") for rank in (0, 1)], ignore_index=True)
    after = steps_of(later, rank=1.0, path="1b.log")
    made = run(gpu=gpu(range(600), util_pct=90.0), steps=pd.concat([both, after], ignore_index=True))
    assert [course.name for course in training_courses(made, ALL, 100)] == ["rank 0", "rank 1"]


def test_what_lies_outside_the_window_is_left_out(paused: Run) -> None:
    assert training_courses(paused, (0, ALL[0] - 1), 100) == ()


@pytest.mark.slow
def test_the_timeline_has_the_lane_and_a_run_without_a_log_has_none(paused: Run) -> None:
    assert len(lanes_of(Analysis(paused)).courses) == 1 and pack(lanes_of(Analysis(paused)))
    assert lanes_of(Analysis(run(gpu=gpu(range(60), util_pct=90.0)))).courses == ()


@pytest.mark.slow
def test_the_trace_has_a_slice_a_stretch_and_none_before_its_start() -> None:
    rows = [(10.0 * n + (40 if n > 5 else 0), 10 * n) for n in range(1, 11)]
    made = run(
        gpu=gpu(np.arange(50.0, 200.0), util_pct=90.0),
        steps=steps_of(rows, step_s=1.0, loader_s=0.3, since={60: "evaluation"}),
    )
    events = [event for event in trace(diagnose(made))["traceEvents"] if event.get("cat") == "training"]
    assert {event["pid"] for event in events} == {TRAININGS} and min(event["ts"] for event in events) == 0
    assert [event["name"] for event in events].count("steps and pauses with an evaluation") == 1
    (paused,) = (event for event in events if event["args"].get("paused_s", 0) >= LEAST_PAUSE_S)
    assert paused["args"] == pytest.approx({"steps_s": 10.0, "paused_s": 40.0, "loader_s": 3.0})
    assert paused["dur"] == 50_000_000
    assert (T0 + 100 * SECOND).value // 1000 - ALL[0] == paused["ts"] + paused["dur"]
