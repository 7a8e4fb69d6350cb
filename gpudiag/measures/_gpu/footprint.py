"""Traces that trials leave on a GPU: activity, and memory that rises and falls with them."""

from __future__ import annotations

import numpy as np

from gpudiag.measures._time.microseconds import SECOND_US, microseconds
from gpudiag.measures._time.timeline import Intervals, Samples
from gpudiag.measures._time.trial_intervals import intervals_of
from gpudiag.measures.sampling import by_gpu, cells
from gpudiag.run import Run
from gpudiag.schema import IDLE_PCT

MIN_STEP_MIB = 200.0
"""Less than a CUDA context (300-600 MiB, METHODS 6): a smaller step of memory is no trial."""
MIN_RATIO = 3.0
MAX_PERIOD_US = 10.5 * SECOND_US
SETTLE_US = 6 * SECOND_US
"""A successor allocates 7-8 s after the end before it (METHODS 6)."""
RAMP_US = 90 * SECOND_US


def active_gpus(run: Run) -> set[str]:
    """GPUs with two samples in a row above 10 % utilization, or with memory that rose by a CUDA context."""
    active: set[str] = set()
    for column in ("util_pct", "mem_used_mib"):
        if column not in run.gpu or not run.gpu[column].notna().any():
            continue
        for gpu, part in by_gpu(cells(run, column)):
            value = part[column].to_numpy(float)
            if column == "util_pct":
                busy = value > IDLE_PCT
                used = bool((busy[1:] & busy[:-1]).any())
            else:
                used = bool(value.max() - value.min() >= MIN_STEP_MIB)
            active |= {gpu} if used else set()
    return active


def gpus_by_memory(run: Run, rows: list[int]) -> dict[int, str]:
    """The GPU whose memory fell at the end of a trial and had risen after its start, by row of ``run.trials``.

    It must have fallen by 200 MiB at least and by three times as much as on any other GPU, and risen by 200 MiB.
    Trials of which this cannot be said are left out. Measured on 2 to 8 GPUs with a trial on each at least: right
    for 97 % or more of those named at periods of up to 5 s, for 94 % at 10 s; beyond that nothing is said.
    """
    intervals = intervals_of(run).iloc[rows]
    intervals = intervals[intervals["known"] & (intervals["duration_s"] > 0)]
    if intervals.empty or "mem_used_mib" not in run.gpu or not run.gpu["mem_used_mib"].notna().any():
        return {}
    start, end = microseconds(intervals["start"]), microseconds(intervals["end"])
    names, rises, falls = [], [], []
    for gpu, part in by_gpu(cells(run, "mem_used_mib")):
        time, used = microseconds(part["time"]), part["mem_used_mib"].to_numpy(float)
        if len(time) < 2 or np.median(np.diff(time)) > MAX_PERIOD_US:
            continue
        names.append(gpu)
        rises.append(_before(time, used, np.minimum(start + RAMP_US, end)) - _least_after(time, used, start))
        falls.append(_before(time, used, end) - _least_after(time, used, end))
    if not names:
        return {}
    chosen = _winner(np.array(falls))
    rise = np.array(rises)[chosen, np.arange(len(chosen))]
    named = np.flatnonzero((chosen >= 0) & (rise >= MIN_STEP_MIB))
    return {int(intervals.index[i]): names[chosen[i]] for i in named}


def freed_mib(memory: Samples, intervals: Intervals) -> np.ndarray:
    """What the memory of a GPU fell by at the end of each trial on it: what the trial held, as frameworks free at exit.

    NaN where it fell by less than a CUDA context, where another trial ended before a successor could allocate, where
    memory moved before or after the fall, as other trials were growing, and everywhere with samples more than 10 s
    apart (METHODS 6). Shape (n_trials,), MiB. On the simulated samples 89 to 100 % of those told are within 5 %.
    """
    out = np.full(len(intervals.end_us), np.nan)
    if len(memory.time_us) < 2 or not len(out):
        return out
    period = float(np.median(np.diff(memory.time_us)))
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
    last, least = _before(time, used, end), _least_after(time, used, end)
    # A trial beside it that grows just then hides a part of the fall.
    earlier, later = _before(time, used, end - int(2 * period)), _before(time, used, end + int(2 * period))
    level = (np.abs(last - earlier) < MIN_STEP_MIB) & (np.abs(later - least) < MIN_STEP_MIB)
    out[own] = np.where(level & (last - least >= MIN_STEP_MIB), last - least, np.nan)
    return out


def _before(time: np.ndarray, value: np.ndarray, when: np.ndarray) -> np.ndarray:
    """The last value before each time."""
    return value[np.maximum(np.searchsorted(time, when, "left") - 1, 0)]


def _least_after(time: np.ndarray, value: np.ndarray, when: np.ndarray) -> np.ndarray:
    """The least value from each time until a successor could allocate; of one sample at least."""
    period = int(np.median(np.diff(time)))
    low = np.searchsorted(time, when, "left")
    high = np.searchsorted(time, when + max(SETTLE_US, 2 * period), "right")
    padded = np.append(value, value[-1])
    low = np.minimum(low, len(value) - 1)
    return np.minimum.reduceat(padded, np.column_stack([low, np.maximum(high, low + 1)]).ravel())[::2]


def _winner(steps: np.ndarray) -> np.ndarray:
    """Per column of steps (GPU by trial) the row that stands out, -1 where none does."""
    ordered = np.sort(np.vstack([steps, np.zeros(steps.shape[1])]), axis=0)
    clear = (ordered[-1] >= MIN_STEP_MIB) & (ordered[-1] >= MIN_RATIO * ordered[-2])
    return np.where(clear, steps.argmax(axis=0), -1)
