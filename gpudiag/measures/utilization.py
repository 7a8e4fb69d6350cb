"""How busy each GPU was, weighted by time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from gpudiag.run import Run


@dataclass(frozen=True, eq=False)
class UtilizationProfile:
    """``per_gpu`` (index gpu): mean_pct, p5_pct, p50_pct, p95_pct, max_pct, idle_pct (share of
    observed time at util <= 10), duty_pct (share of observed time at util > 10), busy_pct (share at util >= 50), coverage_pct, observed_s,
    n_samples, first_active, last_active (UTC or NaT), idle_gpu_h (observed idle time),
    mem_at_baseline (True if memory never rose above its minimum + 5 % of total or 300 MiB, NaN unknown).
    ``series``: gpu, time, util_pct, mean_pct, weight_s, decimated to what a figure needs, extremes kept;
    one row with NaN stands inside each telemetry gap, so that a line drawn through the rows breaks there.
    ``mean_pct`` is the time-weighted mean of the bin that the row was kept from (util_pct where no row
    was dropped): the mean of extremes would show a GPU at 95 % with rare dips to 0 as half idle.
    Scalars are over all GPUs with util data.
    """

    per_gpu: pd.DataFrame
    series: pd.DataFrame
    mean_pct: float
    idle_pct: float
    coverage_pct: float
    n_gpus: int
    span_s: float
    observed_gpu_h: float


def measure_utilization(run: Run) -> UtilizationProfile:
    """Busyness of each GPU over the run. Needs gpu.util_pct."""
    raise NotImplementedError
