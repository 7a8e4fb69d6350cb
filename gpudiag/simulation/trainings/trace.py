"""What torch.profiler would have written of some steps of one rank: a Chrome trace in Kineto's form."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

import pandas as pd

from gpudiag.plain_data import JsonObject
from gpudiag.simulation.trainings.spec import TrainingSpec
from gpudiag.simulation.trainings.world import RankHistory

MAIN, PID = 4711, 4711
STREAM, COPIES = 7, 8
HOST_EVENTS = {
    "loader": ("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"),
    "launch": ("cpu_op", "aten::conv2d"),
    "copy": ("cpu_op", "aten::copy_"),
    "sync": ("cuda_runtime", "cudaStreamSynchronize"),
    "first_step": ("cpu_op", "aten::compile"),
}
"""By state of the host: how such work is recorded. Other code of the script is not."""
TO_DEVICE = "Memcpy HtoD (Pageable -> Device)"
LAUNCH_US = 6.0


def trace_document(spec: TrainingSpec, rank: RankHistory, number: int, origin: pd.Timestamp) -> JsonObject:
    """The trace of the spec's profiled steps of one rank; its times count from 1970."""
    assert spec.profiler is not None
    steps = [
        step for step in rank.steps
        if spec.profiler.first <= step.number < spec.profiler.first + spec.profiler.n_steps
    ]  # fmt: skip
    start, end = steps[0].start_s, steps[-1].end_s
    zero_us = origin.value // 1000
    events: list[JsonObject] = []
    for cat, name, tid, begin, stop, correlation in _events(rank, start, end):
        args: JsonObject = {"correlation": correlation} if correlation else {}
        if tid in (STREAM, COPIES):
            args |= {"device": number, "stream": tid}
        times = {"ts": round(zero_us + 1e6 * begin, 3), "dur": round(1e6 * (stop - begin), 3)}
        where = {"pid": number if tid in (STREAM, COPIES) else PID, "tid": tid}
        events.append({"ph": "X", "cat": cat, "name": name, **where, **times, "args": args})
    for step in steps:
        times = {"ts": round(zero_us + 1e6 * step.start_s, 3), "dur": round(1e6 * (step.end_s - step.start_s), 3)}
        name = f"ProfilerStep#{step.number}"
        events.append({"ph": "X", "cat": "user_annotation", "name": name, "pid": PID, "tid": MAIN, **times, "args": {}})
    return {
        "schemaVersion": 1,
        "deviceProperties": [{"id": at, "name": spec.gpu.name} for at in range(len(spec.pace))],
        "distributedInfo": {"backend": "nccl", "rank": number, "world_size": len(spec.pace)},
        "traceEvents": list(events),
    }


def _events(rank: RankHistory, start: float, end: float) -> Iterator[tuple[str, str, int, float, float, int]]:
    """(category, name, thread or stream, start, end, correlation) of what lies between two times."""
    for begin, stop, state in rank.host:
        if begin < end and stop > start and state in HOST_EVENTS:
            yield (*HOST_EVENTS[state], MAIN, begin, stop, 0)
    talks = set(rank.talks)
    for begin, stop, position in rank.launches:
        kernel = rank.kernels[position]
        if not (kernel[0] < end and kernel[1] > start):
            continue
        launch = max(begin, stop - LAUNCH_US / 1e6)
        yield "cuda_runtime", "cudaLaunchKernel", MAIN, launch, stop, position + 1
        name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL" if kernel in talks else "void gemm<128, 64>(float*)"
        yield "kernel", name, STREAM, *kernel, position + 1
    first = bisect_left(rank.copies, (start, start))
    for begin, stop in rank.copies[max(first - 1, 0) :]:
        if begin >= end:
            break
        yield "gpu_memcpy", TO_DEVICE, COPIES, begin, stop, 0
