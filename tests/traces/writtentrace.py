"""Traces of torch.profiler whose truth is known: events in its form, written plain, compact or compressed."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BASE_US = 1_700_000_000_000_000
MAIN, BACKWARD, LOADER = "4711", "4712", "4713"


@dataclass
class WrittenTrace:
    """Events are added with times in microseconds since BASE_US; a thread is known by its number."""

    events: list[dict[str, Any]] = field(default_factory=list)
    beside: dict[str, Any] = field(
        default_factory=lambda: {
            "schemaVersion": 1,
            "deviceProperties": [{"id": 0, "name": "NVIDIA H100"}, {"id": 1, "name": "NVIDIA H100"}],
            "distributedInfo": {"backend": "nccl", "rank": 1, "world_size": 4},
        }
    )

    def on_gpu(
        self, name: str, start: float, end: float, *, cat: str = "kernel", gpu: int = 0, stream: int = 7
    ) -> None:
        args = {"device": gpu, "stream": stream, "correlation": len(self.events), "grid": [1, 2, 3]}
        self._add(cat, name, gpu, stream, start, end, args)

    def on_host(self, cat: str, name: str, start: float, end: float, thread: str = MAIN) -> None:
        self._add(cat, name, 4711, int(thread), start, end, {"External id": len(self.events)})

    def launched(self, name: str, at: float, start: float, end: float, *, cat: str = "kernel", gpu: int = 0) -> None:
        """A call of 5 us and what it launched."""
        call = {"kernel": "cudaLaunchKernel", "gpu_memcpy": "cudaMemcpyAsync"}[cat]
        self.on_gpu(name, start, end, cat=cat, gpu=gpu)
        args = self.events[-1]["args"] = self.events[-1]["args"] | {"correlation": len(self.events) + 1000}
        self._add("cuda_runtime", call, 4711, int(MAIN), at, at + 5, {"correlation": args["correlation"]})

    def step(self, number: int, start: float, end: float) -> None:
        self.on_host("user_annotation", f"ProfilerStep#{number}", start, end)

    def _add(self, cat: str, name: str, pid: int, tid: int, start: float, end: float, args: dict[str, Any]) -> None:
        self.events.append(
            {
                "ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid,
                "ts": BASE_US + start, "dur": end - start, "args": args,
            }
        )  # fmt: skip

    def text(self, *, indent: int | None = 2) -> str:
        meta = {"name": "process_name", "ph": "M", "ts": BASE_US, "pid": 4711, "tid": 0, "args": {"name": "python"}}
        flow = {"ph": "s", "id": 1, "pid": 4711, "tid": 4711, "ts": BASE_US + 1, "cat": "ac2g", "name": "ac2g"}
        document = self.beside | {"traceEvents": [meta, *self.events, flow], "traceName": "x.json"}
        return json.dumps(document, indent=indent)

    def write(self, path: Path, *, indent: int | None = 2) -> Path:
        data = self.text(indent=indent).encode()
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
        return path


def training(n_steps: int = 4) -> WrittenTrace:
    """Steps of 1,000 us: 200 waiting for data, 300 computing, 100 communicating, 60 of them beside it, 50 copying,
    and idle in all states; see SHARES.
    """
    made = WrittenTrace()
    for number in range(n_steps):
        at = 1000.0 * number
        made.step(100 + number, at, at + 1000)
        made.on_host("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at, at + 200)
        made.on_host("cpu_op", "aten::stack", at + 50, at + 150)  # within the wait for data
        made.on_host("cpu_op", "aten::conv2d", at + 200, at + 500)
        made.on_host("cuda_runtime", "cudaLaunchKernel", at + 300, at + 310)
        made.on_host("cpu_op", "aten::add", at + 210, at + 300)  # lies in the one before
        made.on_gpu("Memcpy HtoD (Pageable -> Device)", at + 400, at + 450, cat="gpu_memcpy")
        made.on_gpu("void sgemm<128, 64>(float*)", at + 450, at + 700)
        made.on_gpu("void sgemm<128, 64>(float*)", at + 500, at + 750, stream=9)
        made.on_gpu("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", at + 690, at + 790, stream=20)
        made.on_host("cpu_op", "aten::item", at + 780, at + 815)
        made.on_host("cuda_runtime", "cudaStreamSynchronize", at + 785, at + 810)
        made.on_host("cuda_runtime", "cudaMalloc", at + 820, at + 850)
        made.on_host("user_annotation", "Optimizer.step#SGD.step", at + 900, at + 940, thread=MAIN)
        made.on_host("cpu_op", "aten::work_of_a_loader", at, at + 1000, thread=LOADER)
    return made


SHARES = {
    "compute_pct": 30.0, "communication_pct": 4.0, "copy_pct": 5.0, "queued_pct": 0.0, "data_pct": 20.0,
    "pageable_pct": 0.0, "sync_pct": 2.0, "memory_pct": 3.0, "setup_pct": 0.0, "optimizer_pct": 4.0,
    "operator_pct": 20.5, "other_pct": 11.5,
}  # fmt: skip
"""Of :func:`training`: the operators are 200 before the copy and 5 behind the synchronization."""
