"""Idle time before and after the work, and idle time with memory held."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from gpudiag.errors import NotMeasurable
from gpudiag.facts import Column, Fact, Row, Rows, column, fact, table_of
from gpudiag.measures._gpu.boards import gpu_boards
from gpudiag.measures._time.microseconds import SECOND_US
from gpudiag.measures._time.work import stretches
from gpudiag.measures.base import Profile, need_gpu
from gpudiag.measures.sampling import RECORD_LONGER, by_gpu, cells, coverage_pct, expected_window, trials_window
from gpudiag.run import Run
from gpudiag.schema import IDLE_PCT

HELD_PCT = 10.0
HELD_MIB = 1024.0
"""Memory beyond what a desktop and a CUDA context take: the larger of a tenth of the total and 1 GiB."""
LONG_S = 600.0
ZERO_PCT = 1.0
HOLE_SHARE = 0.1
"""Of the idle time seen at an end of the record: work may hide in a longer hole of it, and what lies on the hole's
other side is no end any more."""


class GpuIdleness(Row):
    """A GPU; one that was never active has no lead and no trail."""

    lead_s: Column[float] = column("from the first sample to the first activity, or to a hole that may hide it")
    trail_s: Column[float] = column("from the last activity on, or from the last hole that may hide some")
    lead_mib: Column[float] = column("mean memory in use meanwhile, NaN unknown")
    trail_mib: Column[float] = column("the same of the trail")
    held_mib: Column[float] = column("what counts as memory held", label="memory held")
    observed_s: Column[float] = column("observed time")
    allocated_idle_s: Column[float] = column(
        "observed time in unbroken stretches of 10 min or more at 0-1 % utilization with memory held; NaN without "
        "memory data",
        label="memory held while idle",
    )
    longest_allocated_idle_s: Column[float] = column("longest of them", label="longest at a stretch")


class IdlenessProfile(Profile, topic="idleness"):
    """Time before the first and after the last activity, and memory held idle."""

    per_gpu: Rows = table_of(GpuIdleness)
    has_trials: Fact[bool] = fact("trials on the telemetry's clock tell when the job ran")
    coverage_pct: Fact[float] = fact("observed part of the run, the least of all GPUs")


def measure_idleness(run: Run) -> IdlenessProfile:
    """Idle ends and idle allocations of each GPU. Needs gpu.util_pct."""
    need_gpu(run, "util_pct")
    has_memory = "mem_used_mib" in run.gpu
    samples = cells(run, "util_pct", *(["mem_used_mib"] if has_memory else []))
    if not samples["weight_s"].sum() > 0:
        raise NotMeasurable("There is only one sample of each GPU.", RECORD_LONGER)
    totals = gpu_boards(run)["total_mib"]
    rows = {}
    for gpu, part in by_gpu(samples):
        used = part["mem_used_mib"].to_numpy(float) if has_memory else np.full(len(part), math.nan)
        rows[gpu] = _one_gpu(part, used, max(HELD_MIB, HELD_PCT / 100 * np.nan_to_num(totals.get(gpu, 0.0))))
    coverage = coverage_pct(samples, expected_window(run, samples))
    per_gpu = pd.DataFrame.from_dict(rows, orient="index").rename_axis("gpu")
    return IdlenessProfile(per_gpu, trials_window(run) is not None, min(coverage.values()))


def _one_gpu(part: pd.DataFrame, used: np.ndarray, held_mib: float) -> dict[str, float]:
    util, start, end = (part[name].to_numpy() for name in ("util_pct", "start_us", "end_us"))
    first, last = stretches((util <= ZERO_PCT) & (used >= held_mib), start, end)
    lengths = (end[last] - start[first]) / SECOND_US
    lengths = lengths[lengths >= LONG_S]
    known = bool(np.isfinite(used).any())
    return {
        **_ends(util, used, start, end),
        "held_mib": held_mib,
        "observed_s": float((end - start).sum() / SECOND_US),
        "allocated_idle_s": float(lengths.sum()) if known else math.nan,
        "longest_allocated_idle_s": float(lengths.max(initial=0.0)) if known else math.nan,
    }


def _ends(util: np.ndarray, used: np.ndarray, start: np.ndarray, end: np.ndarray) -> dict[str, float]:
    active = np.flatnonzero(util >= IDLE_PCT)
    if not len(active):
        return dict.fromkeys(("lead_s", "trail_s", "lead_mib", "trail_mib"), math.nan)
    weight = (end - start) / SECOND_US
    hole = np.append((start[1:] - end[:-1]) / SECOND_US, 0.0)  # behind each sample
    lead, trail = slice(0, active[0]), slice(active[-1] + 1, None)
    hiding = np.flatnonzero(hole[lead][:-1] > HOLE_SHARE * weight[lead].sum())
    if len(hiding):
        lead = slice(0, hiding[0] + 1)
    hiding = np.flatnonzero(hole[trail] > HOLE_SHARE * weight[trail].sum())
    if len(hiding):
        trail = slice(active[-1] + hiding[-1] + 2, None)
    return {
        "lead_s": float(weight[lead].sum()),
        "trail_s": float(weight[trail].sum()),
        "lead_mib": _mean(used[lead]),
        "trail_mib": _mean(used[trail]),
    }


def _mean(values: np.ndarray) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else math.nan
