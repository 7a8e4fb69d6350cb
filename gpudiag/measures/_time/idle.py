"""When a GPU was at work, and its idle stretches that no trial explains: a short one is a wait, a long one a pause."""

from __future__ import annotations

import numpy as np

from gpudiag.measures._time.activity import LONGEST_WAIT_S, activity
from gpudiag.measures._time.microseconds import SECOND_US
from gpudiag.measures._time.periodicity import Period, find_period
from gpudiag.measures._time.work import WorkSamples, stretches, work_by_gpu
from gpudiag.memo import memoized
from gpudiag.run import Run

MIN_SAMPLES = 10
"""Of a pause: two samples of 0 % stand for no ten minutes (as many as jobstats asks of an unused GPU)."""


def pauses(at_work: np.ndarray, start_us: np.ndarray, end_us: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First and last sample of each pause of one GPU: an unbroken stretch without ``activity`` between its first and
    its last, too long for a wait, and of enough samples to be sure of it.
    """
    first, last = longer_than_waits(at_work, start_us, end_us)
    own = last - first + 1 >= MIN_SAMPLES
    return first[own], last[own]


def longer_than_waits(at_work: np.ndarray, start_us: np.ndarray, end_us: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same however few samples show it: far apart, they tell neither a pause nor a wait."""
    active = np.flatnonzero(at_work)
    if not len(active):
        return active, active
    first, last = stretches(~at_work, start_us, end_us)
    own = (first > active[0]) & (last < active[-1]) & (end_us[last] - start_us[first] > LONGEST_WAIT_S * SECOND_US)
    return first[own], last[own]


def without_pauses(work: WorkSamples) -> np.ndarray:
    """``at_work`` of one GPU; without trials only where it lies in no idle stretch that is too long for a wait."""
    if work.from_trials:
        return work.at_work
    out = work.at_work.copy()
    first, last = longer_than_waits(activity(work.util_pct), work.start_us, work.end_us)
    for low, high in zip(first.tolist(), last.tolist(), strict=True):
        out[low : high + 1] = False
    return out


@memoized
def period_by_gpu(run: Run) -> dict[str, Period | None]:
    """The period of the utilization of each GPU at work, without pauses, as :func:`find_period`."""
    return {gpu: period_of(work) for gpu, work in work_by_gpu(run).items()}


def period_of(work: WorkSamples) -> Period | None:
    """The same of one GPU."""
    return find_period(work.time_us, np.where(without_pauses(work), work.util_pct, np.nan), work.step_us)
