"""One column of the telemetry as arrays, GPU by GPU."""

from __future__ import annotations

from gpudiag.measures._gpu.gpu_rows import by_gpu, gpu_order
from gpudiag.measures._time.cells import cells, sampled_gpus
from gpudiag.measures._time.microseconds import microseconds
from gpudiag.measures._time.timeline import Samples
from gpudiag.run import Run


def samples_by_gpu(run: Run, column: str) -> dict[str, Samples]:
    """One column of the telemetry by GPU, for every GPU the run knows of; empty where it has none."""
    out = {gpu: Samples.none() for gpu in known_gpus(run)}
    if column in run.gpu:
        for gpu, part in by_gpu(cells(run, column)):
            start, end = part["start_us"].to_numpy(), part["end_us"].to_numpy()
            out[gpu] = Samples(microseconds(part["time"]), start, end, part[column].to_numpy(float))
    return out


def known_gpus(run: Run) -> list[str]:
    """Every GPU of the telemetry or of its list of GPUs."""
    return gpu_order({*sampled_gpus(run), *run.gpus["gpu"].dropna()})
