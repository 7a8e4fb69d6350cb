"""At which offsets memory of GPUs falls where jobs end: their processes end with them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy

from gpudiag.alignment.falls import STEP_S, Ends, ends_of
from gpudiag.alignment.scan import REACH_S
from gpudiag.alignment.signals import SampleTimes
from gpudiag.run import Run
from gpudiag.schema import IDLE_PCT
from gpudiag.spans import seconds

EARLY_S, LATE_S = 20.0, 3.0
"""From so long before the end of a job to so long after it memory is freed at its end: programs write their results,
and clocks of one cluster agree (a credential of MUNGE, as Slurm uses it, is refused where clocks lie apart)."""
MIN_ENDS = 3
MOST = 0.75
"""Three ends, and three quarters of all, must go with a fall."""
RIVALS = 0.5
"""No other place may have more than half as many, unless it is as the timestamps are."""
BESIDE_S = 60.0
MAX_CHANCE = 0.001
"""That falls which know nothing of the ends lie so: binomial, by their share over all offsets."""
LEAST_MIB = 300.0
"""Less than what a CUDA context takes (METHODS 6): no process holds it."""
MOST_JOBS = 200


@dataclass(frozen=True)
class Pinned:
    """Memory falls ``lag_s`` after the end of ``n`` of ``n_ends`` jobs, known to ``within_s``; 0: at their ends."""

    lag_s: float
    within_s: float
    n: int
    n_ends: int


def pinned_ends(run: Run, samples: SampleTimes) -> Pinned | None:
    """The one distance from their ends at which memory falls for most jobs; None where there is none."""
    parts = list(ends_of(run, samples, REACH_S)) if "mem_used_mib" in run.gpu else []
    n_ends = sum(len(part.end_s) for part in parts)
    if not MIN_ENDS <= n_ends <= MOST_JOBS:
        return None
    lags = np.arange(-REACH_S, REACH_S + STEP_S, STEP_S)
    fallen = sum((_fallen(part, lags) for part in parts), np.zeros(len(lags), int))
    enough, share = max(MIN_ENDS, MOST * n_ends), float(fallen.mean()) / n_ends
    at_ends = np.flatnonzero((lags >= -EARLY_S) & (lags <= LATE_S))
    n_at, most = int(fallen[at_ends].max()), int(fallen.max())
    if n_at >= enough and n_at == most and _chance(n_at, n_ends, share, EARLY_S + LATE_S) <= MAX_CHANCE:
        return Pinned(0.0, 0.0, n_at, n_ends)
    best = np.flatnonzero(fallen == most)
    if most < enough or _chance(most, n_ends, share, 2 * REACH_S) > MAX_CHANCE:
        return None
    if np.ptp(lags[best]) > BESIDE_S or fallen[np.abs(lags - lags[best].mean()) > BESIDE_S].max() > RIVALS * most:
        return None
    return Pinned(round(float(lags[best].mean())), float(np.ptp(lags[best])) / 2 + STEP_S, most, n_ends)


def _chance(n: int, n_ends: int, share: float, range_s: float) -> float:
    return range_s / STEP_S * float(scipy.special.bdtrc(n - 1, n_ends, share))


def _fallen(ends: Ends, lags: np.ndarray) -> np.ndarray:
    """``Ends.fallen`` of every lag."""
    fallen = np.zeros(len(lags), int)
    for end_s in ends.end_s:
        fallen += ends.falls_at(end_s + lags)
    return fallen


def outside_s(run: Run, samples: SampleTimes) -> float:
    """For how long GPUs worked or held memory while no job ran, one sample for each job left out."""
    start, end = seconds(run.trials["start"]), seconds(run.trials["end"])
    begun = ~np.isnan(start)
    order = np.argsort(start[begun], kind="stable")
    start, until = start[begun][order], np.maximum.accumulate(np.nan_to_num(end[begun][order], nan=np.inf))
    time = np.unique(np.concatenate(list(_held(run, samples)) or [np.zeros(0)]))
    before = np.searchsorted(start - LATE_S, time, "right") - 1
    out = (before < 0) | (time > until[np.maximum(before, 0)] + LATE_S)
    return max(0.0, (int(out.sum()) - len(start)) * float(np.nan_to_num(samples.period_s)))


def _held(run: Run, samples: SampleTimes) -> Iterator[np.ndarray]:
    """When each GPU worked, or held more memory than at the least."""
    used = run.gpu["mem_used_mib"].to_numpy(float) if "mem_used_mib" in run.gpu else np.zeros(len(run.gpu))
    util = run.gpu["util_pct"].to_numpy(float) if "util_pct" in run.gpu else np.zeros(len(run.gpu))
    for rows in samples.rows():
        least = np.nanmin(used[rows]) if not np.isnan(used[rows]).all() else 0.0
        yield samples.time_s[rows][(util[rows] >= IDLE_PCT) | (used[rows] >= least + LEAST_MIB)]
