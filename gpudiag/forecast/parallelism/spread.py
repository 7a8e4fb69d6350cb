"""Intervals from many futures: percentiles of the double bootstrap, widened as was measured, clipped by bounds.

Rates and their ratios are widened on a log scale, so that no end is zero or below it; shares are not.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpudiag.forecast.estimate import Estimate
from gpudiag.forecast.parallelism.colocation import BUSY_LAWS
from gpudiag.forecast.parallelism.processor_sharing import Futures

NOMINAL = (5.0, 95.0)
"""Nominal 90 %; before widening it covers 73-80 % inside what was observed, 53-67 % outside (METHODS 10)."""
INSIDE, FAR = 2.0, 2.5
"""Times the half-width; beyond 1.5 times the number of workers observed the second."""
FAR_FROM = 1.5


def widening(wanted: float, observed: float, from_backtest: float = INSIDE) -> float:
    """Times the half-width of the double bootstrap: as measured, or what the back-test asked for if that is more."""
    return max(FAR if wanted > FAR_FROM * observed else INSIDE, from_backtest)


def spread(value: float, sample: np.ndarray, factor: float, unit: str) -> Estimate:
    """``value`` with the widened percentiles of ``sample``."""
    low, high = np.percentile(sample, NOMINAL)
    low, high = value - factor * max(value - low, 0.0), value + factor * max(high - value, 0.0)
    return Estimate(value, float(low), float(high), unit)


def rate_spread(value: float, sample: np.ndarray, factor: float, unit: str) -> Estimate:
    """``value`` > 0 with the percentiles of ``sample``, widened on a log scale."""
    low, high = np.percentile(sample, NOMINAL)
    return Estimate(value, widened(value, min(low, value), factor), widened(value, max(high, value), factor), unit)


def widened(middle: float, end: float, factor: float) -> float:
    """An end of an interval of rates, ``factor`` times as far from its middle on a log scale; infinite beyond all."""
    with np.errstate(over="ignore"):
        return float(middle * np.float64(end / middle) ** factor) if middle > 0 else float(end)


def stretched(estimate: Estimate, factor: float, within: tuple[float, float] = (-np.inf, np.inf)) -> Estimate:
    """The same, with the end that ``factor`` (1: nothing) moves away from the value moved by it, within bounds."""
    low, high = estimate.low * min(factor, 1.0), estimate.high * max(factor, 1.0)
    low, value, high = (float(np.clip(x, *within)) for x in (low, estimate.value, high))
    return replace(estimate, low=low, value=value, high=high)


def ratio_estimate(
    point: Futures,
    many: Futures,
    now: Futures,
    now_many: Futures,
    factor: float,
    within: tuple[float, float] = (-np.inf, np.inf),
    also: tuple[float, ...] = (),
) -> Estimate:
    """Throughput over the present one; both come from the same draws, so that their common noise cancels.

    The logs were resampled under each law of U in turn (a half each). Noise is widened within a law, and the interval
    reaches over both: that they differ is no noise, and is not widened.
    """
    value = float(point.throughput_h.mean() / now.throughput_h.mean())
    return by_law(value, many.throughput_h / now_many.throughput_h, factor, "", also=also, within=within)


def by_law(value: float, sample: np.ndarray, factor: float, unit: str, *, also: tuple[float, ...] = (),
           within: tuple[float, float] = (-np.inf, np.inf)) -> Estimate:  # fmt: skip
    """``value`` in the interval of :func:`ratio_estimate`: the halves of the sample are of one law each."""
    ends = []
    for half in np.array_split(sample, len(BUSY_LAWS)):
        low, middle, high = np.percentile(half, (NOMINAL[0], 50.0, NOMINAL[1]))
        ends += [widened(middle, low, factor), widened(middle, high, factor)]
    return stretched(Estimate(value, min(value, *ends, *also), max(value, *ends, *also), unit), 1.0, within)
