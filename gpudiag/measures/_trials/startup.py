"""How long trials take from their start until they use their GPU, where that can be seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpudiag.measures._time.concurrency import count_at
from gpudiag.measures._time.microseconds import LONG_AGO, NEVER, SECOND_US
from gpudiag.measures._time.timeline import Intervals, Samples, first_activity

LOADED_MIB = 700.0
"""More than a CUDA context (300-600 MiB, METHODS 6): a model is being loaded."""
MIN_RISE_MIB = 1000.0
QUIET_US = 20 * SECOND_US
SETTLED_US = 60 * SECOND_US
LONGEST_US = 1200 * SECOND_US
MAX_RAMPS = 2000


@dataclass(frozen=True)
class Startups:
    """Seconds of start-up by life (NaN where it cannot be seen), and which way: ``solo``, ``memory`` or empty."""

    seconds: np.ndarray
    method: np.ndarray


def solo_startups(samples: Samples, intervals: Intervals) -> np.ndarray:
    """Start to first sustained activity, for trials that had the GPU to themselves until then; else NaN.

    Half a period is subtracted: on average the activity began that long before the sample that shows
    it (METHODS 3). Where other trials run, activity is theirs and nothing can be said.
    """
    if len(samples.time_us) < 2:
        return np.full(len(intervals.start_us), np.nan)
    first = first_activity(samples, intervals.start_us)
    starts = np.sort(intervals.start_us)
    following = np.append(starts, NEVER)[np.searchsorted(starts, intervals.start_us, "right")]
    same = np.searchsorted(starts, intervals.start_us, "right") - np.searchsorted(starts, intervals.start_us, "left")
    alone = (count_at(intervals.start_us, intervals.start_us, intervals.end_us) == 1) & (same == 1)
    shown = alone & (first < intervals.end_us) & (first < following)
    half = float(np.median(np.diff(samples.time_us))) / 2
    took = np.where(shown, first, intervals.start_us) - intervals.start_us - half
    return np.where(shown, np.maximum(took, 0) / SECOND_US, np.nan)


def ramp_startups(memory: Samples, intervals: Intervals) -> np.ndarray:
    """Start to a memory of 700 MiB more, for trials that no other trial's start or end may disturb.

    The device's memory rises by the CUDA context early in the start-up, then by model and batch when training
    begins. The rise must reach 1000 MiB. No other trial may have started in the 60 s before, or start or end until
    20 s after the rise passed 700 MiB, or it could be that trial's. NaN elsewhere.
    """
    out = np.full(len(intervals.start_us), np.nan)
    if len(memory.time_us) < 2:
        return out
    marks = np.sort(np.concatenate([intervals.start_us, intervals.end_us]))
    following = np.append(marks, NEVER)[np.searchsorted(marks, intervals.start_us, "right")]
    until = np.minimum(np.minimum(following, intervals.end_us), intervals.start_us + LONGEST_US)
    low = np.searchsorted(memory.time_us, intervals.start_us)
    high = np.searchsorted(memory.time_us, until)
    half = float(np.median(np.diff(memory.time_us))) / 2
    starts = np.sort(intervals.start_us)
    earlier = np.append(LONG_AGO, starts)[np.searchsorted(starts, intervals.start_us)]
    settled = intervals.start_us - np.maximum(earlier, intervals.start_us - SETTLED_US) >= SETTLED_US
    candidates = np.flatnonzero(settled & (high - low >= 2) & (until - intervals.start_us > QUIET_US))
    for i in candidates[:: max(1, -(-len(candidates) // MAX_RAMPS))].tolist():
        used = memory.value[low[i] : high[i]]
        rise = used - np.minimum.accumulate(used)
        loaded = int(np.argmax(rise >= LOADED_MIB))
        passed = int(memory.time_us[low[i] + loaded])
        if rise.max() >= MIN_RISE_MIB and passed + QUIET_US <= until[i]:
            out[i] = max(passed - intervals.start_us[i] - half, 0) / SECOND_US
    return out


def startups(samples: Samples, memory: Samples, intervals: Intervals) -> Startups:
    """By activity where a trial was alone, else by memory where that is clear."""
    solo, ramp = solo_startups(samples, intervals), ramp_startups(memory, intervals)
    seconds = np.where(np.isnan(solo), ramp, solo)
    method = np.where(~np.isnan(solo), "solo", np.where(~np.isnan(ramp), "memory", ""))
    return Startups(seconds, method.astype(object))
