"""How long trials take from their start until they use their GPU, where that can be seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpudiag.measures._time.concurrency import count_at
from gpudiag.measures._time.gpu_time import GpuTime
from gpudiag.measures._time.microseconds import NEVER, SECOND_US
from gpudiag.measures._time.timeline import Intervals, Samples, first_activity

FEWEST = 5
"""Start-ups that must be seen for a typical one to be said of all."""
NEARLY_ALL = 0.8


@dataclass(frozen=True)
class Startups:
    """Seconds of start-up by timed trial (NaN where it cannot be seen), which way (``solo``, ``activity`` or empty),
    and the median of all trials, NaN where too few were seen.
    """

    seconds: np.ndarray
    method: np.ndarray
    median_s: float


def startups(time: GpuTime) -> Startups:
    """By first activity where a trial had its GPU to itself, else by the phases of those that share it.

    The trials whose start-up is seen may not be like the others: where these are less than 80 % of all, the median is
    that of the distribution that the phases were learned with, which is of all trials. Of several GPUs the first
    start-up counts.
    """
    seconds, method = np.full(len(time.trials.start_us), np.nan), np.full(len(time.trials.start_us), "", dtype=object)
    for gpu, places in time.places.items():
        phases = time.phases.get(gpu)
        own = solo_startups(time.samples.get(gpu, Samples.none()), time.intervals(gpu))
        took, how = (own, "solo") if phases is None else (phases.startup_s, "activity")
        sooner = ~(seconds[places] <= took) & ~np.isnan(took)
        seconds[places[sooner]], method[places[sooner]] = took[sooner], how
    seen = ~np.isnan(seconds)
    learned = next((phases.median_s for phases in time.phases.values()), float("nan"))
    whole = seen.sum() >= NEARLY_ALL * len(seen) or np.isnan(learned)
    typical = float(np.median(seconds[seen])) if whole and seen.any() else learned
    return Startups(seconds, method, typical if seen.sum() >= min(FEWEST, len(seen)) else float("nan"))


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
