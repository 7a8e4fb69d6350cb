"""What is followed over the weeks of a fleet: ratios over runs, and how their noise is evened out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from gpudiag.report.fleet.document import RunRow

Parts = tuple[float, float]
"""Numerator and denominator of a quantity, which add up over runs."""


@dataclass(frozen=True)
class Quantity:
    """A ratio over runs. ``scaled`` evens out its noise; steps smaller than ``relevant`` (difference, or ratio minus 1)
    are left out, and the noise of the scaled values is ``least`` at least.
    """

    name: str
    title: str
    unit: str
    higher_is_better: bool
    of: Callable[[RunRow], Parts | None]
    scaled: Callable[[float], float]
    least: float
    relevant: float
    relative: bool = False


def _utilization(row: RunRow) -> Parts | None:
    seen = (row.gpu_s or 0.0) - (row.unobserved_gpu_s or 0.0)
    return None if row.util_pct is None or seen <= 0 else (row.util_pct * seen, seen)


def _per_completed(row: RunRow) -> Parts | None:
    return None if row.gpu_s is None or not row.n_trials else (row.gpu_s, float(row.n_completed or 0))


def _failed(row: RunRow) -> Parts | None:
    return (100.0 * (row.n_failed or 0), float(row.n_trials)) if row.n_trials else None


def _log_odds(pct: float) -> float:
    inside = min(max(pct, 0.5), 99.5)
    return math.log(inside / (100 - inside))


def _arcsine(pct: float) -> float:
    return math.asin(math.sqrt(min(max(pct, 0.0), 100.0) / 100))


QUANTITIES = (
    Quantity("util_pct", "utilization", "%", True, _utilization, _log_odds, 0.02, 5.0),
    Quantity("gpu_s", "GPU time per completed trial", "GPU-s", False, _per_completed, math.log, 0.01, 0.1, True),
    Quantity("failed_pct", "failed trials", "%", False, _failed, _arcsine, 0.01, 3.0),
)


def ratio(quantity: Quantity, rows: Iterable[RunRow]) -> float | None:
    """The quantity of these runs together; None where its denominator is 0."""
    parts = [part for row in rows if (part := quantity.of(row)) is not None]
    total = math.fsum(below for _, below in parts)
    return math.fsum(above for above, _ in parts) / total if total else None
