"""When a GPU was at work, and its idle stretches that no trial explains: a short one is a wait, a long one a pause."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpudiag.measures._time.activity import activity
from gpudiag.measures._time.no_waits import are_no_waits, between_jobs
from gpudiag.measures._time.periodicity import Period, find_period
from gpudiag.measures._time.work import WorkSamples, stretches, work_by_gpu
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.spans import Window

MIN_SAMPLES = 10
"""Of a pause: two samples of 0 % stand for no ten minutes (as many as jobstats asks of an unused GPU)."""
BY_CHANCE = 0.05
"""Stretches as long that independent samples of the same GPU would show (a default without a published source)."""


def pauses(at_work: np.ndarray, start_us: np.ndarray, end_us: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First and last sample of each pause of one GPU: an unbroken stretch without ``activity`` between its first and
    its last, too long for a wait, and of enough samples to be sure of it.
    """
    first, last = no_waits(at_work, start_us, end_us, ())
    active = np.flatnonzero(at_work)
    own = are_unbroken(~at_work[active[0] : active[-1] + 1], last - first + 1) if len(first) else first
    return first[own], last[own]


def are_unbroken(idle: np.ndarray, n_samples: np.ndarray) -> np.ndarray:
    """Whether each stretch of so many idle samples was most likely idle throughout: samples far apart miss work between
    them, so that some follow each other by chance.

    ``idle``: of all samples among which the stretches lie. If each told its own moment alone, as many in a row would be
    met :data:`BY_CHANCE` times at most, by the share of idle samples outside of the stretches that were no chance.
    """
    sure = np.zeros(len(n_samples), bool)
    while True:
        n, n_idle = len(idle) - n_samples[sure].sum(), np.count_nonzero(idle) - n_samples[sure].sum()
        share = n_idle / n if n else 0.0
        more = (n_samples >= MIN_SAMPLES) & ((n - n_idle) * share ** n_samples.astype(float) <= BY_CHANCE)
        if not (more & ~sure).any():
            return sure
        sure |= more


def no_waits(
    at_work: np.ndarray, start_us: np.ndarray, end_us: np.ndarray, between: Sequence[Window]
) -> tuple[np.ndarray, np.ndarray]:
    """The same however few samples show it: far apart, they tell neither a pause nor a wait. So is a shorter one that
    holds a window of :func:`between_jobs`.
    """
    active = np.flatnonzero(at_work)
    if not len(active):
        return active, active
    first, last = stretches(~at_work, start_us, end_us)
    own = (first > active[0]) & (last < active[-1]) & are_no_waits(start_us[first], end_us[last], between)
    return first[own], last[own]


def without_pauses(work: WorkSamples, between: Sequence[Window]) -> np.ndarray:
    """``at_work`` of one GPU; without trials only where it lies in no idle stretch that is no wait, with the windows of
    :func:`between_jobs`.
    """
    if work.from_trials:
        return work.at_work
    out = work.at_work.copy()
    first, last = no_waits(activity(work.util_pct), work.start_us, work.end_us, between)
    for low, high in zip(first.tolist(), last.tolist(), strict=True):
        out[low : high + 1] = False
    return out


@memoized
def period_by_gpu(run: Run) -> dict[str, Period | None]:
    """The period of the utilization of each GPU at work, without pauses, as :func:`find_period`."""
    return {gpu: period_of(work, between_jobs(run)) for gpu, work in work_by_gpu(run).items()}


def period_of(work: WorkSamples, between: Sequence[Window]) -> Period | None:
    """The same of one GPU."""
    return find_period(work.time_us, np.where(without_pauses(work, between), work.util_pct, np.nan), work.step_us)
