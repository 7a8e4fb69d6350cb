"""Is the GPU fed fast enough: GPU, host and loader side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from gpudiag.errors import NotMeasurable
from gpudiag.facts import Column, Fact, Row, Rows, column, fact, table_of
from gpudiag.measures._gpu.boards import INSTANT_LIMIT, gpu_boards
from gpudiag.measures._gpu.clocks import POWER_CAP
from gpudiag.measures._gpu.gpu_rows import gpu_order
from gpudiag.measures._gpu.idle_power import IdlePower, idle_powers
from gpudiag.measures._time.microseconds import SECOND_US, microseconds
from gpudiag.measures._time.weighted import weighted_mean, weighted_quantiles
from gpudiag.measures._time.work import WorkSamples, beside_work, work_by_gpu, work_coverage_pct
from gpudiag.measures.base import Profile, need_gpu, need_two_samples
from gpudiag.measures.loader import measure_loader
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import IDLE_PCT, has_values

HOT_PCT = 90.0
SOFT_PCT = 50.0
IO_WAIT_PCT = 50.0
ENOUGH_PCT = 70.0
"""SageMaker's BatchSize: a GPU below it has room for more."""
SATURATED_PCT = 90.0
MOST_CORES = 8192
"""The most that Linux can be built for (NR_CPUS in arch/x86/Kconfig): an upper limit for a host that does not say."""
NEAREST_S = 15.0
LOOKS_S = 60.0
"""The recorder looks through processes for 0.2 % of its time: each minute or more often where that takes 0.1 s."""
ACTIVITY = {"sm_active_pct": "busy_sm_pct", "tensor_active_pct": "busy_tensor_pct", "dram_active_pct": "busy_dram_pct"}
"""What DCGM tells of the parts of a GPU, and the column of its mean while the GPU is busy."""
HOST = ("cpu_pct", "cpu_max_core_pct", "process_cpu_max_pct", "io_wait_pct")


class GpuFeed(Row):
    """A GPU, over samples with a trial (without trials: from first to last activity). Idle power is the 5th percentile
    of power in settled idle time; without such time the ratios are bounds. Host columns are of the nearest host sample
    within 15 s; its busiest process is of the next reading, as recorders read it since the one before. NaN is unknown.
    """

    work_s: Column[float] = column("observed time at work")
    p95_pct: Column[float] = column("95th percentile of utilization")
    mean_pct: Column[float] = column("mean utilization")
    cv: Column[float] = column(
        "standard deviation of utilization over its mean", label="variation (standard deviation / mean)"
    )
    p95_used_pct: Column[float] = column("95th percentile of memory in use", label="memory, 95th percentile")
    power_ratio: Column[float] = column(
        "mean of (power - idle) / (limit - idle), 1 or more at the power cap, with 0 W for an unknown idle power: an "
        "upper limit",
        label="part of the power range",
    )
    least_power_ratio: Column[float] = column(
        "the same with the greatest idle power that is possible", label="part of the power range at least"
    )
    busy_s: Column[float] = column("time at 90 % or more")
    busy_power_ratio: Column[float] = column("power_ratio in it", label="part of the power range while busy")
    least_busy_power_ratio: Column[float] = column(
        "least_power_ratio in it", label="part of the power range while busy, at least"
    )
    busy_sm_pct: Column[float] = column("SM activity in it", label="SM activity while busy")
    busy_tensor_pct: Column[float] = column(
        "activity of the tensor cores in it", label="tensor cores active while busy"
    )
    busy_dram_pct: Column[float] = column("activity of device memory in it", label="device memory active while busy")
    host_s: Column[float] = column("observed work with host data", label="host observed for")
    starved_pct: Column[float] = column(
        "share of it below 10 % utilization while a core or process is above 90 %",
        label="GPU under 10 % beside a hot core",
    )
    soft_starved_pct: Column[float] = column(
        "the same below 50 % utilization", label="GPU under 50 % beside a hot core"
    )
    full_starved_pct: Column[float] = column(
        "below 70 % utilization while the mean of all cores is above 90 %", label="GPU under 70 % beside full cores"
    )
    most_full_starved_pct: Column[float] = column(
        "the same while as many cores of the host are busy as are 90 % of those that the training may use: it may be "
        "these; NaN where the cores are unknown"
    )
    hot_pct: Column[float] = column("share with such a core at all", label="time with it")
    io_starved_pct: Column[float] = column(
        "below 10 % utilization with I/O wait above 50 %", label="GPU under 10 % beside I/O wait"
    )
    io_soft_starved_pct: Column[float] = column(
        "below 50 % utilization with I/O wait that holds more than 90 % of one core; NaN where those of "
        "the host are unknown",
        label="GPU under 50 % beside a core in I/O wait",
    )
    most_io_soft_starved_pct: Column[float] = column(
        "the same with the most cores that Linux can have where those of the host are unknown: an upper limit"
    )
    io_cores: Column[float] = column("cores in I/O wait on average, NaN unknown", label="cores in I/O wait")
    io_wait_pct: Column[float] = column("share with I/O wait above 50 % at all", label="time with I/O wait")
    p95_cpu_pct: Column[float] = column(
        "95th percentile of the busiest core or process; where only the mean of all cores is known, of what they do "
        "together, which one may do: an upper limit, NaN without their number",
        label="busiest core or process, 95th percentile",
    )
    least_p95_cpu_pct: Column[float] = column("the same with the mean of all cores, where only that is known")


class FeedProfile(Profile, topic="feed"):
    """Whether the host kept the GPUs fed."""

    per_gpu: Rows = table_of(GpuFeed)
    has_cores: Fact[bool] = fact("CPU by core or by process was recorded")
    has_cpu: Fact[bool] = fact("CPU of the whole machine was recorded")
    has_io_wait: Fact[bool] = fact("I/O wait was recorded")
    stated_wait_pct: Fact[float] = fact(
        "part of a step that waits for the loader, as a log or a recording states it", label="stated wait in a step"
    )
    coverage_pct: Fact[float] = fact("observed part of the run, the least of all GPUs")


@memoized
def measure_feed(run: Run) -> FeedProfile:
    """The GPU at work beside the host. Needs gpu.util_pct; everything else is used where it was recorded."""
    need_gpu(run, "util_pct")
    works = work_by_gpu(run)
    need_two_samples(bool(works))
    boards, idle = gpu_boards(run).to_dict("index"), idle_powers(run)
    works = {gpu: works[gpu] for gpu in gpu_order(works)}
    host = HostTimes.of(run.host)
    columns = beside_work(run, works, ("mem_used_mib", "power_w", "throttle_reasons", *ACTIVITY))
    rows = {
        gpu: _device(work, own, boards[gpu], idle.get(gpu)) | _host(work, host)
        for (gpu, work), own in zip(works.items(), columns, strict=True)
    }
    has = {name: has_values(run.host, name) for name in HOST}
    per_gpu = pd.DataFrame.from_dict(rows, orient="index").rename_axis("gpu")
    return FeedProfile(
        per_gpu=per_gpu,
        has_cores=has["cpu_max_core_pct"] or has["process_cpu_max_pct"],
        has_cpu=any(has[name] for name in HOST[:3]),
        has_io_wait=has["io_wait_pct"],
        stated_wait_pct=_stated_wait_pct(run),
        coverage_pct=work_coverage_pct(run, works),
    )


def _stated_wait_pct(run: Run) -> float:
    try:
        loader = measure_loader(run)
    except NotMeasurable:
        return math.nan
    waits = 0.0 if loader.avg_ms == 0 else loader.of_step_pct
    return float(np.maximum(waits, np.nan_to_num(loader.starts_pct)))


def meant_to_work(work: WorkSamples) -> np.ndarray:
    """Samples with a trial (METHODS 9), start-up and all: a GPU that is starved may never look at work."""
    if work.from_trials:
        return work.running > 0
    return work.at_work if work.at_work.any() else np.ones(len(work.time_us), bool)


def _device(
    work: WorkSamples, columns: dict[str, np.ndarray], board: Mapping[Any, Any], idle: IdlePower | None
) -> dict[str, float]:
    at = meant_to_work(work)
    every_s = work.weight_s
    util, weight = work.util_pct[at], every_s[at]
    (p95,) = weighted_quantiles(util, weight, (0.95,))
    mean = weighted_mean(util, weight)
    spread = math.sqrt(max(weighted_mean((util - mean) ** 2, weight), 0.0)) if len(util) else math.nan
    used = columns.get("mem_used_mib")
    least, most = power_ratios(work, columns, board["limit_w"], idle)
    busy = at & (work.util_pct >= SATURATED_PCT)
    return {
        "work_s": float(weight.sum()),
        "p95_pct": p95,
        "mean_pct": mean,
        "cv": spread / mean if mean else math.nan,
        "p95_used_pct": _of_total_pct(_known_p95(used[at], weight), board["total_mib"])
        if used is not None
        else math.nan,
        "power_ratio": _known_mean(most, at, every_s),
        "least_power_ratio": _known_mean(least, at, every_s),
        "busy_s": float(every_s[busy].sum()),
        "busy_power_ratio": _known_mean(most, busy, every_s),
        "least_busy_power_ratio": _known_mean(least, busy, every_s),
        **{
            mean: _known_mean(columns[name], busy, every_s) if name in columns else math.nan
            for name, mean in ACTIVITY.items()
        },
    }


def power_ratios(
    work: WorkSamples, columns: Mapping[str, np.ndarray], limit_w: float, idle: IdlePower | None
) -> tuple[np.ndarray, np.ndarray]:
    """Least and most of the share of the board's power range in use by sample; readings above 1.6 times the limit are
    no power. At the power cap the GPU uses all that it may: a lower limit is in force there than the driver states.
    """
    power = columns.get("power_w")
    if power is None or idle is None:
        unknown = np.full(len(work.time_us), math.nan)
        return unknown, unknown
    known = np.where((power > 0) & ~(power > INSTANT_LIMIT * limit_w), power, math.nan)
    reasons = np.nan_to_num(columns.get("throttle_reasons", np.zeros(len(known)))).astype(np.int64)
    capped = (reasons & POWER_CAP > 0) & ~np.isnan(known)
    least, most = (np.where(capped, np.fmax(share, 1.0), share) for share in idle.shares(known, limit_w))
    return least, most


HOST_FIGURES = (
    "host_s", "starved_pct", "soft_starved_pct", "full_starved_pct", "most_full_starved_pct", "hot_pct",
    "io_starved_pct", "io_soft_starved_pct", "most_io_soft_starved_pct", "io_cores", "io_wait_pct", "p95_cpu_pct",
    "least_p95_cpu_pct",
)  # fmt: skip


def _host(work: WorkSamples, host: HostTimes) -> dict[str, float]:
    """Shares of the observed work that host samples lie near to."""
    near, column = beside(work, host)
    near &= meant_to_work(work)
    if not near.any():
        return dict.fromkeys(HOST_FIGURES, math.nan)
    util, weight_s = work.util_pct, work.weight_s
    core, cpu, wait = column["core_pct"], column["cpu_pct"], column["io_wait_pct"]
    waiting_cores, own = column["waiting_cores"], column["most_own_pct"]
    hot, waits = core > HOT_PCT, wait > IO_WAIT_PCT
    values = (
        float(weight_s[near].sum()),
        _share_pct(hot & (util < IDLE_PCT), near, core, weight_s),
        _share_pct(hot & (util < SOFT_PCT), near, core, weight_s),
        _share_pct((cpu > HOT_PCT) & (util < ENOUGH_PCT), near, cpu, weight_s),
        _share_pct((own > HOT_PCT) & (util < ENOUGH_PCT), near, own, weight_s),
        _share_pct(hot, near, core, weight_s),
        _share_pct(waits & (util < IDLE_PCT), near, wait, weight_s),
        _share_pct((100 * waiting_cores > HOT_PCT) & (util < SOFT_PCT), near, waiting_cores, weight_s),
        _share_pct((100 * column["most_waiting_cores"] > HOT_PCT) & (util < SOFT_PCT), near, wait, weight_s),
        _known_mean(waiting_cores, near, weight_s),
        _share_pct(waits, near, wait, weight_s),
        _known_p95(column["most_core_pct"][near], weight_s[near]),
        _known_p95(np.where(np.isnan(core), cpu, core)[near], weight_s[near]),
    )
    return dict(zip(HOST_FIGURES, values, strict=True))


def _share_pct(is_so: np.ndarray, among: np.ndarray, known: np.ndarray, weight_s: np.ndarray) -> float:
    """Of the time among which something is known."""
    return 100 * _known_mean(np.where(np.isnan(known), math.nan, is_so), among, weight_s)


@dataclass(frozen=True)
class HostTimes:
    """The host's columns in order of time; ``core_pct`` is the busiest core or process, NaN unknown.

    ``waiting_cores``: I/O wait is a share of all cores of the host, of which a job may use fewer. So is CPU use: what
    is 2 % of 64 cores may be all of one (``most_core_pct``), or most of those of a job (``most_own_pct``).
    """

    time_us: np.ndarray
    columns: dict[str, np.ndarray]

    @classmethod
    def of(cls, host: pd.DataFrame) -> HostTimes:
        """From the table, whose rows may lie in any order."""
        known = host if host.empty else host.dropna(subset=["time"]).drop_duplicates("time").sort_values("time")

        def column(name: str) -> np.ndarray:
            return known[name].to_numpy(float) if name in known else np.full(len(known), math.nan)

        time_us = microseconds(known["time"]) if len(known) else np.zeros(0, np.int64)
        core = np.fmax(column("cpu_max_core_pct"), _since_the_last(column("process_cpu_max_pct"), time_us))
        cpu, wait, cores = column("cpu_pct"), column("io_wait_pct"), column("host_cores")
        columns = {"cpu_pct": cpu, "io_wait_pct": wait, "waiting_cores": wait / 100 * cores, "core_pct": core}
        columns["most_waiting_cores"] = wait / 100 * np.where(np.isnan(cores), MOST_CORES, cores)
        columns["most_core_pct"] = np.where(np.isnan(core), cpu * cores, core)
        columns["most_own_pct"] = np.maximum(cpu * cores / column("cpu_cores"), cpu)
        return cls(time_us, columns)


def _since_the_last(process_pct: np.ndarray, time_us: np.ndarray) -> np.ndarray:
    """The busiest process at each host sample. Recorders look through processes less often than they read the cores,
    and what they find is the mean since the look before: it holds for the samples in between, but not for more than a
    minute, nor across a hole of more than 15 s, as between two recordings.
    """
    recording = np.cumsum(np.diff(time_us, prepend=time_us[:1]) > NEAREST_S * SECOND_US)
    looked = pd.DataFrame({"pct": process_pct, "at_us": np.where(np.isnan(process_pct), np.nan, time_us)})
    found = looked.groupby(recording).bfill()
    return np.where(found["at_us"] - time_us <= LOOKS_S * SECOND_US, found["pct"], np.nan)


def beside(work: WorkSamples, host: HostTimes) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The host at each sample of a GPU: whether a host sample lies within 15 s, and the columns of the nearest one."""
    n, timestamps = len(work.time_us), host.time_us
    if not len(timestamps):
        return np.zeros(n, bool), {name: np.broadcast_to(math.nan, n) for name in host.columns}
    right = np.searchsorted(timestamps, work.time_us).clip(1, max(len(timestamps) - 1, 1)).clip(max=len(timestamps) - 1)
    left = np.maximum(right - 1, 0)
    nearest = np.where(work.time_us - timestamps[left] <= timestamps[right] - work.time_us, left, right)
    near = np.abs(work.time_us - timestamps[nearest]) <= NEAREST_S * SECOND_US
    return near, {name: column[nearest] for name, column in host.columns.items()}


def _known_mean(values: np.ndarray, among: np.ndarray, weight_s: np.ndarray) -> float:
    keep = among & ~np.isnan(values)
    return weighted_mean(values[keep], weight_s[keep])


def _known_p95(values: np.ndarray, weight: np.ndarray) -> float:
    keep = ~np.isnan(values)
    return weighted_quantiles(values[keep], weight[keep], (0.95,))[0]


def _of_total_pct(used_mib: float, total_mib: float) -> float:
    """Used memory as a share of the board's; unknown where it is more than the board is said to have."""
    return 100 * used_mib / total_mib if 0 <= used_mib <= total_mib > 0 else math.nan
