"""How full each GPU's memory was, weighted by time."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from gpudiag._run.failure_text import failure_classes
from gpudiag.facts import Column, Fact, Row, Rows, column, fact, table_of
from gpudiag.measures._gpu.boards import gpu_boards
from gpudiag.measures._gpu.gpu_rows import by_gpu, slices
from gpudiag.measures._time.cells import cells, cells_of, rows_by_gpu, sampled_gpus
from gpudiag.measures._time.coverage import coverage_pct, least_pct
from gpudiag.measures._time.microseconds import microseconds
from gpudiag.measures._time.series import series
from gpudiag.measures._time.weighted import weighted_mean, weighted_quantiles
from gpudiag.measures.base import Profile, need_gpu, need_two_samples
from gpudiag.measures.failures import FULL_PCT, classes_of_events
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import BUSY_PCT

MOVED_PCT = 1.0
"""Memory that moves by less than this share of the total does not show what the job takes."""
AHEAD = 2
"""Samples at its level before the first work: one may lie between the allocations of a first step and its kernels."""

SERVERS = re.compile(r"\b(?:vllm|sglang)\b", re.IGNORECASE)
"""Servers that fill most of a GPU when they start, whatever they serve (vLLM's --gpu-memory-utilization, 0.9), after a
run that measures what the model takes: work ahead of it. They name their processes (VLLM::EngineCore)."""


class GpuMemory(Row):
    """A GPU; one without memory data is unknown throughout."""

    mean_mib: Column[float] = column("mean memory in use, weighted by time")
    p50_mib: Column[float] = column("median")
    p99_mib: Column[float] = column("99th percentile")
    max_mib: Column[float] = column("greatest")
    min_mib: Column[float] = column("least")
    total_mib: Column[float] = column("memory of the device, NaN unknown")
    mean_used_pct: Column[float] = column("mean, of the total")
    p99_used_pct: Column[float] = column("99th percentile, of the total", label="memory, 99th percentile")
    max_used_pct: Column[float] = column("greatest, of the total", label="memory at the peak")
    headroom_mib: Column[float] = column("total less the greatest", label="left at the peak")
    coverage_pct: Column[float] = column("observed part of the run")
    max_at: Column[pd.Timestamp] = column("when it was greatest", label="peak at")
    growth_factor: Column[float] = column(
        "(total - min) / (max - min): an upper limit of how often the job's memory fits; NaN where the total is "
        "unknown or memory moved by less than 1 % of it",
        label="times as much would fit",
    )
    max_util_pct: Column[float] = column("highest utilization of the GPU, NaN unknown")
    is_reserved: Column[bool] = column(
        "memory rose to its greatest at once, before the GPU was busy (50 %), and was the same until it was freed: a "
        "framework reserved it; or a server that does so (vLLM, SGLang) had the GPU; never where memory ran out"
    )
    n_rejected: Column[int] = column("readings above the total that the log states, left out of all figures")
    total_source: Column[str] = column("where the total is from")


class MemoryCourse(Row):
    """A sample, decimated, extremes kept; one row with NaN stands inside each telemetry gap, so that a line drawn
    through the rows breaks there.
    """

    gpu: Column[str] = column("GPU")
    time: Column[pd.Timestamp] = column("instant")
    mem_used_mib: Column[float] = column("memory in use")
    mean_mib: Column[float] = column(
        "time-weighted mean of the bin that the row was kept from (mem_used_mib where no row was dropped)"
    )
    weight_s: Column[float] = column("time that the row stands for")


class MemoryProfile(Profile, topic="memory"):
    """How full the memory was. Scalars are the fullest GPU's."""

    per_gpu: Rows = table_of(GpuMemory)
    series: Rows = table_of(MemoryCourse)
    max_used_pct: Fact[float] = fact("greatest memory in use, of the total")
    headroom_mib: Fact[float] = fact("total less the greatest, the least of all GPUs")
    coverage_pct: Fact[float] = fact("observed part of the run, the least of all GPUs")
    n_oom_unseen: Fact[int] = fact(
        "trials out of GPU memory, or log lines where these are more, where no GPU was seen at 95 % or more: its peak "
        "lay between samples"
    )


@memoized
def measure_memory(run: Run) -> MemoryProfile:
    """Fullness of each GPU's memory. Needs gpu.mem_used_mib; shares need the total from the log,
    run.toml or the data sheet.
    """
    need_gpu(run, "mem_used_mib")
    boards = gpu_boards(run)
    samples, rejected = possible_readings(cells(run, "mem_used_mib"), run)
    need_two_samples(samples["weight_s"].sum() > 0, "GPU's memory")
    coverage = coverage_pct(run, samples)
    rows = {
        gpu: _one_gpu(part, boards.at[gpu, "total_mib"]) | {"coverage_pct": coverage[gpu]}
        for gpu, part in by_gpu(samples)
    }
    everyone = sampled_gpus(run)
    per_gpu = pd.DataFrame.from_dict(rows, orient="index").reindex(everyone).rename_axis("gpu")
    per_gpu["max_util_pct"] = pd.Series(_most_util_pct(run), dtype=float)
    ran_out, work = _n_oom(run) > 0, {} if "util_pct" not in run.gpu else _first_and_last_work(run)
    serves = _serves(run)
    reserved = {
        gpu for gpu, own in by_gpu(samples) if gpu in work and _is_reserved(own, rows[gpu], work[gpu], gpu in serves)
    }
    per_gpu["is_reserved"] = [not ran_out and gpu in reserved for gpu in everyone]
    per_gpu["n_rejected"] = rejected.reindex(everyone, fill_value=0)
    per_gpu["total_source"] = boards["total_source"].reindex(everyone)
    return MemoryProfile(
        per_gpu=per_gpu,
        series=series(samples, "mem_used_mib", "mean_mib"),
        max_used_pct=float(per_gpu["max_used_pct"].max()),
        headroom_mib=float(per_gpu["headroom_mib"].min()),
        coverage_pct=least_pct(coverage.values()),
        n_oom_unseen=0 if (per_gpu["max_used_pct"] >= FULL_PCT).any() else _n_oom(run),
    )


def _n_oom(run: Run) -> int:
    of_trials = (failure_classes(run.trials) == "oom") & (run.trials["state"] == "FAIL")
    return max(int(of_trials.sum()), int((classes_of_events(run) == "oom").sum()))


def _is_reserved(own: pd.DataFrame, row: Mapping[str, Any], work_us: tuple[int, int], serves: bool) -> bool:
    """Whether the memory of a GPU is as of a framework that takes it all at its start, and holds it while it works.
    Of one that ``serves`` that it takes it is known.
    """
    held = own["mem_used_mib"].to_numpy() > row["max_mib"] - MOVED_PCT / 100 * row["total_mib"]
    where = np.flatnonzero(held)
    if not row["total_mib"] > 0 or not len(where) or (where[0] == 0 and not serves):
        return False
    time_us = microseconds(own["time"])
    ahead = int((time_us[where] < work_us[0]).sum())
    throughout = work_us[1] <= time_us[min(where[-1] + 1, len(time_us) - 1)]
    return bool(held[where[0] : where[-1] + 1].all()) and (serves or ahead >= AHEAD) and bool(throughout)


def _serves(run: Run) -> set[str]:
    """The GPUs whose processes with a name are all of servers that reserve memory."""
    if "name" not in run.processes:
        return set()
    named = run.processes[["gpu", "name"]].dropna().drop_duplicates()
    return set(named["gpu"]) - set(named.loc[~named["name"].str.contains(SERVERS), "gpu"])


def _first_and_last_work(run: Run) -> dict[str, tuple[int, int]]:
    """When each GPU that ever was busy was so first and last, in microseconds."""
    busy, time_us = (run.gpu["util_pct"] >= BUSY_PCT).to_numpy(), microseconds(run.gpu["time"])
    at = {gpu: time_us[rows][busy[rows]] for gpu, rows in rows_by_gpu(run).items()}
    return {gpu: (int(own.min()), int(own.max())) for gpu, own in at.items() if len(own)}


def _most_util_pct(run: Run) -> dict[str, float]:
    if "util_pct" not in run.gpu:
        return {}
    util = run.gpu["util_pct"].to_numpy(float)
    return {gpu: float(np.fmax.reduce(util[rows], initial=math.nan)) for gpu, rows in rows_by_gpu(run).items()}


def possible_readings(samples: pd.DataFrame, run: Run) -> tuple[pd.DataFrame, pd.Series]:
    """The samples without those above the total that the same log states, and how many those are per GPU."""
    if "mem_total_mib" not in run.gpu:
        return samples, pd.Series(dtype="int64")
    known = cells(run, "mem_total_mib")
    total = known["mem_total_mib"].to_numpy()
    totals = {gpu: total[own].max() for gpu, own in slices(known)}
    used, above = samples["mem_used_mib"].to_numpy(), np.zeros(len(samples), bool)
    counts = {}
    for gpu, own in slices(samples):
        np.greater(used[own], totals.get(gpu, math.nan), out=above[own])
        counts[gpu] = int(np.count_nonzero(above[own]))
    rejected = pd.Series(counts, dtype="int64")
    if not above.any():
        return samples, rejected
    return cells_of(samples.loc[~above, ["gpu", "time", "mem_used_mib"]], "mem_used_mib"), rejected


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
