"""Traces of trials on a GPU: whether it was used at all, and memory that falls at their ends."""

from __future__ import annotations

import numpy as np

from gpudiag.measures._gpu.gpu_rows import by_gpu
from gpudiag.measures._gpu.marks import SETTLE_US, STEP_MIB
from gpudiag.measures._time.cells import cells
from gpudiag.measures._time.microseconds import SECOND_US
from gpudiag.measures._time.timeline import Intervals, Samples
from gpudiag.run import Run
from gpudiag.schema import IDLE_PCT, has_values

MAX_PERIOD_US = 10.5 * SECOND_US


def active_gpus(run: Run) -> set[str]:
    """GPUs with two samples in a row at 10 % utilization or more, or with memory that rose by a CUDA context."""
    active: set[str] = set()
    for column in ("util_pct", "mem_used_mib"):
        if not has_values(run.gpu, column):
            continue
        for gpu, part in by_gpu(cells(run, column)):
            value = part[column].to_numpy(float)
            if column == "util_pct":
                busy = value >= IDLE_PCT
                used = bool((busy[1:] & busy[:-1]).any())
            else:
                used = bool(value.max() - value.min() >= STEP_MIB)
            active |= {gpu} if used else set()
    return active


def freed_mib(memory: Samples, intervals: Intervals) -> np.ndarray:
    """What the memory of a GPU fell by at the end of each trial on it: what the trial held, as frameworks free at exit.

    NaN where it fell by less than a CUDA context, where another trial ended before a successor could allocate, where
    memory moved before or after the fall, as other trials were growing, and everywhere with samples more than 10 s
    apart (METHODS 6). Shape (n_trials,), MiB. On the simulated samples 89 to 100 % of those told are within 5 %.
    """
    out = np.full(len(intervals.end_us), np.nan)
    if len(memory.time_us) < 2 or not len(out):
        return out
    period = memory.step_us
    if period > MAX_PERIOD_US:
        return out
    order = np.argsort(intervals.end_us, kind="stable")
    apart = np.diff(intervals.end_us[order]) > max(SETTLE_US, 2 * period)
    alone = np.append(True, apart) & np.append(apart, True)
    own = order[alone & (intervals.end_us[order] > memory.time_us[0]) & (intervals.end_us[order] < memory.time_us[-1])]
    if not len(own):
        return out
    end = intervals.end_us[own]
    time, used = memory.time_us, memory.value
    last, least = _before(time, used, end), _least_after(time, used, end, max(SETTLE_US, 2 * int(period)))
    # A trial beside it that grows just then hides a part of the fall.
    earlier, later = _before(time, used, end - int(2 * period)), _before(time, used, end + int(2 * period))
    level = (np.abs(last - earlier) < STEP_MIB) & (np.abs(later - least) < STEP_MIB)
    out[own] = np.where(level & (last - least >= STEP_MIB), last - least, np.nan)
    return out


def _before(time: np.ndarray, value: np.ndarray, when: np.ndarray) -> np.ndarray:
    """The last value before each time."""
    return value[np.maximum(np.searchsorted(time, when, "left") - 1, 0)]


def _least_after(time: np.ndarray, value: np.ndarray, when: np.ndarray, settle_us: int) -> np.ndarray:
    """The least value from each time until a successor could allocate; of one sample at least."""
    low = np.searchsorted(time, when, "left")
    high = np.searchsorted(time, when + settle_us, "right")
    padded = np.append(value, value[-1])
    low = np.minimum(low, len(value) - 1)
    return np.minimum.reduceat(padded, np.column_stack([low, np.maximum(high, low + 1)]).ravel())[::2]
