"""Whether trials change in the course of a study: then its past is no model of its future."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy

from gpudiag.forecast.estimate import NAN
from gpudiag.measures._trials.chances import p_trend
from gpudiag.plain_data import NAN_IS_NULL

FALSE_ALARM = 0.05
"""With 300 trials that finds 65 % of drifts of half the work, at 7 % false alarms (METHODS 10)."""
MIN_TRIALS = 20
FEWEST = 5
"""Studies with fewer trials are not held against others."""


@dataclass(frozen=True)
class Drift:
    """Spearman's rank correlation of order and work, ``rho``, its p-value, and whether it is ``found``; of several
    studies that of the ``study`` that drifts most surely. ``studies_differ``: in the work of their trials.
    ``studies_apart``: none ran while another did, so that each can be forecast by itself.
    """

    rho: float = field(default=NAN, metadata=NAN_IS_NULL)
    p_value: float = field(default=NAN, metadata=NAN_IS_NULL)
    found: bool = False
    study: str = ""
    studies_differ: bool = False
    studies_apart: bool = False


def find_drift(work_s: np.ndarray, study: np.ndarray) -> Drift:
    """Test solo work (in order of start) for a trend within each study: that one study has longer trials than another
    is none. Unlike durations, work does not change with the workers.

    Give it no failed trials: a fault that cuts trials short at one time is no change of the trials.
    """
    names = np.unique(study)
    parts = {str(name): work_s[study == name] for name in names}
    tested = {name: part for name, part in parts.items() if len(part) >= MIN_TRIALS and np.ptp(part) > 0}
    differ = _differ([part for part in parts.values() if len(part) >= FEWEST])
    if not tested:
        return Drift(studies_differ=differ)
    trends = {name: p_trend(part) for name, part in tested.items()}
    worst = min(trends, key=lambda name: trends[name][1])
    rho, p = trends[worst][0], min(trends[worst][1] * len(trends), 1.0)  # Bonferroni: the best of many is chosen
    return Drift(rho, p, p < FALSE_ALARM, worst if len(names) > 1 else "", differ)


def carried_on(work: np.ndarray, recent: np.ndarray, n_next: int) -> float:
    """Throughput of the next ``n_next`` trials over that of the ``recent`` ones (True), if work goes on to change in
    order of start: where it rises by as much a trial, where it falls by the same share, so that some is always left.
    A fall is followed no farther than it was seen: by its share it would soon promise any speed.
    """
    order, some = np.arange(len(work)), work > 0
    rises = p_trend(work)[0] > 0
    slope, start = np.polyfit(order, work, 1) if rises else np.polyfit(order[some], np.log(work[some]), 1)
    line = start + slope * np.arange(len(work) + (n_next if rises else min(n_next, len(work))))
    course = line if rises else np.exp(line)
    return float(course[order[recent]].mean() / course[len(work) :].mean())


def _differ(parts: list[np.ndarray]) -> bool:
    """Kruskal and Wallis: whether the work comes from more than one distribution."""
    if len(parts) < 2 or np.ptp(np.concatenate(parts)) == 0:
        return False
    return bool(scipy.stats.kruskal(*parts).pvalue < FALSE_ALARM)
