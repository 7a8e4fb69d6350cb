"""How full each GPU's memory was, weighted by time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from gpudiag.run import Run


@dataclass(frozen=True, eq=False)
class MemoryProfile:
    """``per_gpu`` (index gpu): mean_mib, p50_mib, p99_mib, max_mib, min_mib, total_mib (NaN unknown),
    mean_used_pct, p99_used_pct, max_used_pct, headroom_mib (total - max), coverage_pct,
    max_at (UTC), growth_factor (total / (max - baseline), an upper limit of what fits, NaN unknown).
    ``series``: gpu, time, mem_used_mib, mean_mib, decimated, extremes kept; one row with NaN stands inside
    each telemetry gap, so that a line drawn through the rows breaks there. ``mean_mib`` is the
    time-weighted mean of the bin that the row was kept from (mem_used_mib where no row was dropped).
    """

    per_gpu: pd.DataFrame
    series: pd.DataFrame
    max_used_pct: float
    headroom_mib: float
    coverage_pct: float


def measure_memory(run: Run) -> MemoryProfile:
    """Fullness of each GPU's memory. Needs gpu.mem_used_mib; shares need the total from the log,
    run.toml or the data sheet.
    """
    raise NotImplementedError
