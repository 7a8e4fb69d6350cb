"""The idle time of GPUs beside the log of a training: how much of it lies in the pauses between steps."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pandas as pd

from gpudiag.measures._time.microseconds import SECOND_US, microseconds
from gpudiag.measures.sampling import by_gpu, cells
from gpudiag.run import Run
from gpudiag.schema import IDLE_PCT


class IdleBeside(NamedTuple):
    """GPU-seconds below 10 % utilization, of GPUs that worked while the log was written. NaN is unknown."""

    in_pauses_gpu_s: float
    in_log_gpu_s: float


def idle_beside(run: Run, intervals: pd.DataFrame) -> IdleBeside:
    """Idle time within the span of the log, and within its intervals that hold a pause: at most the pause of each.

    ``intervals`` need start, end and paused_s. Unknown without timestamps or utilization, and where no GPU worked.
    """
    timed = intervals[intervals["start"].notna() & intervals["end"].notna()]
    if timed.empty or "util_pct" not in run.gpu or not run.gpu["util_pct"].notna().any():
        return IdleBeside(math.nan, math.nan)
    low, high = int(microseconds(timed["start"]).min()), int(microseconds(timed["end"]).max())
    paused = timed[timed["paused_s"] > 0]
    starts, ends = microseconds(paused["start"]), microseconds(paused["end"])
    most_s = paused["paused_s"].to_numpy(float)
    in_pauses = in_log = 0.0
    worked = False
    for _, part in by_gpu(cells(run, "util_pct")):
        begin, end = part["start_us"].to_numpy(np.int64), part["end_us"].to_numpy(np.int64)
        util = part["util_pct"].to_numpy(float)
        within_s = _overlap_s(begin, end, low, high)
        if not within_s.sum() > 0 or np.average(util, weights=within_s) < IDLE_PCT:
            continue
        worked = True
        idle = util < IDLE_PCT
        in_log += float(within_s[idle].sum())
        for start, stop, most in zip(starts, ends, most_s, strict=True):
            in_pauses += min(float(_overlap_s(begin[idle], end[idle], int(start), int(stop)).sum()), most)
    return IdleBeside(in_pauses, in_log) if worked else IdleBeside(math.nan, math.nan)


def _overlap_s(begin: np.ndarray, end: np.ndarray, low: int, high: int) -> np.ndarray:
    return np.maximum(np.minimum(end, high) - np.maximum(begin, low), 0) / SECOND_US
