"""A gap between kernels that were queued is of no cause of the host; one that a late launch ended is."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_nsight import exported
from writtentrace import WrittenTrace

import gpudiag as gd
from gpudiag.readers._traces.breakdown import GpuTime
from gpudiag.report.kinds.traces import DO, sentences


def in_step() -> WrittenTrace:
    """A step of 100 us whose host waits for the GPU from 30 us on."""
    made = WrittenTrace()
    made.step(1, 0, 100)
    made.on_host("cuda_runtime", "cudaDeviceSynchronize", 30, 100)
    return made


def of_gpu(made: WrittenTrace, path: Path) -> GpuTime:
    return gd.read_trace(made.write(path / "a.json")).breakdown.gpus[0]


@pytest.mark.parametrize(("launched_us", "queued"), [(8, True), (35, True), (36, False), (60, False)])
def test_a_gap_is_queued_where_the_next_launch_had_returned_before_it(
    tmp_path: Path, launched_us: float, queued: bool
) -> None:
    """Work from 10 to 40 and from 70 to 100 us; a launch takes 5 us."""
    made = in_step()
    made.launched("gemm", 1, 10, 40)
    made.launched("gemm", launched_us, 70, 100)
    for gpu in (
        of_gpu(made, tmp_path), gd.read_trace(exported(made, tmp_path / "a.sqlite")).breakdown.gpus[0]
    ):  # fmt: skip
        assert gpu.queued_pct == pytest.approx(30.0 if queued else 0.0)
        assert gpu.sync_pct == pytest.approx(0.0 if queued else 30.0)
        assert gpu.idle_pct == pytest.approx(40.0)


def test_the_page_says_it_and_names_no_blocking_call(tmp_path: Path) -> None:
    made = in_step()
    made.launched("gemm", 1, 10, 40)
    made.launched("gemm", 8, 70, 100)
    said = " ".join(sentences(gd.read_trace(made.write(tmp_path / "a.json")).breakdown))
    assert "idle for 40 % of that time: 30 % between queued kernels." in said
    assert DO["queued_pct"] in said and DO["sync_pct"] not in said


def test_work_launched_before_the_trace_was_queued(tmp_path: Path) -> None:
    """Calls are numbered in their order: a kernel with a lower number than all was launched before them."""
    made = WrittenTrace()
    made.on_gpu("gemm", 0, 40)
    made.on_gpu("gemm", 70, 80)
    made.on_host("cuda_runtime", "cudaDeviceSynchronize", 30, 90)
    made.launched("gemm", 92, 97, 100)
    gpu = of_gpu(made, tmp_path)
    assert (gpu.queued_pct, gpu.sync_pct, gpu.compute_pct) == pytest.approx((30.0, 10.0, 53.0))


def test_without_a_launch_on_record_it_is_what_the_host_did(tmp_path: Path) -> None:
    made = in_step()
    made.launched("gemm", 1, 0, 40)
    made.on_gpu("gemm", 70, 100)
    made.events[-1]["args"]["correlation"] = 10**6
    gpu = of_gpu(made, tmp_path)
    assert (gpu.queued_pct, gpu.sync_pct) == pytest.approx((0.0, 30.0))


def test_the_next_work_of_that_gpu_counts_in_any_stream(tmp_path: Path) -> None:
    """A copy that was queued ends the gap, though the kernel behind it came late; another GPU says nothing of it."""
    made = in_step()
    made.launched("gemm", 1, 0, 40)
    made.launched("Memcpy DtoH (Device -> Pinned)", 8, 70, 75, cat="gpu_memcpy")
    made.launched("gemm", 60, 75, 100)
    made.launched("gemm", 14, 0, 30, gpu=1)
    made.launched("gemm", 45, 50, 100, gpu=1)
    first, second = gd.read_trace(made.write(tmp_path / "a.json")).breakdown.gpus
    assert (first.queued_pct, first.sync_pct) == pytest.approx((30.0, 0.0))
    assert (second.queued_pct, second.sync_pct) == pytest.approx((0.0, 20.0))


def test_a_step_that_launched_nothing_before_the_earlier_work_was_done_is_no_crash(tmp_path: Path) -> None:
    made = WrittenTrace()
    made.launched("gemm", 0, 10, 200)
    made.step(1, 20, 100)
    with pytest.raises(gd.NotMeasurable, match="no work of a GPU in its profiled steps"):
        of_gpu(made, tmp_path)
