"""Steps of a host that runs ahead of the GPU: they last until their kernels are done, and what lies in none is said."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_nsight import exported
from writtentrace import WrittenTrace

import gpudiag as gd
from gpudiag.readers._traces.breakdown import TraceBreakdown
from gpudiag.report.kinds.traces import sentences

STEP, HOST, KERNEL = 1000.0, 100.0, 180.0


def ahead(n_steps: int = 6, kernels: int = 5) -> WrittenTrace:
    """The host leaves each step after 100 us; its kernels take 900 us, and the GPU is idle for 100 us between."""
    made = WrittenTrace()
    for number in range(n_steps):
        made.step(number, HOST * number, HOST * (number + 1))
        for at in range(kernels):
            begin = STEP * number + 100 + KERNEL * at
            made.launched("gemm", HOST * number + 10 + at, begin, begin + KERNEL)
    made.on_host("cpu_op", "aten::mm", 0, 1)
    return made


def broken_down(made: WrittenTrace, tmp_path: Path) -> TraceBreakdown:
    return gd.read_trace(made.write(tmp_path / "a.json")).breakdown


def test_steps_last_until_their_kernels_are_done(tmp_path: Path) -> None:
    found = broken_down(ahead(), tmp_path)
    assert (found.n_steps, found.kernels[0].n, found.outside_s) == (6, 30, 0.0)
    assert found.window_s == pytest.approx(6e-3)
    assert (found.step_low_s, found.step_s, found.step_high_s) == pytest.approx((1e-3,) * 3)
    assert found.gpus[0].compute_pct == pytest.approx(90.0)


def test_a_report_of_nsight_systems_has_the_same_steps(tmp_path: Path) -> None:
    found = gd.read_trace(exported(ahead(), tmp_path / "report.sqlite")).breakdown
    assert (found.n_steps, found.step_s) == (6, pytest.approx(1e-3))
    assert found.gpus[0].compute_pct == pytest.approx(90.0)


def test_without_launches_the_steps_that_kineto_draws_on_the_gpu_count(tmp_path: Path) -> None:
    made = ahead()
    made.events = [one for one in made.events if one["cat"] != "cuda_runtime"]
    for number in range(6):
        made.on_gpu(f"ProfilerStep#{number}", STEP * number + 100, STEP * number + 500, cat="gpu_user_annotation")
        begin, end = STEP * number + 300, STEP * (number + 1)
        made.on_gpu(f"ProfilerStep#{number}", begin, end, cat="gpu_user_annotation", stream=9)
        made.on_gpu(f"## another {number}", begin, end + 500, cat="gpu_user_annotation")
    found = broken_down(made, tmp_path)
    assert (found.n_steps, found.step_s, found.window_s) == (6, pytest.approx(1e-3), pytest.approx(6e-3))
    assert found.gpus[0].compute_pct == pytest.approx(90.0)


def test_a_host_that_waits_in_each_step_keeps_its_steps(tmp_path: Path) -> None:
    """The 200 us from the last kernel to the end of the step are the step's own."""
    made = WrittenTrace()
    for number in range(4):
        at = STEP * number
        made.step(number, at, at + STEP)
        made.launched("gemm", at + 100, at + 110, at + 800)
    found = broken_down(made, tmp_path)
    assert gd.read_trace(tmp_path / "a.json").steps["end_us"].tolist() == pytest.approx([1000, 2000, 3000, 4000])
    assert found.window_s == pytest.approx(4e-3) and found.gpus[0].idle_pct == pytest.approx(31.0)


def test_work_launched_before_the_first_step_is_not_its_own(tmp_path: Path) -> None:
    """The GPU is half a millisecond behind as the profile begins: with the launch in the trace, and without."""
    for recorded in (True, False):
        made = ahead(n_steps=3)
        for event in made.events:
            if event["cat"] == "kernel":
                event["ts"] += 500
        if recorded:
            made.launched("before", -50, -40, 500)
        else:
            made.on_gpu("before", 0, 500)
            made.events[-1]["args"]["correlation"] = 7
        found = broken_down(made, tmp_path)
        assert found.window_s == pytest.approx(3e-3) and found.step_high_s == pytest.approx(1e-3)
        assert {one.name for one in found.kernels} == {"gemm"} and found.outside_s == pytest.approx(
            540e-6 if recorded else 500e-6
        )


def test_a_copy_in_the_background_makes_no_step_longer(tmp_path: Path) -> None:
    made = ahead()
    made.launched("Memcpy DtoH (Device -> Pinned)", 50, 1000, 9000, cat="gpu_memcpy")
    found = broken_down(made, tmp_path)
    assert found.window_s == pytest.approx(6e-3) and found.step_high_s == pytest.approx(1e-3)
    assert found.outside_s == pytest.approx(3e-3)
    assert "GPU work of 3 ms that lies in none of the steps" in " ".join(sentences(found))


def test_work_between_steps_is_in_none(tmp_path: Path) -> None:
    made = WrittenTrace()
    for number, at in enumerate((0, 1000, 2000, 9000)):
        made.step(number, at, at + 1000)
        made.launched("gemm", at + 10, at + 100, at + 1000)
    made.launched("evaluate", 4000, 4010, 7010)
    found = broken_down(made, tmp_path)
    assert (found.n_steps, found.window_s) == (4, pytest.approx(4e-3))
    assert found.outside_s == pytest.approx(3e-3) and [one.name for one in found.kernels] == ["gemm"]


@pytest.mark.parametrize("at", [0, 2])
def test_a_step_in_which_something_else_happened_is_left_out_and_said(tmp_path: Path, at: int) -> None:
    made, now = WrittenTrace(), 0.0
    for number in range(5):
        begin, now = now, now + (30_000 if number == at else 0)
        made.on_host("cpu_op", "aten::mm", begin, now + 50)
        made.launched("gemm", now + 10, now + 50, now + 1000)
        now += 1000
        made.step(number, begin, now)
    found = broken_down(made, tmp_path)
    assert (found.n_steps, found.n_odd_steps, found.odd_steps_s) == (4, 1, pytest.approx(31e-3))
    assert found.window_s == pytest.approx(4e-3) and found.gpus[0].idle_pct == pytest.approx(5.0)
    text = " ".join(sentences(found))
    assert "4 profiled steps of rank 1 of 4, of 1 ms on" in text and "Not counted: 1 more step of 31 ms" in text
    assert found.outside_s == 0.0, "its kernel is in a step"


def test_the_only_step_with_work_is_never_odd(tmp_path: Path) -> None:
    made = WrittenTrace()
    for number, (start, end) in enumerate([(0, 10), (10, 9000), (9000, 9010), (9010, 9020)]):
        made.step(number, start, end)
    made.launched("gemm", 20, 4000, 4900)
    found = broken_down(made, tmp_path)
    assert (found.n_steps, found.n_odd_steps) == (4, 0) and found.gpus[0].compute_pct == pytest.approx(90 / 9.02)


def test_of_two_steps_none_is_odd(tmp_path: Path) -> None:
    made = WrittenTrace()
    made.step(1, 0, 30_000)
    made.step(2, 30_000, 31_000)
    made.launched("gemm", 30_000, 30_100, 31_000)
    found = broken_down(made, tmp_path)
    assert (found.n_steps, found.n_odd_steps) == (2, 0) and found.gpus[0].compute_pct == pytest.approx(90 / 31)


def test_a_step_that_waits_for_data_or_computes_for_long_is_one_of_them(tmp_path: Path) -> None:
    made, now = WrittenTrace(), 0.0
    for number in range(8):
        wait, work = (30_000.0 if number == 3 else 100.0), (20_000.0 if number == 6 else 900.0)
        made.step(number, now, now + wait + work)
        made.on_host("user_annotation", "enumerate(DataLoader)#x.__next__", now, now + wait)
        made.launched("gemm", now + wait, now + wait, now + wait + work)
        now += wait + work
    found = broken_down(made, tmp_path)
    assert (found.n_steps, found.n_odd_steps, found.window_s) == (8, 0, pytest.approx(now / 1e6))
    assert "of 7.12 ms on average, 1 ms in the median (1 ms to 30.9 ms)" in " ".join(sentences(found))
