"""The typical start-up of trials that always overlap: the one that explains utilization best."""

from __future__ import annotations

import numpy as np

from gpudiag.forecast.parallelism.levels import MAX_SAMPLES
from gpudiag.measures._time.concurrency import count_at
from gpudiag.measures._time.microseconds import SECOND_US
from gpudiag.measures._time.timeline import Intervals, Samples

MAX_CANDIDATES = 25
LONGEST_SHARE = 0.9


def fit_startup(gpus: list[tuple[Samples, Intervals]]) -> float:
    """Seconds after which a trial begins to use its GPU, the same for all.

    For each candidate, samples are grouped by the number of trials older than that; the candidate whose groups leave
    the least squared deviation of utilization wins. Candidates reach up to 0.9 of the median life, the shortest of
    equals wins.
    """
    lengths = np.concatenate([(intervals.end_us - intervals.start_us) for _, intervals in gpus])
    longest = LONGEST_SHARE * float(np.median(lengths)) / SECOND_US
    candidates = np.linspace(0.0, longest, MAX_CANDIDATES)
    left = [sum(_unexplained(samples, intervals, seconds) for samples, intervals in gpus) for seconds in candidates]
    return float(candidates[int(np.argmin(left))])


def _unexplained(samples: Samples, intervals: Intervals, startup_s: float) -> float:
    every = max(1, len(samples.time_us) // MAX_SAMPLES)
    time, value = samples.time_us[::every], samples.value[::every]
    begun = np.minimum(intervals.start_us + int(startup_s * SECOND_US), intervals.end_us)
    level = count_at(time, begun, intervals.end_us)
    count = np.bincount(level)
    mean = np.bincount(level, value) / np.maximum(count, 1)
    return float(((value - mean[level]) ** 2).sum())
