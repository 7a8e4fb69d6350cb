"""What share of the trials ends COMPLETE: it may differ with how many run at once."""

from __future__ import annotations

import numpy as np

from gpudiag.forecast.parallelism.handover import Handover
from gpudiag.measures._trials.failure_periods import LEAST_ENDED
from gpudiag.measures._trials.proportions import wilson_pct


def ended_beside(handover: Handover, end_us: np.ndarray) -> np.ndarray:
    """How many workers there were when each trial ended, its own among them."""
    return handover.workers_at(end_us - 1)  # at its end it may be gone


def complete_share(beside: np.ndarray, complete: np.ndarray, workers: int) -> tuple[float, float, float]:
    """Share (0..1) of finished trials that end COMPLETE beside so many workers, with its Wilson 95 % interval.

    Of those that ended so where they are LEAST_ENDED or more. Else of all, and the interval reaches to that of each
    number of workers with as many: more at once may fail more often, and nobody knows from where on.
    """
    parts = {int(n): complete[beside == n] for n in np.unique(beside)}
    known = {n: _with_interval(part) for n, part in parts.items() if len(part) >= LEAST_ENDED}
    if workers in known:
        return known[workers]
    share, low, high = _with_interval(complete)
    return share, min([low, *(one[1] for one in known.values())]), max([high, *(one[2] for one in known.values())])


def _with_interval(complete: np.ndarray) -> tuple[float, float, float]:
    done = int(complete.sum())
    low, high = wilson_pct(done, len(complete))
    return done / len(complete), low / 100, high / 100
