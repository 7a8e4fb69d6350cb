"""How full each GPU's memory was, weighted by time."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

from gpudiag.errors import NotMeasurable
from gpudiag.measures._gpu.boards import gpu_boards
from gpudiag.measures._time.series import series
from gpudiag.measures._time.weighted import weighted_mean, weighted_quantiles
from gpudiag.measures.base import RECORD_GPU, Profile, need_columns
from gpudiag.measures.sampling import (
    RECORD_LONGER,
    by_gpu,
    cells,
    cells_of,
    coverage_pct,
    expected_window,
    gpu_order,
    of_its_gpu,
)
from gpudiag.run import Run

MOVED_PCT = 1.0
"""Memory that moves by less than this share of the total does not show what the job takes."""


@dataclass(frozen=True, eq=False, repr=False)
class MemoryProfile(Profile):
    """``per_gpu`` (index gpu): mean_mib, p50_mib, p99_mib, max_mib, min_mib, total_mib (NaN unknown),
    mean_used_pct, p99_used_pct, max_used_pct, headroom_mib (total - max), coverage_pct, max_at (UTC),
    growth_factor ((total - min) / (max - min): an upper limit of how often the job's memory fits; NaN where the
    total is unknown or memory moved by less than 1 % of it), n_rejected (readings above the total that the log
    states, left out of all figures), total_source. A GPU without memory data has a row of NaN.
    ``series``: gpu, time, mem_used_mib, mean_mib, weight_s, decimated, extremes kept; one row with NaN
    stands inside each telemetry gap, so that a line drawn through the rows breaks there. ``mean_mib`` is the
    time-weighted mean of the bin that the row was kept from (mem_used_mib where no row was dropped).
    Scalars are the fullest GPU's: ``max_used_pct`` its maximum, ``headroom_mib`` the least of all GPUs.
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
    need_columns(run.gpu, ("mem_used_mib",), "GPU telemetry", RECORD_GPU)
    boards = gpu_boards(run)
    samples, rejected = _possible(cells(run, "mem_used_mib"), run)
    if not samples["weight_s"].sum() > 0:
        raise NotMeasurable("There is only one sample of each GPU's memory.", RECORD_LONGER)
    coverage = coverage_pct(samples, expected_window(run, samples))
    rows = {
        gpu: _one_gpu(part, boards.at[gpu, "total_mib"]) | {"coverage_pct": coverage[gpu]}
        for gpu, part in by_gpu(samples)
    }
    everyone = gpu_order(run.gpu["gpu"].dropna().unique())
    per_gpu = pd.DataFrame.from_dict(rows, orient="index").reindex(everyone).rename_axis("gpu")
    per_gpu["n_rejected"] = rejected.reindex(everyone, fill_value=0)
    per_gpu["total_source"] = boards["total_source"].reindex(everyone)
    return MemoryProfile(
        per_gpu=per_gpu,
        series=series(samples, "mem_used_mib", "mean_mib"),
        max_used_pct=float(per_gpu["max_used_pct"].max()),
        headroom_mib=float(per_gpu["headroom_mib"].min()),
        coverage_pct=float(min(coverage.values())),
    )


def _possible(samples: pd.DataFrame, run: Run) -> tuple[pd.DataFrame, pd.Series]:
    """The samples without those above the total that the same log states, and how many those are per GPU."""
    if "mem_total_mib" not in run.gpu:
        return samples, pd.Series(dtype="int64")
    totals = {gpu: part["mem_total_mib"].max() for gpu, part in by_gpu(cells(run, "mem_total_mib"))}
    above = samples["mem_used_mib"] > of_its_gpu(samples, pd.Series(totals, dtype=float))
    counts = above.groupby(samples["gpu"]).sum().astype("int64")
    if not above.any():
        return samples, counts
    return cells_of(samples.loc[~above, ["gpu", "time", "mem_used_mib"]], "mem_used_mib"), counts


def _one_gpu(part: pd.DataFrame, total_mib: float) -> dict[str, object]:
    used, weight = part["mem_used_mib"].to_numpy(), part["weight_s"].to_numpy()
    mean = weighted_mean(used, weight)
    p50, p99 = weighted_quantiles(used, weight, (0.5, 0.99))
    low, high = float(used.min()), float(used.max())
    moved = high - low >= MOVED_PCT / 100 * total_mib
    return {
        "mean_mib": mean,
        "p50_mib": p50,
        "p99_mib": p99,
        "max_mib": high,
        "min_mib": low,
        "total_mib": total_mib,
        "mean_used_pct": 100 * mean / total_mib,
        "p99_used_pct": 100 * p99 / total_mib,
        "max_used_pct": 100 * high / total_mib,
        "headroom_mib": total_mib - high,
        "coverage_pct": math.nan,
        "max_at": part["time"].iloc[int(used.argmax())],
        "growth_factor": (total_mib - low) / (high - low) if moved else math.nan,
    }
