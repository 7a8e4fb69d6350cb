"""When no process had a GPU, by the memory in use."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpudiag.measures._gpu.gpu_rows import slices
from gpudiag.measures._gpu.held import BASELINE_MIB, HELD_MIB
from gpudiag.measures._time.activity import activity
from gpudiag.measures._time.cells import cells
from gpudiag.measures._time.free_ends import MOSTLY, command_spans
from gpudiag.measures._time.microseconds import microseconds
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.spans import Window


class Occupied(NamedTuple):
    """The samples of one GPU: the stretches they stand for (microseconds), whether it worked, and whether it surely had
    no process.
    """

    start_us: np.ndarray
    end_us: np.ndarray
    at_work: np.ndarray
    free: np.ndarray


@memoized
def occupied_by_gpu(run: Run) -> dict[str, Occupied]:
    """Known where the work held a GiB: a process takes memory on its GPU. None is there where less is in use, and less
    than what a context takes beyond the least of the GPU.
    """
    if "util_pct" not in run.gpu or "mem_used_mib" not in run.gpu:
        return {}
    samples = cells(run, "util_pct", "mem_used_mib")
    util, used, start, end = (samples[name].to_numpy() for name in ("util_pct", "mem_used_mib", "start_us", "end_us"))
    out, worked, held = {}, 0, 0
    for gpu, own in slices(samples):
        at_work = activity(util[own])
        least_mib = float(np.nanmin(used[own], initial=HELD_MIB))
        free = ~at_work & (used[own] < min(least_mib + BASELINE_MIB, HELD_MIB))
        out[gpu] = Occupied(start[own], end[own], at_work, free)
        worked, held = worked + int(at_work.sum()), held + int((used[own][at_work] >= HELD_MIB).sum())
    return out if worked and held >= MOSTLY * worked else {}


@memoized
def jobs_ran(run: Run) -> list[Window]:
    """From when to when a job surely ran, by each log with dated steps and each recorded command, in microseconds."""
    steps = run.steps.reindex(columns=["path", "time"]).dropna(subset=["time"])
    logs = [microseconds(times) for _, times in steps.groupby("path", dropna=False)["time"]]
    return [*((int(own.min()), int(own.max())) for own in logs), *command_spans(run)]
