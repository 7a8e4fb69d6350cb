"""What holds for any number of workers without a model of sharing (METHODS 10)."""

from __future__ import annotations

import numpy as np

from gpudiag.forecast.estimate import Estimate
from gpudiag.forecast.parallelism.handover import Handover
from gpudiag.forecast.parallelism.process_loss import slowed
from gpudiag.measures._time.microseconds import SECOND_US

Z_90 = 1.645


def measured_rate(start_us: np.ndarray, end_us: np.ndarray, handover: Handover, workers: int) -> Estimate:
    """Trials per hour while there were ``workers``, with a 90 % interval for a future of as many trials.

    A trial counts by the share of its life that lies in that time, so that those cut by its borders bias nothing.
    """
    low, high = handover.periods(workers)
    share = sum((shares_within(start_us, end_us, *period) for period in zip(low, high, strict=True)), 0.0 * start_us)
    count = float(share.sum())
    rate = 3600.0 * SECOND_US * count / float((high - low).sum())
    length = (end_us - start_us)[share > 0]
    if len(length) < 2 or not count > 0:
        return Estimate.unknown("trials/h", "Too few trials ran with that many workers.")
    spread = 2.0**0.5 * Z_90 * float(length.std(ddof=1) / length.mean()) / count**0.5
    return Estimate(rate, rate / (1.0 + spread), rate * (1.0 + spread), "trials/h")


def shares_within(start_us: np.ndarray, end_us: np.ndarray, low_us: float, high_us: float) -> np.ndarray:
    """The share of each trial's life from ``low_us`` to ``high_us``; one without length counts where it lies."""
    inside = np.minimum(end_us, high_us) - np.maximum(start_us, low_us)
    length = end_us - start_us
    point = ((start_us >= low_us) & (start_us < high_us)).astype(float)
    return np.where(length > 0, np.clip(inside, 0, None) / np.maximum(length, 1), point)


def bounded_gain(workers: float, wanted: float, busy_share: float, gpus: int = 1) -> tuple[float, float]:
    """Least and greatest gain of ``wanted`` workers over ``workers``, as long as none fails or thrashes.

    Fewer bring at least their share and at most as much as now, and what each process cost the others; more bring at
    least as much as now less that cost, at most their share, and at most 1/u, all idle time filled (u unknown is no
    bound; give the lower end of its interval).
    """
    ratio, loss = wanted / workers, slowed(workers, wanted, gpus)
    if ratio <= 1.0:
        return ratio, loss
    most = min(ratio, 1.0 / busy_share) if busy_share > 0 else ratio
    return loss, max(most, 1.0)


def bounded_rate(now: Estimate, workers: float, wanted: float, busy_share: float, gpus: int = 1) -> tuple[float, float]:
    """Least and greatest trials per hour at ``wanted`` workers, given those at ``workers``: as :func:`bounded_gain`."""
    low, high = bounded_gain(workers, wanted, busy_share, gpus)
    return now.low * low, now.high * high
