"""States of a GPU against what was written, against brute force, and against each other."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from writtentrace import BACKWARD, BASE_US, LOADER, MAIN, SHARES, WrittenTrace, training

import gpudiag as gd
from gpudiag.readers._traces.breakdown import STATES, GpuTime
from gpudiag.schemas import schema


def shares(gpu: GpuTime) -> dict[str, float]:
    return {name: getattr(gpu, name) for name in STATES}


def test_the_shares_are_those_that_were_written(tmp_path: Path) -> None:
    made = gd.read_trace(training().write(tmp_path / "a.json")).breakdown
    (gpu,) = made.gpus
    assert shares(gpu) == pytest.approx(SHARES)
    assert gpu.idle_pct == pytest.approx(61.0) and gpu.name == "NVIDIA H100"
    assert gpu.communication_total_pct == pytest.approx(10.0) and gpu.hidden_pct == pytest.approx(60.0)
    assert (made.n_steps, made.rank, made.world_size) == (4, 1, 4)
    assert made.window_s == pytest.approx(4e-3) and made.step_s == pytest.approx(1e-3)
    assert made.begin == "2023-11-14T22:13:20+00:00"


def test_kernels_by_the_time_they_took(tmp_path: Path) -> None:
    made = gd.read_trace(training(2).write(tmp_path / "a.json")).breakdown
    gemm, nccl, copy = made.kernels
    assert (gemm.n, nccl.n, copy.n) == (4, 2, 2)
    assert gemm.total_s == pytest.approx(1e-3)
    assert [one.share_pct for one in made.kernels] == pytest.approx([500 / 6.5, 100 / 6.5, 50 / 6.5])


def test_a_wait_has_the_name_of_its_operator(tmp_path: Path) -> None:
    (wait,) = gd.read_trace(training(2).write(tmp_path / "a.json")).breakdown.waits
    assert (wait.operator, wait.call, wait.n) == ("aten::item", "cudaStreamSynchronize", 2)
    assert wait.share_pct == pytest.approx(2.5)


def test_only_the_steps_count(tmp_path: Path) -> None:
    made = training(2)
    made.on_gpu("before the first step", -500, 100)
    made.on_gpu("behind the last step", 1900, 9000)
    without = gd.read_trace(training(2).write(tmp_path / "a.json")).breakdown.gpus[0]
    (gpu,) = gd.read_trace(made.write(tmp_path / "b.json")).breakdown.gpus
    assert gpu.compute_pct == pytest.approx(without.compute_pct + 100 * 200 / 2000)
    assert gpu.data_pct == pytest.approx(without.data_pct - 100 * 100 / 2000)


def test_without_steps_all_that_was_recorded_counts(tmp_path: Path) -> None:
    made = WrittenTrace()
    made.on_host("cuda_runtime", "cudaLaunchKernel", 0, 10)
    made.on_gpu("k", 10, 40)
    made.on_gpu("k", 90, 100)
    found = gd.read_trace(made.write(tmp_path / "a.json")).breakdown
    assert found.n_steps == 0 and np.isnan(found.step_s) and found.window_s == pytest.approx(1e-4)
    assert shares(found.gpus[0]) == pytest.approx(dict.fromkeys(STATES, 0.0) | {
        "compute_pct": 40.0, "operator_pct": 10.0, "other_pct": 50.0
    })  # fmt: skip


def test_each_gpu_has_its_own_shares(tmp_path: Path) -> None:
    made = training()
    made.on_gpu("k", 0, 4000, gpu=1)
    first, second = gd.read_trace(made.write(tmp_path / "a.json")).breakdown.gpus
    assert shares(first) == pytest.approx(SHARES)
    assert (second.gpu, second.compute_pct, second.idle_pct) == ("1", pytest.approx(100.0), 0.0)


@pytest.mark.parametrize("gpu_work", [False, True])
def test_without_work_of_a_gpu_there_is_nothing_to_say(tmp_path: Path, gpu_work: bool) -> None:
    made = WrittenTrace()
    made.step(1, 0, 1000)
    made.on_host("cpu_op", "aten::conv2d", 0, 900)
    if gpu_work:
        made.on_gpu("behind the step", 2000, 3000)
    with pytest.raises(gd.NotMeasurable, match=r"ProfilerActivity\.CUDA"):
        _ = gd.read_trace(made.write(tmp_path / "a.json")).breakdown


def test_a_host_that_was_not_recorded_is_no_cause(tmp_path: Path) -> None:
    made = WrittenTrace()
    made.on_gpu("k", 0, 40)
    made.on_gpu("k", 60, 100)
    found = gd.read_trace(made.write(tmp_path / "a.json")).breakdown
    assert not found.host_recorded and found.gpus[0].idle_pct == pytest.approx(20.0)
    assert "Operators of the host were not recorded." in " ".join(repr(found).split())


def test_the_document_fits_its_schema(tmp_path: Path) -> None:
    for made in (training(), training(1)):
        document = json.loads(gd.read_trace(made.write(tmp_path / "a.json")).breakdown.to_json())
        Draft202012Validator(schema("trace-1")).validate(document)


def test_a_copy_to_pageable_memory_blocks_its_call(tmp_path: Path) -> None:
    made = WrittenTrace()
    made.step(1, 0, 100)
    made.on_host("cpu_op", "aten::item", 0, 60)
    made.on_host("cuda_runtime", "cudaMemcpyAsync", 10, 60)
    made.on_host("cuda_runtime", "cudaMemcpyAsync", 70, 80)
    made.on_gpu("Memcpy DtoH (Device -> Pageable)", 50, 60, cat="gpu_memcpy")
    made.on_gpu("Memcpy DtoH (Device -> Pinned)", 80, 90, cat="gpu_memcpy")
    made.on_host("cuda_runtime", "cudaLaunchKernel", 0, 1)
    for call, copy in ((2, 4), (3, 5)):
        made.events[call]["args"]["correlation"] = made.events[copy]["args"]["correlation"] = 1000 + call
    found = gd.read_trace(made.write(tmp_path / "a.json")).breakdown
    assert shares(found.gpus[0])["sync_pct"] == pytest.approx(40.0)
    assert shares(found.gpus[0])["operator_pct"] == pytest.approx(20.0)
    assert [(one.operator, one.call) for one in found.waits] == [("aten::item", "cudaMemcpyAsync")]


def test_a_long_call_of_cuda_sets_something_up(tmp_path: Path) -> None:
    made = WrittenTrace()
    made.step(1, 0, 10_000)
    made.on_host("cpu_op", "aten::to", 0, 9000)
    made.on_host("cuda_runtime", "cudaDeviceGetStreamPriorityRange", 1000, 5000)
    made.on_host("cuda_runtime", "cudaLaunchKernel", 6000, 6010)
    made.on_gpu("k", 9000, 10_000)
    (gpu,) = gd.read_trace(made.write(tmp_path / "a.json")).breakdown.gpus
    assert (gpu.setup_pct, gpu.operator_pct, gpu.compute_pct) == pytest.approx((40.0, 50.0, 10.0))


def test_short_kernels_keep_their_nanoseconds(tmp_path: Path) -> None:
    made = WrittenTrace()
    for at in range(500):
        made.on_gpu("k", 0, 0)
        made.events[-1] |= {"ts": f"@{BASE_US + at * 1400 // 1000}.{at * 1400 % 1000:03d}@", "dur": 1.3}
    path = tmp_path / "a.json"
    path.write_text(made.text().replace('"@', "").replace('@"', ""))
    (gpu,) = gd.read_trace(path).breakdown.gpus
    assert gpu.idle_pct == pytest.approx(100 * 0.1 * 499 / (1.4 * 499 + 1.3), rel=1e-6)


def test_nested_steps_are_one_and_gaps_count_nothing(tmp_path: Path) -> None:
    made = WrittenTrace()
    for number, start in enumerate((0, 200)):
        made.step(number, start, start + 100)
        for inner in range(4):
            made.step(100 + inner, start + 25 * inner, start + 25 * inner + 25)
    for at in (10, 110, 150, 210):
        made.on_gpu("k", at, at + 10)
    made.on_host("cpu_op", "aten::mm", 0, 300)
    found = gd.read_trace(made.write(tmp_path / "a.json")).breakdown
    assert found.n_steps == 2 and found.window_s == pytest.approx(2e-4) and found.step_s == pytest.approx(1e-4)
    assert found.kernels[0].n == 2 and found.gpus[0].compute_pct == pytest.approx(10.0)


def test_operators_that_touch_are_told_apart(tmp_path: Path) -> None:
    made = WrittenTrace()
    made.on_host("cpu_op", "aten::conv2d", 0, 100)
    made.on_host("cpu_op", "aten::item", 100, 200)
    made.on_host("cuda_runtime", "cudaLaunchKernel", 10, 20)
    made.on_host("cuda_runtime", "cudaStreamSynchronize", 120, 200)
    made.on_gpu("k", 50, 190)
    assert gd.read_trace(made.write(tmp_path / "a.json")).breakdown.waits[0].operator == "aten::item"


def test_kernels_of_one_name_are_one(tmp_path: Path) -> None:
    made = WrittenTrace()
    for at, name in enumerate(
        ("void a::k<float, 4>(int)", "void a::k<half>(int)", "void (anonymous namespace)::b(int)")
    ):
        made.on_gpu(name, 10 * at, 10 * at + 10)
    made.on_gpu("Memcpy HtoD (Pinned -> Device)", 30, 35, cat="gpu_memcpy")
    found = gd.read_trace(made.write(tmp_path / "a.json")).breakdown.kernels
    assert [(one.name, one.n) for one in found] == [("a::k", 2), ("b", 1), ("Memcpy HtoD (Pinned -> Device)", 1)]


def test_several_processes_are_refused(tmp_path: Path) -> None:
    made = training(1)
    made.on_host("cuda_runtime", "cudaLaunchKernel", 300, 310)
    made.events[-1]["pid"] = 99
    with pytest.raises(gd.NotMeasurable, match="2 processes"):
        _ = gd.read_trace(made.write(tmp_path / "a.json")).breakdown


def test_the_gpu_that_worked_most_is_spoken_of(tmp_path: Path) -> None:
    made = training(1)
    made.on_gpu("Memset", 0, 1, cat="gpu_memset", gpu=1)
    assert "GPU 0, which worked most, was idle for 61 %" in " ".join(
        repr(gd.read_trace(made.write(tmp_path / "a.json"))).split()
    )


def test_events_out_of_the_world_are_left_out(tmp_path: Path) -> None:
    made = training(1)
    ordinary = gd.read_trace(made.write(tmp_path / "a.json")).breakdown.gpus
    made.on_gpu("far", -BASE_US, 5 - BASE_US)
    made.on_gpu("long", 10, 1e300)
    made.on_gpu("k", 10, 900, gpu=-5)
    made.on_gpu("k", 10, 900, gpu=3000)
    found = gd.read_trace(made.write(tmp_path / "b.json"))
    assert found.breakdown.gpus == ordinary
    assert {one.kind: one.count for one in found.problems} == {
        "event at an impossible time": 1, "event of an impossible GPU": 2
    }  # fmt: skip


def test_names_go_by_the_id_of_a_gpu(tmp_path: Path) -> None:
    made = training(1)
    made.beside["deviceProperties"] = [{"id": 1, "name": "B"}, {"id": 0, "name": "A"}, 5, {"id": "x", "name": 7}]
    assert gd.read_trace(made.write(tmp_path / "a.json")).breakdown.gpus[0].name == "A"


HOST = (
    ("user_annotation", "enumerate(DataLoader)#x.__next__", "data_pct"),
    ("cuda_runtime", "cudaDeviceSynchronize", "sync_pct"),
    ("cuda_runtime", "cudaFree", "memory_pct"),
    ("cpu_op", "Optimizer.step#Adam.step", "optimizer_pct"),
    ("cpu_op", "aten::mm", "operator_pct"),
    ("cuda_runtime", "cudaLaunchKernel", "operator_pct"),
)
GPU = (("kernel", "gemm", "compute_pct"), ("kernel", "ncclKernel", "communication_pct"),
       ("gpu_memcpy", "Memcpy DtoH", "copy_pct"), ("gpu_memset", "Memset", "copy_pct"))  # fmt: skip
WORK = st.tuples(st.integers(-5, 60), st.integers(0, 25), st.integers(0, 9))


def usual(said: list[str], steps: list[int]) -> list[list[str]]:
    """The states of the steps but for those that are idle, waits for data aside, for longer than one takes."""
    each = [said[low:high] for low, high in pairwise(np.cumsum([0, *steps]))]
    work = ("compute_pct", "communication_pct", "copy_pct")
    kept = [one for one in each if sum(state not in (*work, "data_pct") for state in one) <= np.median(steps)]
    works = any(state in work for one in kept for state in one)
    return kept if len(steps) >= 3 and works else each


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(WORK, min_size=1, max_size=25), st.lists(st.integers(1, 20), min_size=1, max_size=4))
def test_every_microsecond_has_the_state_that_brute_force_gives_it(
    tmp_path_factory: pytest.TempPathFactory, work: list[tuple[int, int, int]], steps: list[int]
) -> None:
    made, edges = WrittenTrace(), np.cumsum([0, *steps])
    for number, (low, high) in enumerate(pairwise(edges)):
        made.step(number, float(low), float(high))
    made.on_gpu("gemm", 0, 1)
    kinds = [*GPU, *HOST]
    held = [(0, 1, "compute_pct")]
    for start, length, kind in work:
        cat, name, state = kinds[kind]
        held.append((start, start + length, state))
        if kind < len(GPU):
            made.on_gpu(name, start, start + length, cat=cat, stream=start)
        else:
            made.on_host(cat, name, start, start + length, thread=MAIN if start % 2 else BACKWARD)
    made.on_host("cuda_runtime", "cudaLaunchKernel", -9, -8, thread=BACKWARD)
    made.on_host("cpu_op", "of another thread", -9, 90, thread=LOADER)
    (gpu,) = gd.read_trace(made.write(tmp_path_factory.mktemp("t") / "a.json")).breakdown.gpus
    said = [
        next(
            (state for state in STATES if any(low <= at < high and of == state for low, high, of in held)), "other_pct"
        )
        for at in range(edges[-1])
    ]
    said = [state for step in usual(said, steps) for state in step]
    assert shares(gpu) == pytest.approx({name: 100 * said.count(name) / len(said) for name in STATES}, abs=1e-6)
    assert gpu.idle_pct + gpu.compute_pct + gpu.communication_pct + gpu.copy_pct == pytest.approx(100.0)
    assert sum(shares(gpu).values()) == pytest.approx(100.0)


@pytest.mark.parametrize(
    ("name", "talks"),
    [
        ("void (anonymous namespace)::one_shot_all_reduce_kernel<float, 4>(float**)", True),
        ("void tensorrt_llm::kernels::twoShotAllReduceKernel<__nv_bfloat16, 8>", True),
        ("void tensorrt_llm::kernels::ar_fusion::allreduce_fusion_kernel_oneshot_lamport<(x)1>", True),
        ("void deep_ep::intranode::dispatch<8, 768>(int)", True),
        ("mscclKernel_Sum_half_LL", True),
        ("multimem_all_gather_kernel", True),
        ("void quickreduce::allreduce_prototype_twoshot<8>", True),
        ("triton_poi_fused_all_gather_into_tensor_wait_tensor_add_0", False),
        ("void at::native::elementwise_kernel<128, at::WarpAllReduce<float>>(int)", False),
        ("void at::native::reduce_kernel<512, 1>", False),
    ],
)
def test_collectives_are_known_by_the_name_of_their_kernel(tmp_path: Path, name: str, talks: bool) -> None:
    made = WrittenTrace()
    made.on_gpu("gemm", 0, 50)
    made.on_gpu(name, 50, 100)
    (gpu,) = gd.read_trace(made.write(tmp_path / "a.json")).breakdown.gpus
    assert gpu.communication_total_pct == pytest.approx(50.0 if talks else 0.0)


def test_a_copy_from_pageable_memory_is_no_launch(tmp_path: Path) -> None:
    """The host copies for 40 us, and the GPU for 10 more; the operator around it prepares no kernel meanwhile."""
    made = WrittenTrace()
    made.step(1, 0, 100)
    made.on_host("cpu_op", "aten::copy_", 0, 60)
    made.launched("Memcpy HtoD (Pageable -> Device)", 10, 50, 60, cat="gpu_memcpy")
    made.events[-1]["dur"] = 50
    made.launched("gemm", 60, 60, 100)
    (gpu,) = gd.read_trace(made.write(tmp_path / "a.json")).breakdown.gpus
    assert (gpu.operator_pct, gpu.pageable_pct, gpu.copy_pct, gpu.compute_pct) == pytest.approx((10, 40, 10, 40))
