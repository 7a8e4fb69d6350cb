"""Idle time before, between and after the work, and idle time with memory held."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pandas as pd

from gpudiag.errors import NotMeasurable
from gpudiag.facts import Column, Fact, Row, Rows, column, fact, table_of
from gpudiag.measures._gpu.boards import gpu_boards
from gpudiag.measures._gpu.course import ActiveTime, GpuCourse
from gpudiag.measures._gpu.gpu_rows import slices
from gpudiag.measures._gpu.held import held_from_mib, mean_known, was_freed, was_kept
from gpudiag.measures._time.activity import LONGEST_WAIT_S, activity
from gpudiag.measures._time.cells import cells, longest_period_s
from gpudiag.measures._time.coverage import coverage_pct, least_pct
from gpudiag.measures._time.expected import trials_window
from gpudiag.measures._time.free_ends import free_ends
from gpudiag.measures._time.idle import are_unbroken, pauses
from gpudiag.measures._time.job_spans import job_spans, within_jobs
from gpudiag.measures._time.microseconds import LONG_AGO, SECOND_US, microseconds
from gpudiag.measures._time.steady import first_work
from gpudiag.measures._time.work import stretches
from gpudiag.measures._waits.divided import logged_gpus
from gpudiag.measures._waits.logged import worked_until_us
from gpudiag.measures.base import Profile, need_gpu, need_two_samples
from gpudiag.memo import memoized
from gpudiag.run import Run

ZERO_PCT = 1.0
MIN_REGULAR, NEAR, MOSTLY = 5, 0.25, 0.8
"""Pauses that come regularly: how many at least, and within what of their median how many of the times from one to the
next are (defaults without a published source).
"""
HOLE_SHARE = 0.1
"""Of the idle time seen at an end of the record: work may hide in a longer hole of it, and what lies on the hole's
other side is no end any more."""


class GpuIdleness(Row):
    """A GPU; one that was never active has no lead, no trail and no pause. Active is 10 % or more; on a GPU that hardly
    ever is, half of what it does instead.
    """

    lead_s: Column[float] = column("from the first sample to the first activity, or to a hole that may hide it")
    trail_s: Column[float] = column(
        "from the last activity on, or from the last hole that may hide some, but for ``trail_logged_s``"
    )
    trail_logged_s: Column[float] = column(
        "time behind the last activity up to which the log tells of an evaluation or a checkpoint behind its last step"
    )
    trail_beside_s: Column[float] = column("time of the trail in which another GPU was active")
    lead_mib: Column[float] = column("mean memory in use meanwhile, NaN unknown")
    trail_mib: Column[float] = column("the same of the trail")
    between_s: Column[float] = column(
        "observed time in pauses: unbroken stretches without activity, of more than 10 min and 10 samples or more, "
        "between the first and the last; NaN where trials tell when the GPU was meant to work",
        label="idle between work",
    )
    between_pct: Column[float] = column(
        "its share of the observed time from first to last activity", label="share of the time"
    )
    n_between: Column[float] = column("pauses", label="pauses")
    between_every_s: Column[float] = column(
        "median time from one pause to the next, where they are five or more and four of five of these times lie "
        "within a quarter of it; else NaN"
    )
    longest_between_s: Column[float] = column("longest of them, 0 without one", label="longest pause")
    longest_between_start: Column[pd.Timestamp] = column("when it began")
    between_mib: Column[float] = column("mean memory in use in pauses, NaN unknown")
    between_beside_s: Column[float] = column("time of pauses in which another GPU was active")
    between_kept_s: Column[float] = column(
        "time of pauses with memory held that was the same before, meanwhile and after: apart by 5 % of the total or "
        "300 MiB at most, whichever is more"
    )
    between_freed_s: Column[float] = column("time of pauses without memory held, of work that held some before")
    held_mib: Column[float] = column("memory in use from which on it counts as held", label="counts as held from")
    observed_s: Column[float] = column("observed time")
    allocated_idle_s: Column[float] = column(
        "observed time in unbroken stretches of 10 min or more at 0-1 % utilization with memory held, in neither lead, "
        "trail nor pauses; NaN without memory data",
        label="memory held while idle",
    )
    longest_allocated_idle_s: Column[float] = column("longest of them", label="longest at a stretch")
    allocated_mib: Column[float] = column("mean memory in use in them, NaN without one", label="memory held")
    allocated_kept_s: Column[float] = column("their part between work that had the same memory, as of pauses")


class IdlenessProfile(Profile, topic="idleness"):
    """Time before the first and after the last activity, pauses between, and memory held idle."""

    per_gpu: Rows = table_of(GpuIdleness)
    has_trials: Fact[bool] = fact("trials on the telemetry's clock tell when the job ran")
    lead_free: Fact[bool] = fact("no GPU had memory held before the work, which then held some: no process was there")
    trail_free: Fact[bool] = fact("the same behind the work, whose log does not stop short")
    all_done: Fact[bool] = fact("the log tells of all steps")
    coverage_pct: Fact[float] = fact("observed part of the run, the least of all GPUs")
    sampling_period_s: Fact[float] = fact("median step between samples, of the GPU sampled least often")


@memoized
def measure_idleness(run: Run) -> IdlenessProfile:
    """Idle ends, pauses and idle allocations of each GPU. Needs gpu.util_pct."""
    need_gpu(run, "util_pct")
    has_memory = "mem_used_mib" in run.gpu
    samples = _held(run, cells(run, "util_pct", *(["mem_used_mib"] if has_memory else [])))
    if samples.empty:
        raise NotMeasurable(
            "No sample was taken while a job that is listed may have held its GPU.",
            "Give the telemetry of the same jobs. If only the clocks differ, state timezone or clock_offset_s in "
            "run.toml.",
        )
    need_two_samples(samples["weight_s"].sum() > 0)
    totals = gpu_boards(run)["total_mib"]
    has_trials = trials_window(run) is not None
    util, start_us, end_us = (samples[name].to_numpy() for name in ("util_pct", "start_us", "end_us"))
    used = samples["mem_used_mib"].to_numpy(float) if has_memory else np.full(len(samples), math.nan)
    gpus = {
        gpu: GpuCourse(util[own], activity(util[own]), used[own], start_us[own], end_us[own])
        for gpu, own in slices(samples)
    }
    work = ActiveTime.of(gpus.values())
    until = {gpu: worked_until_us(of_gpu.logs) for gpu, of_gpu in logged_gpus(run).items()} if len(run.steps) else {}
    rows = {
        gpu: _one_gpu(one, work, until.get(gpu, LONG_AGO), float(totals.get(gpu, math.nan)), has_trials=has_trials)
        for gpu, one in gpus.items()
    }
    coverage = coverage_pct(run, samples)
    per_gpu = pd.DataFrame.from_dict(rows, orient="index").rename_axis("gpu")
    time_us = microseconds(samples["time"])
    return IdlenessProfile(
        per_gpu=per_gpu,
        has_trials=has_trials,
        lead_free=free_ends(run).lead is not None,
        trail_free=free_ends(run).trail is not None,
        all_done=free_ends(run).all_done,
        coverage_pct=least_pct(coverage.values()),
        sampling_period_s=longest_period_s(time_us[own] for _, own in slices(samples)),
    )


def _held(run: Run, samples: pd.DataFrame) -> pd.DataFrame:
    """The samples but for those at which no job of the scheduler held the GPU."""
    if not job_spans(run):
        return samples
    time_us = microseconds(samples["time"])
    held = np.concatenate([within_jobs(run, gpu, time_us[own]) for gpu, own in slices(samples)])
    return samples[held]


def _one_gpu(
    one: GpuCourse, work: ActiveTime, until_us: int, total_mib: float, *, has_trials: bool
) -> dict[str, object]:
    begin = first_work(one.at_work, one.start_us, one.end_us, one.used >= held_from_mib(total_mib))
    begin = int(one.at_work.argmax()) if has_trials else begin
    lead, trail = _ends(one, begin)
    first, last = pauses(one.at_work, one.start_us, one.end_us)
    own = (first > begin) & (not has_trials)
    first, last = first[own], last[own]
    elsewhere = np.ones(len(one.util), bool)
    for part in (lead, trail, *map(slice, first, last + 1)):
        elsewhere[part] = False
    told = one.at_work.any() and not has_trials
    return {
        **_of_ends(one, lead, trail, until_us, work),
        **(_of_pauses(one, first, last, work, total_mib) if told else _NO_PAUSES),
        "held_mib": held_from_mib(total_mib),
        "observed_s": float(one.weight_s.sum()),
        **_allocated(one, elsewhere, total_mib),
    }


def _ends(one: GpuCourse, begin: int) -> tuple[slice, slice]:
    """The samples before the sample at which work begins and after the last activity, but for what a hole parts from
    it.
    """
    active = np.flatnonzero(one.at_work)
    if not len(active):
        return slice(0, 0), slice(0, 0)
    weight = one.weight_s
    hole = np.append((one.start_us[1:] - one.end_us[:-1]) / SECOND_US, 0.0)  # behind each sample
    lead, trail = slice(0, begin), slice(active[-1] + 1, None)
    hiding = np.flatnonzero(hole[lead][:-1] > HOLE_SHARE * weight[lead].sum())
    if len(hiding):
        lead = slice(0, hiding[0] + 1)
    hiding = np.flatnonzero(hole[trail] > HOLE_SHARE * weight[trail].sum())
    if len(hiding):
        trail = slice(active[-1] + hiding[-1] + 2, None)
    return lead, trail


def _of_ends(one: GpuCourse, lead: slice, trail: slice, until_us: int, work: ActiveTime) -> dict[str, object]:
    if not one.at_work.any():
        names = ("lead_s", "trail_s", "trail_logged_s", "trail_beside_s", "lead_mib", "trail_mib")
        return dict.fromkeys(names, math.nan)
    logged = slice(trail.start, max(trail.start, int(np.searchsorted(one.start_us, until_us))))
    trail = slice(logged.stop, trail.stop)
    return {
        "lead_s": float(one.weight_s[lead].sum()),
        "trail_s": float(one.weight_s[trail].sum()),
        "trail_logged_s": float(one.weight_s[logged].sum()),
        "trail_beside_s": work.within_s(one.start_us[trail], one.end_us[trail]),
        "lead_mib": mean_known(one.used[lead]),
        "trail_mib": mean_known(one.used[trail]),
    }


_NO_PAUSES = {
    **dict.fromkeys(
        (
            "between_s",
            "between_pct",
            "n_between",
            "between_every_s",
            "longest_between_s",
            "between_mib",
            "between_beside_s",
            "between_kept_s",
            "between_freed_s",
        ),
        math.nan,
    ),
    "longest_between_start": pd.NaT,
}


def _of_pauses(
    one: GpuCourse, first: np.ndarray, last: np.ndarray, work: ActiveTime, total_mib: float
) -> dict[str, object]:
    active = np.flatnonzero(one.at_work)
    start_us, end_us = one.start_us[first], one.end_us[last]
    length_us = end_us - start_us
    total_s, worked_s = float(length_us.sum()) / SECOND_US, float(one.weight_s[active[0] : active[-1] + 1].sum())
    began = pd.Timestamp(int(start_us[length_us.argmax()]), unit="us", tz="UTC") if len(first) else pd.NaT
    return {
        "between_s": total_s,
        "between_pct": 100 * total_s / worked_s if worked_s > 0 else math.nan,  # 0 of samples of one moment
        "n_between": float(len(first)),
        "between_every_s": _every_s(start_us),
        "longest_between_s": float(length_us.max(initial=0)) / SECOND_US,
        "longest_between_start": began,
        "between_mib": _mean_mib(one, first, last),
        "between_beside_s": work.within_s(start_us, end_us),
        "between_kept_s": _seconds_where(was_kept, one, first, last, total_mib),
        "between_freed_s": _seconds_where(was_freed, one, first, last, total_mib),
    }


def _every_s(start_us: np.ndarray) -> float:
    """The time after which pauses come again, if they are regular; NaN where they are not."""
    steps_s = np.diff(start_us) / SECOND_US
    if len(start_us) < MIN_REGULAR:
        return math.nan
    every_s = float(np.median(steps_s))
    return every_s if (np.abs(steps_s - every_s) <= NEAR * every_s).mean() >= MOSTLY else math.nan


def _allocated(one: GpuCourse, elsewhere: np.ndarray, total_mib: float) -> dict[str, object]:
    idle = (one.util <= ZERO_PCT) & (one.used >= held_from_mib(total_mib)) & elsewhere
    first, last = stretches(idle, one.start_us, one.end_us)
    long = one.end_us[last] - one.start_us[first] >= LONGEST_WAIT_S * SECOND_US
    long[long] = are_unbroken((one.util <= ZERO_PCT)[elsewhere], (last - first + 1)[long])
    first, last = first[long], last[long]
    length_s = (one.end_us[last] - one.start_us[first]) / SECOND_US
    known = bool(np.isfinite(one.used).any())
    return {
        "allocated_idle_s": float(length_s.sum()) if known else math.nan,
        "longest_allocated_idle_s": float(length_s.max(initial=0.0)) if known else math.nan,
        "allocated_mib": _mean_mib(one, first, last),
        "allocated_kept_s": _seconds_where(was_kept, one, first, last, total_mib),
    }


def _mean_mib(one: GpuCourse, first: np.ndarray, last: np.ndarray) -> float:
    """Mean memory in use in those stretches."""
    parts = [one.used[low : high + 1] for low, high in zip(first.tolist(), last.tolist(), strict=True)]
    return mean_known(np.concatenate(parts)) if parts else math.nan


def _seconds_where(
    holds: Callable[[np.ndarray, int, int, float], bool],
    one: GpuCourse,
    first: np.ndarray,
    last: np.ndarray,
    total_mib: float,
) -> float:
    """Seconds of those stretches whose memory is so."""
    both = zip(first.tolist(), last.tolist(), strict=True)
    own = [one.end_us[b] - one.start_us[a] for a, b in both if holds(one.used, a, b, total_mib)]
    return float(sum(own)) / SECOND_US
