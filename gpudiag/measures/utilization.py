"""How busy each GPU was, weighted by time."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd

from gpudiag.errors import NotMeasurable
from gpudiag.facts import Column, Fact, Row, Rows, column, fact, table_of
from gpudiag.measures._gpu.boards import gpu_boards
from gpudiag.measures._gpu.gpu_rows import slices
from gpudiag.measures._gpu.held import BASELINE_MIB, BASELINE_PCT
from gpudiag.measures._time.activity import activity
from gpudiag.measures._time.cells import cells, longest_period_s, sampled_gpus
from gpudiag.measures._time.concurrency import busy_stretches
from gpudiag.measures._time.coverage import coverage_pct, least_pct
from gpudiag.measures._time.curve import rise
from gpudiag.measures._time.expected import expected_window, trials_window
from gpudiag.measures._time.free_ends import free_ends
from gpudiag.measures._time.gpu_time import gpu_time
from gpudiag.measures._time.idle import no_waits
from gpudiag.measures._time.job_spans import job_spans
from gpudiag.measures._time.microseconds import microseconds
from gpudiag.measures._time.no_waits import between_jobs
from gpudiag.measures._time.series import series
from gpudiag.measures._time.steady import first_work
from gpudiag.measures._time.timeline import STALLED, TAIL, WAITING
from gpudiag.measures._time.trial_intervals import intervals_of
from gpudiag.measures._time.weighted import weighted_mean, weighted_quantiles
from gpudiag.measures._trials.abandoned import find_open_trials
from gpudiag.measures.base import RECORD_GPU, Profile, need_gpu, need_two_samples
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import BUSY_PCT, IDLE_PCT, has_values
from gpudiag.spans import Window


class GpuUtilization(Row):
    """A GPU; one without utilization data is unknown throughout. ``trial_``: the same while at least one trial ran,
    where trials and telemetry share a clock and meet; ``active_``: the same from the GPU's first to its last activity
    (10 % or more), within the time of trials where that is known, else without pauses (idleness). Else NaN.
    """

    mean_pct: Column[float] = column("mean utilization, weighted by time", label="mean utilization")
    p5_pct: Column[float] = column("5th percentile", label="utilization, 5th percentile")
    p50_pct: Column[float] = column("median")
    p95_pct: Column[float] = column("95th percentile", label="utilization, 95th percentile")
    max_pct: Column[float] = column("highest", label="highest utilization")
    idle_pct: Column[float] = column("share of observed time below 10 %", label="time below 10 % utilization")
    duty_pct: Column[float] = column("share of observed time at 10 % or more")
    busy_pct: Column[float] = column("share of observed time at 50 % or more")
    coverage_pct: Column[float] = column("observed part of the run", label="observed part")
    observed_s: Column[float] = column("observed time", label="observed for")
    n_samples: Column[int] = column("samples with a utilization")
    first_active: Column[pd.Timestamp] = column("first sample at 10 % or more")
    last_active: Column[pd.Timestamp] = column("last sample at 10 % or more")
    idle_gpu_h: Column[float] = column("observed time below 10 %", label="idle (below 10 %)")
    trial_mean_pct: Column[float] = column("mean while a trial ran")
    trial_p5_pct: Column[float] = column("5th percentile while a trial ran")
    trial_p95_pct: Column[float] = column("95th percentile while a trial ran")
    trial_idle_gpu_h: Column[float] = column("time below 10 % while a trial ran")
    trial_s: Column[float] = column("observed time while a trial ran")
    active_mean_pct: Column[float] = column("mean from first to last activity")
    active_p5_pct: Column[float] = column("5th percentile from first to last activity")
    active_p95_pct: Column[float] = column("95th percentile from first to last activity")
    active_idle_gpu_h: Column[float] = column("time below 10 % from first to last activity")
    active_idle_phases: Column[float] = column("stretches below 10 % from first to last activity")
    active_s: Column[float] = column("observed time from first to last activity")
    idle_in_trials_gpu_h: Column[float] = column(
        "idle time that may lie within trials on the GPU, past their start-ups, as the ledger has it; NaN unknown"
    )
    least_mean_pct: Column[float] = column("least mean utilization, by DCGM's activity where utilization is unknown")
    least_max_pct: Column[float] = column("least that the highest utilization was, likewise")
    mem_at_baseline: Column[bool] = column(
        "memory never rose above its minimum + 5 % of the total or 300 MiB, whichever is more; NaN unknown"
    )


class UtilizationCourse(Row):
    """A sample, decimated to what a figure needs, extremes kept; one row with NaN stands inside each telemetry gap, so
    that a line drawn through the rows breaks there.
    """

    gpu: Column[str] = column("GPU")
    time: Column[pd.Timestamp] = column("instant")
    util_pct: Column[float] = column("utilization of the sample")
    mean_pct: Column[float] = column(
        "time-weighted mean of the bin that the row was kept from (util_pct where no row was dropped): the mean of "
        "extremes would show a GPU at 95 % with rare dips to 0 as half idle"
    )
    weight_s: Column[float] = column("time that the row stands for")


class UtilizationProfile(Profile, topic="utilization"):
    """How busy each GPU was. Scalars are over all GPUs with utilization data."""

    per_gpu: Rows = table_of(GpuUtilization)
    series: Rows = table_of(UtilizationCourse)
    mean_pct: Fact[float] = fact("mean utilization, weighted by time")
    idle_pct: Fact[float] = fact("share of observed time below 10 %")
    coverage_pct: Fact[float] = fact("observed part of the run, the least of all GPUs")
    n_gpus: Fact[int] = fact("GPUs with utilization data")
    span_s: Fact[float] = fact("from the first sample to the end of the last", label="over")
    observed_gpu_h: Fact[float] = fact("observed time")
    sampling_period_s: Fact[float] = fact("median step between samples, of the GPU sampled least often")


@memoized
def measure_utilization(run: Run) -> UtilizationProfile:
    """Busyness of each GPU over the run. Needs gpu.util_pct."""
    need_gpu(run, "time")
    if not has_values(run.gpu, "util_pct"):
        _need_activity(run)
    need_gpu(run, "util_pct")
    whole = cells(run, "util_pct")
    samples = _while_there(run, whole)
    need_two_samples(samples["weight_s"].sum() > 0)
    window = expected_window(run, samples)
    coverage = coverage_pct(run, samples, window)
    trial_weight = _weight_in_trials(run, samples)
    weight = trial_weight if trial_weight.any() else samples["weight_s"].to_numpy()
    at_baseline = _memory_at_baseline(run)
    util, observed = samples["util_pct"].to_numpy(), samples["weight_s"].to_numpy()
    time_us = microseconds(samples["time"])
    active = _in_activity(samples, between_jobs(run), leave_pauses_out=trials_window(run) is None)
    in_trials = _idle_in_trials(run) if trial_weight.any() else {}
    rows: dict[str, dict[str, object]] = {}
    for gpu, own in slices(samples):
        rows[gpu] = {
            **_one_gpu(time_us[own], util[own], observed[own]),
            **_within(util[own], trial_weight[own], "trial"),
            **_within(util[own], active[own] * weight[own], "active"),
            "active_idle_phases": _idle_phases(util[own], active[own] * weight[own]),
            "idle_in_trials_gpu_h": in_trials.get(gpu, math.nan),
            "coverage_pct": coverage[gpu],
        }
    everyone = sampled_gpus(run)
    least = _least(run, [gpu for gpu in everyone if gpu not in rows], window)
    per_gpu = pd.DataFrame.from_dict(rows, orient="index").reindex(everyone).rename_axis("gpu")
    per_gpu["n_samples"] = per_gpu["n_samples"].fillna(0).astype(int)
    per_gpu["mem_at_baseline"] = pd.Series([at_baseline.get(gpu, math.nan) for gpu in everyone], everyone, dtype=object)
    per_gpu[["least_mean_pct", "least_max_pct"]] = least.reindex(everyone)[["least_mean_pct", "least_max_pct"]]
    return UtilizationProfile(
        per_gpu=per_gpu,
        series=series(whole, "util_pct", "mean_pct"),
        mean_pct=weighted_mean(util, observed),
        idle_pct=100 * weighted_mean(util < IDLE_PCT, observed),
        coverage_pct=least_pct([*coverage.values(), *least["coverage_pct"]]),
        n_gpus=len(rows),
        span_s=float(samples["end_us"].max() - samples["start_us"].min()) / 1e6,
        observed_gpu_h=float(observed.sum() / 3600),
        sampling_period_s=longest_period_s(time_us[own] for _, own in slices(samples)),
    )


def _while_there(run: Run, samples: pd.DataFrame) -> pd.DataFrame:
    """The samples without those at the ends of a record that is longer than the training in its log, and between it and
    another job.
    """
    for low, high in (*free_ends(run).windows, *between_jobs(run)):
        samples = samples[(samples["end_us"] <= low) | (samples["start_us"] >= high)]
    return samples


def _least(run: Run, gpus: Collection[str], window: tuple[int, int] | None = None) -> pd.DataFrame:
    """Of these GPUs what DCGM's activity tells of their utilization: a GPU is busy while any part of it is active."""
    columns = ["least_mean_pct", "least_max_pct", "coverage_pct"]
    rows: dict[str, tuple[float, ...]] = {}
    for name in ("engine_active_pct", "sm_active_pct") if gpus else ():
        if has_values(run.gpu, name):
            samples = cells(run, name)
            observed = coverage_pct(run, samples, window)
            value, weight = samples[name].to_numpy(), samples["weight_s"].to_numpy()
            for gpu, own in slices(samples):
                if gpu in gpus:
                    found = (weighted_mean(value[own], weight[own]), float(value[own].max()), observed[gpu])
                    rows[gpu] = max(rows.get(gpu, found), found)
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns, dtype=float)


def _need_activity(run: Run) -> None:
    """Raise NotMeasurable with what is certain of GPUs of which only activity is known."""
    least = _least(run, sampled_gpus(run))["least_mean_pct"].dropna()
    if len(least):
        raise NotMeasurable(
            "Utilization is not reported; by DCGM's activity {gpu} was busy for at least {least_pct} of the time.",
            "" if "engine_active_pct" in run.gpu else RECORD_GPU,  # under MIG nothing tells more
            gpu=str(least.idxmax()),
            least_pct=float(least.max()),
        )


def _one_gpu(time_us: np.ndarray, util: np.ndarray, weight: np.ndarray) -> dict[str, object]:
    p5, p50, p95 = weighted_quantiles(util, weight, (0.05, 0.5, 0.95))
    active = time_us[util >= IDLE_PCT]
    idle = weighted_mean(util < IDLE_PCT, weight)
    observed_s = float(weight.sum())
    return {
        "mean_pct": weighted_mean(util, weight),
        "p5_pct": p5,
        "p50_pct": p50,
        "p95_pct": p95,
        "max_pct": float(util.max()),
        "idle_pct": 100 * idle,
        "duty_pct": 100 * weighted_mean(util >= IDLE_PCT, weight),
        "busy_pct": 100 * weighted_mean(util >= BUSY_PCT, weight),
        "coverage_pct": math.nan,
        "observed_s": observed_s,
        "n_samples": len(util),
        "first_active": _instant(active[:1]),
        "last_active": _instant(active[-1:]),
        "idle_gpu_h": float(weight[util < IDLE_PCT].sum() / 3600),
    }


def _instant(time_us: np.ndarray) -> pd.Timestamp:
    """Of one time or none, which is NaT."""
    return pd.Timestamp(time_us[0].astype("datetime64[us]"), tz="UTC") if len(time_us) else pd.NaT


def _within(util: np.ndarray, weight: np.ndarray, when: str) -> dict[str, float]:
    """Figures of a part of the time, given as seconds of each sample; NaN where there is none."""
    known = weight.sum() > 0
    p5, p95 = weighted_quantiles(util, weight, (0.05, 0.95))
    return {
        f"{when}_mean_pct": weighted_mean(util, weight),
        f"{when}_p5_pct": p5,
        f"{when}_p95_pct": p95,
        f"{when}_idle_gpu_h": float(weight[util < IDLE_PCT].sum() / 3600) if known else math.nan,
        f"{when}_s": float(weight.sum()) if known else math.nan,
    }


def _idle_phases(util: np.ndarray, weight: np.ndarray) -> float:
    """How often utilization falls below 10 %, by those of its samples that weigh anything; NaN where none does."""
    idle = util[weight > 0] < IDLE_PCT
    return float(np.count_nonzero(idle[1:] > idle[:-1]) + idle[0]) if len(idle) else math.nan


def _in_activity(samples: pd.DataFrame, between: Sequence[Window], *, leave_pauses_out: bool) -> np.ndarray:
    """1 for the samples from the first to the last activity of their GPU, 0 for those at the ends of the record, and
    in pauses where these are left out: what they cost is counted once (idleness).
    """
    within = np.zeros(len(samples))
    util, start_us, end_us = (samples[name].to_numpy() for name in ("util_pct", "start_us", "end_us"))
    for _, own in slices(samples):
        active = np.flatnonzero(util[own] >= IDLE_PCT) + own.start
        if not len(active):
            continue
        begin = first_work(util[own] >= IDLE_PCT, start_us[own], end_us[own]) + own.start
        within[begin if leave_pauses_out else active[0] : active[-1] + 1] = 1.0
        if leave_pauses_out:
            first, last = no_waits(activity(util[own]), start_us[own], end_us[own], between)
            for low, high in zip(first + own.start, last + own.start + 1, strict=True):
                within[low:high] = 0.0
    return within


def _weight_in_trials(run: Run, samples: pd.DataFrame) -> np.ndarray:
    """Seconds of each cell during which at least one trial ran, or a job that may have had the GPU; open trials until
    their likely end.
    """
    if not run.info.clock.joined or run.trials.empty:
        return np.zeros(len(samples))
    intervals, opens = intervals_of(run), find_open_trials(run)
    intervals = intervals[intervals["known"]]
    start = np.concatenate([microseconds(intervals["start"]), microseconds(opens["start"])])
    end = np.concatenate([microseconds(intervals["end"]), microseconds(opens["end"])])
    start_us, end_us = samples["start_us"].to_numpy(), samples["end_us"].to_numpy()
    weight = np.zeros(len(samples))
    for gpu, own in slices(samples):
        jobs = job_spans(run).get(gpu)
        edges = (start, end) if jobs is None else np.array(jobs, np.int64).reshape(-1, 2).T
        left, right = busy_stretches(*edges)
        if len(left):
            # Busy time before x is piecewise linear in x, so a cell's share is the difference at its borders.
            knots = np.column_stack([left, right]).ravel()
            busy = np.column_stack([np.zeros(len(left)), right - left]).ravel().cumsum()
            origin = knots[0]
            weight[own] = rise(start_us[own] - origin, end_us[own] - origin, knots - origin, busy) / 1e6
    return weight


def _idle_in_trials(run: Run) -> dict[str, float]:
    """GPU-hours by GPU that are idle with a trial on it, and no start-up for sure; none where no ledger can be made."""
    try:
        time = gpu_time(run)
    except NotMeasurable:
        return {}
    if not time.joined:
        return {}
    return {gpu: float(line.seconds()[[TAIL, WAITING, STALLED]].sum() / 3600) for gpu, line in time.timelines.items()}


def _memory_at_baseline(run: Run) -> dict[str, bool]:
    """Whether the memory of each GPU stayed where it was at its lowest; GPUs without memory data are absent."""
    if "mem_used_mib" not in run.gpu:
        return {}
    samples = cells(run, "mem_used_mib")
    used = samples["mem_used_mib"].to_numpy()
    moved = pd.Series({gpu: float(np.ptp(used[own])) for gpu, own in slices(samples)}, dtype=float)
    total = gpu_boards(run)["total_mib"].reindex(moved.index)
    allowed = (total * BASELINE_PCT / 100).fillna(0).clip(lower=BASELINE_MIB)
    return {str(gpu): bool(ok) for gpu, ok in (moved <= allowed).items()}
