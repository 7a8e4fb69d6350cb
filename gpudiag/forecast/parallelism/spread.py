"""Intervals from many futures: percentiles of the double bootstrap, widened as was measured, clipped by bounds."""

from __future__ import annotations

import numpy as np

from gpudiag.forecast.estimate import Estimate
from gpudiag.forecast.parallelism.processor_sharing import Futures

NOMINAL = (5.0, 95.0)
"""Nominal 90 %; before widening it covers 73-80 % inside what was observed, 53-67 % outside (METHODS 10)."""
INSIDE, FAR = 2.0, 2.5
"""Times the half-width; beyond 1.5 times the number of workers observed the second."""
FAR_FROM = 1.5


def widening(wanted: float, observed: float, from_backtest: float = INSIDE) -> float:
    """Times the half-width of the double bootstrap: as measured, or what the back-test asked for if that is more."""
    return max(FAR if wanted > FAR_FROM * observed else INSIDE, from_backtest)


def spread(value: float, sample: np.ndarray, factor: float, unit: str, *, also: tuple[float, ...] = (),
           within: tuple[float, float] = (-np.inf, np.inf)) -> Estimate:  # fmt: skip
    """``value`` with the widened percentiles of ``sample``, reaching to all of ``also``, clipped to ``within``."""
    low, high = np.percentile(sample, NOMINAL)
    low = min(value - factor * max(value - low, 0.0), *also, value)
    high = max(value + factor * max(high - value, 0.0), *also, value)
    low, value, high = (float(np.clip(x, *within)) for x in (low, value, high))
    return Estimate(value, low, high, unit)


def ratio_estimate(
    point: Futures,
    many: Futures,
    now: Futures,
    now_many: Futures,
    factor: float,
    within: tuple[float, float],
    also: tuple[float, ...] = (),
) -> Estimate:
    """Throughput over the present one; both come from the same draws, so that their common noise cancels."""
    value = float(point.throughput_h.mean() / now.throughput_h.mean())
    return spread(value, many.throughput_h / now_many.throughput_h, factor, "", also=also, within=within)
