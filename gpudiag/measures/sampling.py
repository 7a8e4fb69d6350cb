"""How well the telemetry covers the time: period, gaps, coverage, and the weight of each sample.

METHODS: a sample stands for the midpoint (Voronoi) cell around it, each half capped at 1.5 times
the median period (at least 1.5 s), so that a sampler that slows down under load does not bias a
mean and a gap is never bridged. Observed time is the sum of weights; the rest is unobserved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from gpudiag.run import Run


@dataclass(frozen=True, eq=False)
class SamplingProfile:
    """``per_gpu`` (index gpu): n_samples, start, end, span_s, median_period_s, cap_s, observed_s,
    unobserved_s, coverage_pct, n_gaps, longest_gap_s, n_duplicates, n_backward. ``gaps``: one row a gap (gpu, start, end,
    gap_s, trials_ended: number of trials that ended FAIL within it). ``coverage_pct`` is the least
    over GPUs of observed time over the expected span (trials' span where trials exist).
    """

    per_gpu: pd.DataFrame
    gaps: pd.DataFrame
    coverage_pct: float
    median_period_s: float
    n_gaps: int
    longest_gap_s: float


def measure_sampling(run: Run) -> SamplingProfile:
    """Period, coverage and gaps per GPU. Needs at least two samples of one GPU."""
    raise NotImplementedError
