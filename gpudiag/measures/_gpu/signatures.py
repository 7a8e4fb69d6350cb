"""What each sample of a GPU shows of what limits it: the first class whose signature it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpudiag.measures._gpu.boards import gpu_boards
from gpudiag.measures._gpu.clocks import HARDWARE_BITS, POWER_CAP, THERMAL_BITS, reference_clocks
from gpudiag.measures._gpu.idle_power import IdlePower, idle_powers
from gpudiag.measures._time.weighted import weighted_mean, weighted_quantiles
from gpudiag.measures._time.work import WorkSamples, beside_work, work_by_gpu
from gpudiag.measures.feed import (
    HOT_PCT,
    IO_WAIT_PCT,
    SATURATED_PCT,
    SOFT_PCT,
    HostTimes,
    beside,
    meant_to_work,
    power_ratios,
)
from gpudiag.measures.throttle import LOW_CLOCK
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import IDLE_PCT, UNUSED_PCT

CLASSES = (
    "unused", "startup", "io_wait", "cpu_bound", "launch_bound", "limited", "bandwidth_bound", "compute_bound",
    "light", "busy", "small_work", "stalled", "undetermined",
)  # fmt: skip
"""In the order in which they are asked; each second is in the first whose signature it has."""
COMPUTE_RATIO, LIGHT_RATIO, BANDWIDTH_RATIO = 0.7, 0.35, (0.4, 0.8)
COMPUTE_SM_PCT = 80.0
BANDWIDTH_PCT = 60.0
SMALL_PCT = 70.0
SMALL_CV = 0.5
COLUMNS = (
    "power_w", "sm_active_pct", "dram_active_pct", "mem_util_pct", "mem_used_mib", "throttle_reasons", "sm_clock_mhz"
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Signatures:
    """Samples of one GPU: of each its place in CLASSES, -1 where it was not meant to work."""

    work: WorkSamples
    code: np.ndarray
    has_host: bool
    has_power: bool

    def of_class(self, name: str) -> np.ndarray:
        """True for each sample that is in this class."""
        return self.code == CLASSES.index(name)


@memoized
def signatures(run: Run) -> dict[str, Signatures]:
    """By GPU with two samples or more. Columns that were not recorded show nothing."""
    works = work_by_gpu(run)
    boards = gpu_boards(run).join(reference_clocks(run)[["reference_mhz"]]).to_dict("index")
    host, idle = HostTimes.of(run.host), idle_powers(run)
    out = {}
    for (gpu, work), own in zip(works.items(), beside_work(run, works, COLUMNS), strict=True):
        signs = _Signs.of(work, own, host, boards[gpu], idle.get(gpu))
        has_power = bool((~np.isnan(signs.most_power_ratio)).any())
        out[gpu] = Signatures(work, _first_match(signs), signs.has_host, has_power)
    return out


@dataclass(frozen=True, eq=False)
class _Signs:
    """What a sample of one GPU shows; NaN is unknown."""

    work: WorkSamples
    at: np.ndarray
    core_pct: np.ndarray
    io_wait_pct: np.ndarray
    waiting_core_pct: np.ndarray
    least_power_ratio: np.ndarray
    most_power_ratio: np.ndarray
    sm_active_pct: np.ndarray
    dram_active_pct: np.ndarray
    mem_util_pct: np.ndarray
    throttled: np.ndarray
    used_pct: np.ndarray
    most_core_pct: np.ndarray

    @classmethod
    def of(
        cls,
        work: WorkSamples,
        own: dict[str, np.ndarray],
        host: HostTimes,
        board: Mapping[Any, Any],
        idle: IdlePower | None,
    ) -> _Signs:
        unknown = np.broadcast_to(np.nan, len(work.time_us))

        def column(name: str) -> np.ndarray:
            return own.get(name, unknown)

        def of_host(values: np.ndarray) -> np.ndarray:
            return np.where(near, values, np.nan) if near.any() else unknown

        near, beside_it = beside(work, host)
        clock, reasons = column("sm_clock_mhz"), column("throttle_reasons")
        mask = np.nan_to_num(reasons, nan=0.0).astype(np.int64)
        low = clock < LOW_CLOCK * float(board["reference_mhz"])
        least, most = power_ratios(work, own, float(board["limit_w"]), idle)
        return cls(
            work=work,
            at=meant_to_work(work),
            core_pct=of_host(beside_it["core_pct"]),
            io_wait_pct=of_host(beside_it["io_wait_pct"]),
            waiting_core_pct=of_host(100 * beside_it["waiting_cores"]),
            least_power_ratio=least,
            most_power_ratio=most,
            sm_active_pct=column("sm_active_pct"),
            dram_active_pct=column("dram_active_pct"),
            mem_util_pct=column("mem_util_pct"),
            throttled=((mask & HARDWARE_BITS) > 0) | (((mask & (POWER_CAP | THERMAL_BITS)) > 0) & low),
            used_pct=100 * column("mem_used_mib") / float(board["total_mib"]),
            most_core_pct=of_host(beside_it["most_core_pct"]),
        )

    @property
    def has_host(self) -> bool:
        return bool((~np.isnan(self.core_pct) | ~np.isnan(self.io_wait_pct)).any())

    def p95(self, values: np.ndarray) -> float:
        keep = self.at & ~np.isnan(values)
        return weighted_quantiles(values[keep], self.work.weight_s[keep], (0.95,))[0]


def _first_match(signs: _Signs) -> np.ndarray:
    """The place in CLASSES of the first whose signature each sample has; -1 where it was not meant to work."""
    work, at, util = signs.work, signs.at, signs.work.util_pct
    least, most = signs.least_power_ratio, signs.most_power_ratio
    idle, soft, full = util < IDLE_PCT, util < SOFT_PCT, util >= SATURATED_PCT
    hot, low_power = signs.core_pct > HOT_PCT, most < LIGHT_RATIO
    within = (least >= BANDWIDTH_RATIO[0]) & (most <= BANDWIDTH_RATIO[1])
    nothing = np.zeros(len(util), bool)
    by_proxy = (signs.mem_util_pct >= BANDWIDTH_PCT) & within
    bandwidth = np.where(np.isnan(signs.dram_active_pct), by_proxy, signs.dram_active_pct >= BANDWIDTH_PCT)
    p95 = signs.p95(util)
    signatures = {
        "unused": nothing | bool(at.any() and util[at].max() <= UNUSED_PCT),
        "startup": idle & (work.running > 0) & ~work.at_work & ~work.unclear if work.from_trials else nothing,
        "io_wait": ((util < IDLE_PCT) & (signs.io_wait_pct > IO_WAIT_PCT))
        | (soft & (signs.waiting_core_pct > HOT_PCT)),
        "cpu_bound": soft & hot,
        "launch_bound": (util < SATURATED_PCT) & hot & low_power,
        "limited": (util >= SOFT_PCT) & signs.throttled,
        "bandwidth_bound": full & bandwidth,
        "compute_bound": full & ((least >= COMPUTE_RATIO) | (signs.sm_active_pct >= COMPUTE_SM_PCT)),
        "light": full & (low_power | (signs.sm_active_pct < SOFT_PCT)),
        "busy": full,
        "small_work": nothing | (p95 < SMALL_PCT and _steadily_small(signs)),
        "stalled": idle & (p95 >= SMALL_PCT) & ~work.unclear,
        "undetermined": ~nothing,
    }
    code = np.empty(len(util), np.int8)
    for place in reversed(range(len(CLASSES))):
        np.copyto(code, place, where=signatures[CLASSES[place]])
    np.copyto(code, -1, where=~at)
    return code


def _steadily_small(signs: _Signs) -> bool:
    """Of a GPU that is below its limit for 95 % of the time: so are memory and CPU, and the load is steady and light.

    With unknown CPU this is False: then nobody can tell small work from a slow feed. So it is with the mean of many
    cores alone, where one of them may be full.
    """
    at = signs.at
    util, weight = signs.work.util_pct[at], signs.work.weight_s[at]
    mean = weighted_mean(util, weight)
    spread = float(np.sqrt(max(weighted_mean((util - mean) ** 2, weight), 0.0)))
    most = signs.most_power_ratio
    known = at & ~np.isnan(most)
    heavy = known.any() and weighted_mean(most[known], signs.work.weight_s[known]) >= LIGHT_RATIO
    low = all(signs.p95(values) < SMALL_PCT for values in (signs.used_pct, signs.most_core_pct))
    return bool(low and mean > 0 and spread / mean < SMALL_CV and not heavy)
