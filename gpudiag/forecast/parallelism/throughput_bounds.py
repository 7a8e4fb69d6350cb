"""What holds for any number of workers without a model of sharing (METHODS 10)."""

from __future__ import annotations

import numpy as np

from gpudiag.forecast.estimate import NAN, Estimate
from gpudiag.forecast.parallelism.handover import Handover
from gpudiag.forecast.parallelism.placement import Placement
from gpudiag.forecast.parallelism.process_loss import MOST_LOSS
from gpudiag.measures._time.microseconds import SECOND_US

Z_90 = 1.645


def measured_rate(
    start_us: np.ndarray, end_us: np.ndarray, handover: Handover, workers: int, since_us: float = -np.inf
) -> Estimate:
    """Trials per hour while there were ``workers``, with a 90 % interval for a future of as many trials.

    A trial counts by the share of its life that lies in that time, so that those cut by its borders bias nothing.
    """
    low, high = (np.maximum(ends, since_us) for ends in handover.periods(workers))
    share = sum((shares_within(start_us, end_us, *period) for period in zip(low, high, strict=True)), 0.0 * start_us)
    count = float(share.sum())
    length = (end_us - start_us)[share > 0]
    if len(length) < 2 or not count > 0:
        return Estimate.unknown("trials/h", "Too few trials ran with that many workers.")
    rate = 3600.0 * SECOND_US * count / float((high - low).sum())
    spread = 2.0**0.5 * Z_90 * float(length.std(ddof=1) / length.mean()) / count**0.5
    return Estimate(rate, rate / (1.0 + spread), rate * (1.0 + spread), "trials/h")


def shares_within(start_us: np.ndarray, end_us: np.ndarray, low_us: float, high_us: float) -> np.ndarray:
    """The share of each trial's life from ``low_us`` to ``high_us``; one without length counts where it lies."""
    inside = np.minimum(end_us, high_us) - np.maximum(start_us, low_us)
    length = end_us - start_us
    point = ((start_us >= low_us) & (start_us < high_us)).astype(float)
    return np.where(length > 0, np.clip(inside, 0, None) / np.maximum(length, 1), point)


def bounded_gain(now: Placement, then: Placement, busy_share: float = NAN) -> tuple[float, float]:
    """Least and greatest gain of the workers ``then`` over those ``now``, as long as none fails or thrashes.

    GPUs are taken to be alike. Each further worker of one brings between nothing and as much as the one before it: the
    extremes are curves of throughput that rise in proportion up to a number of workers and then stay. Each process may
    cost the others on its GPU. More workers bring at most 1/u, all idle time filled, times the GPUs that they use over
    those of now (u unknown is no bound; give the lower end of its interval). On one GPU that is: fewer bring at least
    their share, more at most theirs.
    """
    ratios = [
        _throughput(then, useful, loss) / _throughput(now, useful, loss)
        for useful in range(1, max(*now, *then) + 1)
        for loss in (0.0, MOST_LOSS)
    ]
    least, most = min(ratios), max(ratios)
    if sum(then) > sum(now) and busy_share > 0:
        gpus = sum(map(bool, then)) / sum(map(bool, now))
        most = min(most, max(1.0, gpus / busy_share))
    return least, most


def _throughput(placed: Placement, useful: int, loss: float) -> float:
    """Of workers that are of use up to so many on a GPU, in units of one alone."""
    return sum(min(workers, useful) * (1.0 - loss) ** max(workers - 1, 0) for workers in placed)


def bounded_rate(now: Estimate, workers: Placement, wanted: Placement, busy_share: float = NAN) -> tuple[float, float]:
    """Least and greatest trials per hour of the workers ``wanted``, given those of ``workers``: as
    :func:`bounded_gain`.
    """
    low, high = bounded_gain(workers, wanted, busy_share)
    return now.low * low, now.high * high
