"""Waits within the work of a GPU: regular ones with their period, and irregular ones."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from gpudiag.errors import NotMeasurable
from gpudiag.facts import Column, Fact, Row, Rows, column, fact, table_of
from gpudiag.measures._time.microseconds import SECOND_US
from gpudiag.measures._time.periodicity import Period
from gpudiag.measures._time.weighted import weighted_mean, weighted_quantiles
from gpudiag.measures._time.work import WorkSamples, period_by_gpu, stretches, work_by_gpu, work_coverage_pct
from gpudiag.measures.base import Profile, need_gpu
from gpudiag.measures.sampling import RECORD_LONGER, gpu_order, longest_period_s
from gpudiag.run import Run
from gpudiag.schema import IDLE_PCT

LONGEST_S = 600.0
"""Without trials an idle stretch longer than this lies between jobs and is no stall."""
NEAR = 0.25


class GpuStalls(Row):
    """A GPU at work."""

    work_s: Column[float] = column("observed time at work")
    p95_pct: Column[float] = column("95th percentile of utilization at work")
    stalled_s: Column[float] = column("time below 10 % utilization", label="stalled for")
    stalled_pct: Column[float] = column("its share of work_s", label="time stalled")
    n_stalls: Column[float] = column("stalls", label="stalls")
    longest_stall_s: Column[float] = column("longest of them", label="longest stall")
    acf: Column[float] = column(
        "height of the first peak of the autocorrelation, NaN without one", label="autocorrelation at the period"
    )
    period_s: Column[float] = column("where that peak is", label="every")
    n_dips: Column[float] = column("dips", label="dips seen")
    regular_pct: Column[float] = column("share of the steps from dip to dip within a quarter of the period")
    depth_pct: Column[float] = column("points below the level between dips", label="deep by")
    width_s: Column[float] = column("median width of a dip", label="each lasting")
    lost_pct: Column[float] = column("share of the work that the dips cost", label="utilization lost")


class StallsProfile(Profile, topic="stalls"):
    """Stalls and regular dips of GPUs at work."""

    per_gpu: Rows = table_of(GpuStalls)
    coverage_pct: Fact[float] = fact("observed part of the run, the least of all GPUs")
    sampling_period_s: Fact[float] = fact(
        "median step between samples, of the GPU sampled least often; what is shorter cannot be seen"
    )


def measure_stalls(run: Run) -> StallsProfile:
    """Stalls of each GPU while it was at work. Needs gpu.util_pct."""
    need_gpu(run, "util_pct")
    works = work_by_gpu(run)
    if not works:
        raise NotMeasurable("There is only one sample of each GPU.", RECORD_LONGER)
    periods = period_by_gpu(run)
    rows = {gpu: _one_gpu(works[gpu], periods[gpu]) for gpu in gpu_order(works)}
    per_gpu = pd.DataFrame.from_dict(rows, orient="index").rename_axis("gpu")
    return StallsProfile(per_gpu, work_coverage_pct(run, works), longest_period_s(w.time_us for w in works.values()))


def _one_gpu(work: WorkSamples, period: Period | None) -> dict[str, float]:
    at, weight = work.at_work, work.weight_s
    worked = float(weight[at].sum())
    (p95,) = weighted_quantiles(work.util_pct[at], weight[at], (0.95,))
    return {
        "work_s": worked,
        "p95_pct": p95,
        **_stalls(work, worked),
        **_dips(work, worked, period),
    }


def _stalls(work: WorkSamples, worked: float) -> dict[str, float]:
    first, last = stretches(work.at_work & (work.util_pct < IDLE_PCT), work.start_us, work.end_us)
    lengths = (work.end_us[last] - work.start_us[first]) / SECOND_US
    if not work.from_trials:
        lengths = lengths[lengths <= LONGEST_S]
    total = float(lengths.sum())
    return {
        "stalled_s": total,
        "stalled_pct": 100 * total / worked if worked else math.nan,
        "n_stalls": float(len(lengths)),
        "longest_stall_s": float(lengths.max()) if len(lengths) else 0.0,
    }


def _dips(work: WorkSamples, worked: float, found: Period | None) -> dict[str, float]:
    """The period of the utilization and what the dips that repeat with it cost."""
    names = ("acf", "period_s", "n_dips", "regular_pct", "depth_pct", "width_s", "lost_pct")
    if found is None:
        return dict.fromkeys(names, math.nan)
    low, high = weighted_quantiles(work.util_pct[work.at_work], work.weight_s[work.at_work], (0.02, 0.75))
    below = work.at_work & (work.util_pct < (low + high) / 2)
    first, last = stretches(below, work.start_us, work.end_us)
    steps = np.diff(work.start_us[first]) / SECOND_US
    near = np.abs(steps - found.period_s) <= NEAR * found.period_s
    depth = high - weighted_mean(work.util_pct[below], work.weight_s[below])
    share = float(work.weight_s[below].sum()) / worked
    width = np.median(work.end_us[last] - work.start_us[first]) / SECOND_US if len(first) else math.nan
    values = (found.height, found.period_s, float(len(first)), 100 * float(near.mean()) if len(steps) else math.nan)
    return dict(
        zip(names, (*values, depth, float(width), 100 * share * depth / high if high else math.nan), strict=True)
    )
