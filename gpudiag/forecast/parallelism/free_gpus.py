"""GPUs of a run on which no trial ran: which of them further workers may join."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from gpudiag.errors import in_words
from gpudiag.measures._gpu.boards import gpu_boards
from gpudiag.measures._gpu.tenants import tenants
from gpudiag.measures._time.gpu_samples import samples_by_gpu
from gpudiag.measures._time.gpu_time import gpu_time
from gpudiag.measures._time.timeline import Samples
from gpudiag.run import Run
from gpudiag.schema import IDLE_PCT

MOST_BUSY = 0.05
"""Share of the samples of an idle GPU that may show work: a driver or a monitor, not a job."""
HELD_MIB = 1000.0
"""More memory in use than this on a GPU without a trial is somebody's."""


def free_gpus(run: Run, used: Collection[str]) -> tuple[list[str], str]:
    """The GPUs like those of the trials that nobody used while trials ran; and why any other is not counted, or ''."""
    time = gpu_time(run)
    memory, boards, of = samples_by_gpu(run, "mem_used_mib"), gpu_boards(run), tenants(run)
    names = {str(boards["name"].get(gpu, "")) for gpu in used}
    free, others = [], {}
    for gpu, samples in time.samples.items():
        if gpu in used or gpu in run.info.left_out_gpus:
            continue
        if {str(boards["name"].get(gpu, ""))} != names or names == {""}:
            others[gpu] = "its model is another one, or not known"
        elif of.keep_apart([gpu], beside=True):
            others[gpu] = "it may have been of another job"
        elif why := _not_free(time.windows, samples, memory.get(gpu, Samples.none())):
            others[gpu] = why
        else:
            free.append(gpu)
    return free, _said(others)


def _not_free(windows: list[tuple[int, int]], load: Samples, memory: Samples) -> str:
    if not len(known := _within(windows, load)):
        return "its load is not known"
    if (known >= IDLE_PCT).mean() > MOST_BUSY:
        return "it worked without a trial"
    held = _within(windows, memory)
    return "its memory was in use without a trial" if len(held) and np.median(held) > HELD_MIB else ""


def _within(windows: list[tuple[int, int]], samples: Samples) -> np.ndarray:
    """The known values within the time of the trials."""
    inside = np.zeros(len(samples.time_us), bool)
    for low, high in windows:
        inside |= (samples.time_us >= low) & (samples.time_us < high)
    return samples.value[inside & ~np.isnan(samples.value)]


def _said(others: Mapping[str, str]) -> str:
    if not others:
        return ""
    each = "; ".join(f"GPU {gpu}: {why}" for gpu, why in others.items())
    return in_words(
        "Further workers are not placed on GPUs without a trial that may not be free ({each}).", {"each": each}
    )
