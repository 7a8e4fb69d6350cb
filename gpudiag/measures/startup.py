"""How long trials take from their start until they use their GPU, where that can be seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpudiag.measures.concurrency import count_at
from gpudiag.measures.stamps import SECOND_US
from gpudiag.measures.timeline import NEVER, Lives, Samples, first_activity

MIN_STEP_MIB = 500.0
"""A model is loaded beyond the CUDA context (300-600 MiB, METHODS 6)."""
QUIET_US = 20 * SECOND_US
LONGEST_US = 1200 * SECOND_US
MAX_RAMPS = 2000


@dataclass(frozen=True)
class Startups:
    """Seconds of start-up by life (NaN where it cannot be seen), and which way: ``solo``, ``memory`` or empty."""

    seconds: np.ndarray
    method: np.ndarray


def solo_startups(samples: Samples, lives: Lives) -> np.ndarray:
    """Start to first sustained activity, for trials that had the GPU to themselves until then; else NaN.

    Half a period is subtracted: on average the activity began that long before the sample that shows
    it (METHODS 3). Where other trials run, activity is theirs and nothing can be said.
    """
    if len(samples.time_us) < 2:
        return np.full(len(lives.start_us), np.nan)
    first = first_activity(samples, lives.start_us)
    starts = np.sort(lives.start_us)
    following = np.append(starts, NEVER)[np.searchsorted(starts, lives.start_us, "right")]
    same = np.searchsorted(starts, lives.start_us, "right") - np.searchsorted(starts, lives.start_us, "left")
    alone = (count_at(lives.start_us, lives.start_us, lives.end_us) == 1) & (same == 1)
    shown = alone & (first < lives.end_us) & (first < following)
    half = float(np.median(np.diff(samples.time_us))) / 2
    took = np.where(shown, first, lives.start_us) - lives.start_us - half
    return np.where(shown, np.maximum(took, 0) / SECOND_US, np.nan)


def ramp_startups(memory: Samples, lives: Lives) -> np.ndarray:
    """Start to half of the rise of memory, for trials during whose start-up no other trial started or ended.

    The device's memory rises twice: by the CUDA context early in the start-up, by model and batch when
    training begins. The rise must be of 500 MiB, and nothing else may happen until 20 s after its
    middle, or it could be another trial's. NaN elsewhere.
    """
    out = np.full(len(lives.start_us), np.nan)
    if len(memory.time_us) < 2:
        return out
    marks = np.sort(np.concatenate([lives.start_us, lives.end_us]))
    half = float(np.median(np.diff(memory.time_us))) / 2
    step = max(1, -(-len(out) // MAX_RAMPS))
    for i in range(0, len(out), step):
        start, end = lives.start_us[i], lives.end_us[i]
        # The end of the trial before it, at the same instant or just before, is no disturbance.
        following = marks[np.searchsorted(marks, start, "right") :]
        until = min(int(following[0]) if len(following) else NEVER, int(end), int(start) + LONGEST_US)
        low, high = np.searchsorted(memory.time_us, [start, until])
        if high - low < 2:
            continue
        used = memory.value[low:high]
        base = float(np.minimum.accumulate(used)[-1])
        top = float(used[int(np.argmin(used)) :].max())
        if top - base < MIN_STEP_MIB:
            continue
        above = np.flatnonzero(used[int(np.argmin(used)) :] >= (base + top) / 2)[0] + int(np.argmin(used))
        middle = int(memory.time_us[low + above])
        if middle + QUIET_US <= until:
            out[i] = max(middle - start - half, 0) / SECOND_US
    return out


def startups(samples: Samples, memory: Samples, lives: Lives) -> Startups:
    """By activity where a trial was alone, else by memory where that is clear."""
    solo, ramp = solo_startups(samples, lives), ramp_startups(memory, lives)
    seconds = np.where(np.isnan(solo), ramp, solo)
    method = np.where(~np.isnan(solo), "solo", np.where(~np.isnan(ramp), "memory", ""))
    return Startups(seconds, method.astype(object))
