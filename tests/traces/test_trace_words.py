"""What is said of a trace: the idle share and its cause, what to do, and only where the trace shows it."""

from __future__ import annotations

from pathlib import Path

import pytest
from writtentrace import WrittenTrace, training

import gpudiag as gd
from gpudiag.readers._traces.breakdown import STATES
from gpudiag.report.kinds.traces import DO, WORDS, sentences


def said(made: WrittenTrace, tmp_path: Path) -> str:
    return " ".join(sentences(gd.read_trace(made.write(tmp_path / "a.json")).breakdown))


def test_the_idle_share_and_its_causes_come_first(tmp_path: Path) -> None:
    text = said(training(), tmp_path)
    assert text.startswith("4 profiled steps of rank 1 of 4, of 1 ms on 2023-11-14 22:13:20 UTC.")
    assert "The GPU was idle for 61 % of that time: 20 % while the host prepared kernels, 20 % while the host" in text
    assert "GPU 0 communicated for 10 %; 60 % of that was hidden behind computing." in text


@pytest.mark.parametrize(
    ("cat", "name", "state"),
    [
        ("user_annotation", "enumerate(DataLoader)#x.__next__", "data_pct"),
        ("cuda_runtime", "cudaDeviceSynchronize", "sync_pct"),
        ("cuda_runtime", "cudaMalloc", "memory_pct"),
        ("user_annotation", "Optimizer.step#AdamW.step", "optimizer_pct"),
        ("cpu_op", "aten::mm", "operator_pct"),
        ("user_annotation", "nothing known", "other_pct"),
    ],
)
@pytest.mark.parametrize("length", [4, 30])
def test_the_advice_is_that_of_the_greatest_loss(tmp_path: Path, cat: str, name: str, state: str, length: int) -> None:
    made = WrittenTrace()
    made.step(1, 0, 100)
    made.on_host("cpu_op", "aten::mm", 0, 1)  # while the GPU computes
    made.on_host(cat, name, 100 - length, 100)
    made.on_gpu("gemm", 0, 100 - length)
    text = said(made, tmp_path)
    assert (DO[state] in text) == (length >= 5)
    assert [other for other in DO if DO[other] in text] == ([state] if length >= 5 else [])
    assert (f"a step would take {length} % less, at most" in text) == (length >= 5)


@pytest.mark.parametrize(("name", "state"), [("ncclDevKernel", "communication_pct"), ("Memcpy HtoD", "copy_pct")])
@pytest.mark.parametrize("length", [9, 11])
def test_communication_and_copies_matter_from_a_tenth_on(tmp_path: Path, name: str, state: str, length: int) -> None:
    made = WrittenTrace()
    made.step(1, 0, 100)
    made.on_gpu("gemm", 0, 100 - length)
    made.on_gpu(name, 100 - length, 100, cat="kernel" if state == "communication_pct" else "gpu_memcpy")
    assert (DO[state] in said(made, tmp_path)) == (length > 10)


def test_a_kernel_of_memory_efficient_attention_is_no_copy(tmp_path: Path) -> None:
    made = WrittenTrace()
    made.step(1, 0, 100)
    made.on_gpu("fmha_MemEffAttention_sm80", 0, 70)
    made.on_gpu("Memcpy HtoD (Pageable -> Device)", 70, 100, cat="gpu_memcpy")
    text = said(made, tmp_path)
    assert "Most of it is Memcpy HtoD" in text and "Most of it is fmha" not in text


def test_several_ranks_without_a_kernel_that_communicates_are_said(tmp_path: Path) -> None:
    made = WrittenTrace()
    made.on_gpu("gemm", 0, 60)
    assert "No kernel is known to communicate between the 4 ranks; others count as computing." in said(made, tmp_path)
    made.on_gpu("ncclDevKernel", 60, 70)
    assert "No kernel is known" not in said(made, tmp_path)
    del made.events[-1], made.beside["distributedInfo"]
    assert "No kernel is known" not in said(made, tmp_path)


@pytest.mark.parametrize("stack", [False, True])
def test_python_functions_are_asked_for_where_the_trace_has_none(tmp_path: Path, stack: bool) -> None:
    made = WrittenTrace()
    made.step(1, 0, 100)
    made.on_host("cpu_op", "aten::mm", 0, 1)
    made.on_gpu("gemm", 0, 50)
    if stack:
        made.on_host("python_function", "train.py(3): augment", 50, 100)
    text = said(made, tmp_path)
    assert DO["other_pct"] in text and ("with_stack" in text) is not stack


def test_every_state_has_its_words() -> None:
    assert set(WORDS) == set(STATES) and set(DO) == set(STATES) - {"compute_pct"}


def test_names_of_a_trace_are_no_markup_and_no_command(tmp_path: Path) -> None:
    made = training(1)
    made.on_gpu("<img src=x onerror=alert(1)>\n::error::x\x1b[31m", 0, 900)
    made.beside["deviceProperties"] = [{"name": "<script>alert(1)</script>"}]
    trace = gd.read_trace(made.write(tmp_path / "<b>.json"))
    page = trace._repr_html_() + trace.breakdown._repr_html_()
    assert "<img" not in page and "<script>alert" not in page and "<b>.json" not in page
    assert "\x1b" not in repr(trace) and "\n::error" not in repr(trace)
