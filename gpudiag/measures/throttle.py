"""Clocks, heat and the reasons that the driver gives for low clocks, while the GPU was busy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from gpudiag.errors import NotMeasurable
from gpudiag.facts import Column, Fact, Row, Rows, column, fact, table_of
from gpudiag.measures._gpu.boards import gpu_boards, most_plausible_w
from gpudiag.measures._gpu.clocks import HARDWARE_BITS, POWER_BRAKE, POWER_CAP, THERMAL_BITS, reference_clocks
from gpudiag.measures._gpu.gpu_rows import by_gpu
from gpudiag.measures._steps.in_step import in_step
from gpudiag.measures._time.cells import cells
from gpudiag.measures._time.coverage import coverage_pct, least_pct
from gpudiag.measures._time.weighted import known_median, weighted_mean
from gpudiag.measures._time.work import stretches
from gpudiag.measures.base import RECORD_GPU, Profile, need_gpu, need_two_samples
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import BUSY_PCT

LOW_CLOCK = 0.8
WARM_CLOCK = 0.85
NEAR_C = 5.0
AT_LIMIT = 0.95
"""Share of the power limit from which on a GPU is at it, where the reasons for its clocks are unknown."""
LOWERED = 0.95
"""Share of the board's own power limit below which a limit was lowered: 250 W on a board of 260 W is a variant."""
SLOWDOWN_C = 87.0
"""Where slow-down begins on boards that do not say: 87-93 °C by default (METHODS 8)."""
COLUMNS = ("throttle_reasons", "throttle_known", "sm_clock_mhz", "temp_c", "power_w")
HARDWARE_SLOWDOWN = 0x8
"""NVML sets it for every slowdown by the hardware, the power brake among them."""
ALL_BITS = -1


class GpuThrottle(Row):
    """A GPU: shares of busy time (utilization >= 50), NaN where the columns are missing. A low clock is one below 0.8
    of the reference: the highest of the clock that the GPU showed, the median of its peers, what the driver allows and
    the board's boost clock.
    """

    busy_s: Column[float] = column("busy time")
    thermal_pct: Column[float] = column("thermal slow-down bits 0x60")
    thermal_clock_mhz: Column[float] = column("median clock in it", label="clock meanwhile")
    thermal_lost_s: Column[float] = column("what kernels that follow the clock lost in it against the reference")
    warm_low_pct: Column[float] = column(
        "clock below 0.85 of the highest that it or its peers showed, within 5 °C of 87 °C"
    )
    warm_low_clock_mhz: Column[float] = column("median clock in it", label="clock meanwhile")
    warm_low_lost_s: Column[float] = column("what kernels that follow the clock lost in it against the reference")
    hardware_pct: Column[float] = column(
        "hardware slow-down or power brake, bits 0x88, without a thermal bit", label="slowed down by the hardware"
    )
    hardware_clock_mhz: Column[float] = column("median clock in it", label="clock meanwhile")
    hardware_lost_s: Column[float] = column("what kernels that follow the clock lost in it against the reference")
    brake_pct: Column[float] = column("the power brake of it, bit 0x80", label="by the power brake")
    power_pct: Column[float] = column("software power cap, bit 0x4", label="at the power cap")
    capped_clock_mhz: Column[float] = column("median clock in it", label="clock meanwhile")
    capped_low_pct: Column[float] = column("power cap and a low clock; NaN without a reference")
    capped_low_clock_mhz: Column[float] = column("median clock in it", label="clock meanwhile")
    capped_low_lost_s: Column[float] = column("what kernels that follow the clock lost in it against the reference")
    capped_power_w: Column[float] = column("median power at the power cap", label="power at the cap")
    limit_w: Column[float] = column("power limit, the greatest in force")
    default_w: Column[float] = column("the board's own power limit", label="the board's own power limit")
    is_lowered: Column[bool] = column(
        "the limit is below 0.95 of the board's own; False where one of them is unknown",
        label="power limit was lowered",
    )
    low_pct: Column[float] = column("low clock; NaN without a reference", label="busy time at a low clock")
    uncapped_low_pct: Column[float] = column("low clock that no power cap explains; NaN without a reference")
    busy_clock_mhz: Column[float] = column("median clock")
    max_clock_mhz: Column[float] = column("highest clock seen", label="highest clock")
    reference_mhz: Column[float] = column(
        "the reference; NaN where nothing but the GPU's own clocks is known, and all of them near the highest were "
        "held down",
        label="clock to compare with",
    )
    reference_source: Column[str] = column("'seen', 'peers', 'stated' by the driver, 'board', or '' unknown")
    hot_pct: Column[float] = column("share of all time at 87 °C or more")
    hot_s: Column[float] = column("that time", label="hot for")
    max_temp_c: Column[float] = column("highest temperature")
    frozen_cap_s: Column[float] = column(
        "longest stretch of implausible power with the power cap bit and low clocks, busy or not; NaN where power, its "
        "limit, bits or clocks are unknown",
        label="frozen while capped",
    )


class ThrottleProfile(Profile, topic="throttle"):
    """Whether heat or power held the clocks back."""

    per_gpu: Rows = table_of(GpuThrottle)
    in_step: Fact[str] = fact(
        "whether the GPUs do each step together: 'yes' by the logs or their collectives, 'no' of trials, '' unknown"
    )
    coverage_pct: Fact[float] = fact("observed part of the run, the least of all GPUs")


@memoized
def measure_throttle(run: Run) -> ThrottleProfile:
    """Throttling of each GPU. Needs gpu.util_pct and clocks, clocks-event reasons or temperature."""
    need_gpu(run, "util_pct")
    have = [name for name in COLUMNS if name in run.gpu]
    if not set(have) & {"throttle_reasons", "sm_clock_mhz", "temp_c"}:
        raise NotMeasurable("The telemetry has neither clocks nor temperature nor clocks-event reasons.", RECORD_GPU)
    samples = cells(run, "util_pct", *have)
    need_two_samples(samples["weight_s"].sum() > 0)
    boards = gpu_boards(run)
    known = boards[["limit_w", "default_w"]].join(reference_clocks(run)).assign(plausible_w=most_plausible_w(boards))
    of_board = known.to_dict("index")
    rows = {gpu: _one_gpu(_ThrottleSamples.of(part), of_board[gpu]) for gpu, part in by_gpu(samples)}
    coverage = coverage_pct(run, samples)
    per_gpu = pd.DataFrame.from_dict(rows, orient="index").rename_axis("gpu")
    return ThrottleProfile(per_gpu, in_step(run), least_pct(coverage.values()))


@dataclass(frozen=True)
class _ThrottleSamples:
    """Columns of one GPU as arrays; unknown is NaN, ``masked`` is False where no reason is known, ``told`` are the bits
    that the source tells of.
    """

    start_us: np.ndarray
    end_us: np.ndarray
    weight_s: np.ndarray
    util: np.ndarray
    mask: np.ndarray
    masked: np.ndarray
    told: np.ndarray
    clock: np.ndarray
    temp: np.ndarray
    power: np.ndarray

    @classmethod
    def of(cls, part: pd.DataFrame) -> _ThrottleSamples:
        nothing = np.full(len(part), math.nan)

        def column(name: str) -> np.ndarray:
            return part[name].to_numpy(float, na_value=math.nan) if name in part else nothing

        reasons = column("throttle_reasons")
        temp = column("temp_c")
        return cls(
            part["start_us"].to_numpy(), part["end_us"].to_numpy(), part["weight_s"].to_numpy(), column("util_pct"),
            np.nan_to_num(reasons, nan=0.0).astype(np.int64), ~np.isnan(reasons),
            np.nan_to_num(column("throttle_known"), nan=ALL_BITS).astype(np.int64), column("sm_clock_mhz"),
            np.where((temp > 0) & (temp <= 110), temp, math.nan), column("power_w"),
        )  # fmt: skip


def _one_gpu(c: _ThrottleSamples, board: Mapping[Any, Any]) -> dict[str, float | str]:
    busy = c.util >= BUSY_PCT
    known_clock, known_temp = ~np.isnan(c.clock), ~np.isnan(c.temp)
    reference = float(board["reference_mhz"])
    is_lowered = bool(board["limit_w"] < LOWERED * board["default_w"])
    low = c.clock < LOW_CLOCK * reference
    compared = busy & known_clock & (reference == reference)
    warm = (c.clock < WARM_CLOCK * board["achieved_mhz"]) & (c.temp >= SLOWDOWN_C - NEAR_C)
    capped, thermal = (c.mask & POWER_CAP) > 0, (c.mask & THERMAL_BITS) > 0
    at_cap = np.where(
        c.masked & ((c.told & POWER_CAP) > 0), capped, (c.power >= AT_LIMIT * board["limit_w"]) & (not is_lowered)
    )
    by_hardware = ((c.mask & HARDWARE_BITS) > 0) & ~thermal
    hot = c.temp >= SLOWDOWN_C
    return {
        "busy_s": float(c.weight_s[busy].sum()),
        "thermal_pct": _told_share(thermal, THERMAL_BITS, busy, c),
        "thermal_clock_mhz": known_median(c.clock[busy & thermal]),
        "thermal_lost_s": _lost_s(busy & thermal, reference, c),
        "warm_low_pct": _share(warm, busy & known_clock & known_temp, c),
        "warm_low_clock_mhz": known_median(c.clock[busy & warm]),
        "warm_low_lost_s": _lost_s(busy & warm, reference, c),
        "hardware_pct": _told_share(by_hardware, HARDWARE_SLOWDOWN, busy, c),
        "hardware_clock_mhz": known_median(c.clock[busy & by_hardware]),
        "hardware_lost_s": _lost_s(busy & by_hardware, reference, c),
        "brake_pct": _told_share(((c.mask & POWER_BRAKE) > 0) & ~thermal, POWER_BRAKE, busy, c),
        "power_pct": _told_share(capped, POWER_CAP, busy, c),
        "capped_clock_mhz": known_median(c.clock[busy & capped]),
        "capped_low_pct": _told_share(capped & low, POWER_CAP, compared, c),
        "capped_low_clock_mhz": known_median(c.clock[busy & capped & low]),
        "capped_low_lost_s": _lost_s(busy & capped & low, reference, c),
        "capped_power_w": known_median(c.power[busy & capped]),
        "limit_w": float(board["limit_w"]),
        "default_w": float(board["default_w"]),
        "is_lowered": is_lowered,
        "low_pct": _share(low, compared, c),
        "uncapped_low_pct": _share(low & ~at_cap, compared, c),
        "busy_clock_mhz": known_median(c.clock[busy]),
        "max_clock_mhz": float(board["seen_mhz"]),
        "reference_mhz": reference,
        "reference_source": str(board["reference_source"]),
        "hot_pct": _share(hot, known_temp, c),
        "hot_s": float(c.weight_s[hot].sum()) if known_temp.any() else math.nan,
        "max_temp_c": float(c.temp[known_temp].max()) if known_temp.any() else math.nan,
        "frozen_cap_s": _frozen_s(c, low & capped, float(board["plausible_w"])) if reference > 0 else math.nan,
    }


def _frozen_s(c: _ThrottleSamples, held: np.ndarray, plausible_w: float) -> float:
    """Longest stretch of implausible power in which the clock was held low by the power cap."""
    told = c.masked & ((c.told & POWER_CAP) > 0)
    known = bool((told & ~np.isnan(c.clock) & (c.power <= math.inf)).any()) and plausible_w == plausible_w
    if not known:
        return math.nan
    first, last = stretches((c.power > plausible_w) & held, c.start_us, c.end_us)
    return float(((c.end_us[last] - c.start_us[first]) / 1e6).max(initial=0.0))


def _lost_s(then: np.ndarray, reference_mhz: float, c: _ThrottleSamples) -> float:
    """How much longer kernels that follow the clock took than at the reference; NaN where no clock of it is known."""
    known = then & ~np.isnan(c.clock)
    slower = np.maximum(0.0, 1 - c.clock[known] / reference_mhz)
    return float((slower * c.weight_s[known]).sum()) if known.any() else math.nan


def _share(flag: np.ndarray, among: np.ndarray, c: _ThrottleSamples) -> float:
    return 100 * weighted_mean(flag[among], c.weight_s[among])


def _told_share(flag: np.ndarray, bits: int, among: np.ndarray, c: _ThrottleSamples) -> float:
    """The share of a reason; NaN where it was never seen and the source does not always tell of these bits."""
    known = among & c.masked
    share = _share(flag, known, c)
    return share if share > 0 or bool(((c.told[known] & bits) == bits).all()) else math.nan
