"""Whether trials change in the course of a study: then its past is no model of its future."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gpudiag.forecast.estimate import NAN
from gpudiag.measures._trials.chances import p_trend
from gpudiag.plain_data import NAN_IS_NULL

FALSE_ALARM = 0.05
"""With 300 trials that finds 65 % of drifts of half the work, at 7 % false alarms (METHODS 10)."""
MIN_TRIALS = 20


@dataclass(frozen=True)
class Drift:
    """Spearman's rank correlation of order and work, ``rho``, its p-value, and whether it is ``found``."""

    rho: float = field(default=NAN, metadata=NAN_IS_NULL)
    p_value: float = field(default=NAN, metadata=NAN_IS_NULL)
    found: bool = False


def find_drift(work_s: np.ndarray) -> Drift:
    """Test solo work (in order of start) for a trend. Unlike durations, work does not change with the workers.

    Give it no failed trials: a fault that cuts trials short at one time is no change of the trials.
    """
    if len(work_s) < MIN_TRIALS or np.ptp(work_s) == 0:
        return Drift()
    rho, p = p_trend(work_s)
    return Drift(rho, p, p < FALSE_ALARM)
