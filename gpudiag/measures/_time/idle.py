"""When a GPU was at work, and its idle stretches that no trial explains: a short one is a wait, a long one a pause."""

from __future__ import annotations

import numpy as np

from gpudiag.measures._time.activity import work_level_pct
from gpudiag.measures._time.microseconds import SECOND_US
from gpudiag.measures._time.work import stretches
from gpudiag.schema import IDLE_PCT

LONGEST_WAIT_S = 600.0
"""Without trials a longer idle stretch may lie between two jobs: it is a pause, and no wait within one of them."""
MIN_SAMPLES = 10
"""Of a pause: two samples of 0 % stand for no ten minutes (as many as jobstats asks of an unused GPU)."""


def activity(util_pct: np.ndarray) -> np.ndarray:
    """True for samples at work, at 10 % or more. A GPU that is at 6 % all the time does not begin to work with the one
    sample that reads 10 %: there half of what it does instead is work.
    """
    if not (util_pct >= IDLE_PCT).any():
        return np.zeros(len(util_pct), bool)
    return np.asarray(util_pct >= work_level_pct(util_pct))


def pauses(at_work: np.ndarray, start_us: np.ndarray, end_us: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First and last sample of each pause of one GPU: an unbroken stretch without ``activity`` between its first and
    its last, too long for a wait.
    """
    active = np.flatnonzero(at_work)
    if not len(active):
        return active, active
    first, last = stretches(~at_work, start_us, end_us)
    own = (first > active[0]) & (last < active[-1]) & (last - first + 1 >= MIN_SAMPLES)
    own &= end_us[last] - start_us[first] > LONGEST_WAIT_S * SECOND_US
    return first[own], last[own]
