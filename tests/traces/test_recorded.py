"""A trace that torch.profiler wrote of a real training on a CPU, and the same with a GPU's work drawn into it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import gpudiag as gd

RECORDED = Path(__file__).resolve().parents[1] / "recorded" / "torch_profiler_cpu.pt.trace.json.gz"


def recorded() -> dict[str, Any]:
    return json.loads(gzip.decompress(RECORDED.read_bytes()))


def named(document: dict[str, Any], name: str) -> list[tuple[float, float]]:
    """Starts and ends in microseconds of the events whose name begins so."""
    events = (one for one in document["traceEvents"] if one.get("ph") == "X" and one["name"].startswith(name))
    return sorted((one["ts"], one["ts"] + one["dur"]) for one in events)


def test_a_trace_without_a_gpu_says_what_to_record() -> None:
    with pytest.raises(gd.NotMeasurable, match=r"(?s)no work of a GPU.*ProfilerActivity\.CUDA"):
        _ = gd.read_trace(RECORDED).breakdown


def test_what_a_real_host_did_while_the_gpu_was_idle(tmp_path: Path) -> None:
    """A kernel runs for the middle third of each step's time behind its wait for data."""
    document = recorded()
    steps, waits, applied = (named(document, name) for name in ("ProfilerStep#", "enumerate(", "Optimizer.step#"))
    assert len(steps) == len(waits) == len(applied) == 4
    kernels = []
    for (_, begin), (low, _) in zip(waits, applied, strict=True):
        third = (low - begin) / 3
        where = {"pid": 0, "tid": 7, "args": {"device": 0, "stream": 7}}
        kernels.append({"ph": "X", "cat": "kernel", "name": "gemm", "ts": begin + third, "dur": third, **where})
    document["traceEvents"] += kernels
    path = tmp_path / "drawn.pt.trace.json"
    path.write_text(json.dumps(document))
    made = gd.read_trace(path).breakdown
    (gpu,) = made.gpus
    window_us = sum(high - low for low, high in steps)
    assert (made.n_steps, made.window_s) == (4, pytest.approx(window_us / 1e6, rel=1e-6))
    assert gpu.data_pct == pytest.approx(100 * sum(high - low for low, high in waits) / window_us, abs=0.02)
    assert gpu.compute_pct == pytest.approx(100 * sum(one["dur"] for one in kernels) / window_us, abs=0.02)
    optimizer = named(document, "Optimizer.")  # zero_grad as well
    assert gpu.optimizer_pct == pytest.approx(100 * sum(high - low for low, high in optimizer) / window_us, abs=0.02)
    assert gpu.data_pct > 95 and gpu.operator_pct > 0.5
