"""Clocks, heat and the reasons that the driver gives for low clocks, while the GPU was busy."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from gpudiag.errors import NotMeasurable
from gpudiag.facts import Column, Fact, Row, Rows, column, fact, table_of
from gpudiag.measures._gpu.boards import gpu_boards, most_plausible_w
from gpudiag.measures._time.weighted import weighted_mean
from gpudiag.measures._time.work import stretches
from gpudiag.measures.base import RECORD_GPU, Profile, need_gpu
from gpudiag.measures.power import SW_POWER_CAP
from gpudiag.measures.sampling import RECORD_LONGER, by_gpu, cells, coverage_pct, expected_window
from gpudiag.run import Run
from gpudiag.schema import BUSY_PCT

POWER_BITS = 0x4 | 0x80
THERMAL_BITS = 0x20 | 0x40
LOW_CLOCK = 0.8
WARM_CLOCK = 0.85
NEAR_C = 5.0
SLOWDOWN_C = 87.0
"""Where slow-down begins on boards that do not say: 87-93 °C by default (METHODS 8)."""
COLUMNS = ("throttle_reasons", "sm_clock_mhz", "temp_c", "power_w")


class GpuThrottle(Row):
    """A GPU: shares of busy time (utilization >= 50), NaN where the columns are missing. A low clock is one below 0.8
    of the highest seen.
    """

    busy_s: Column[float] = column("busy time")
    thermal_pct: Column[float] = column("thermal slow-down bits 0x60")
    warm_low_pct: Column[float] = column("clock below 0.85 of the highest seen within 5 °C of 87 °C")
    power_pct: Column[float] = column("power bits 0x84")
    capped_low_pct: Column[float] = column("power bits and a low clock")
    low_pct: Column[float] = column("low clock", label="busy time at a low clock")
    busy_clock_mhz: Column[float] = column("median clock")
    max_clock_mhz: Column[float] = column("highest clock seen", label="highest clock")
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
    coverage_pct: Fact[float] = fact("observed part of the run, the least of all GPUs")


def measure_throttle(run: Run) -> ThrottleProfile:
    """Throttling of each GPU. Needs gpu.util_pct and clocks, clocks-event reasons or temperature."""
    need_gpu(run, "util_pct")
    have = [name for name in COLUMNS if name in run.gpu]
    if not set(have) & {"throttle_reasons", "sm_clock_mhz", "temp_c"}:
        raise NotMeasurable("The telemetry has neither clocks nor temperature nor clocks-event reasons.", RECORD_GPU)
    samples = cells(run, "util_pct", *have)
    if not samples["weight_s"].sum() > 0:
        raise NotMeasurable("There is only one sample of each GPU.", RECORD_LONGER)
    plausible = most_plausible_w(gpu_boards(run)).to_dict()
    rows = {
        gpu: _one_gpu(_ThrottleSamples.of(part), float(plausible.get(gpu, math.nan))) for gpu, part in by_gpu(samples)
    }
    coverage = coverage_pct(samples, expected_window(run, samples))
    per_gpu = pd.DataFrame.from_dict(rows, orient="index").rename_axis("gpu")
    return ThrottleProfile(per_gpu, float(min(coverage.values())))


@dataclass(frozen=True)
class _ThrottleSamples:
    """Columns of one GPU as arrays; unknown is NaN, an unknown bit mask is -1 and ``masked`` is False there."""

    start_us: np.ndarray
    end_us: np.ndarray
    weight_s: np.ndarray
    util: np.ndarray
    mask: np.ndarray
    masked: np.ndarray
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
            np.nan_to_num(reasons, nan=0.0).astype(np.int64), ~np.isnan(reasons), column("sm_clock_mhz"),
            np.where((temp > 0) & (temp <= 110), temp, math.nan), column("power_w"),
        )  # fmt: skip


def _one_gpu(c: _ThrottleSamples, plausible_w: float) -> dict[str, float]:
    busy = c.util >= BUSY_PCT
    known_clock, known_temp = ~np.isnan(c.clock), ~np.isnan(c.temp)
    top = float(c.clock[known_clock].max()) if known_clock.any() else math.nan
    low = c.clock < LOW_CLOCK * top
    warm = (c.clock < WARM_CLOCK * top) & (c.temp >= SLOWDOWN_C - NEAR_C)
    power, thermal = (c.mask & POWER_BITS) > 0, (c.mask & THERMAL_BITS) > 0
    hot = c.temp >= SLOWDOWN_C
    frozen = (c.power > plausible_w) & ((c.mask & SW_POWER_CAP) > 0) & low
    known = bool((c.masked & known_clock & (c.power <= math.inf)).any()) and plausible_w == plausible_w
    first, last = stretches(frozen, c.start_us, c.end_us)
    return {
        "busy_s": float(c.weight_s[busy].sum()),
        "thermal_pct": _share(thermal, busy & c.masked, c),
        "warm_low_pct": _share(warm, busy & known_clock & known_temp, c),
        "power_pct": _share(power, busy & c.masked, c),
        "capped_low_pct": _share(power & low, busy & c.masked & known_clock, c),
        "low_pct": _share(low, busy & known_clock, c),
        "busy_clock_mhz": float(np.median(c.clock[busy & known_clock])) if (busy & known_clock).any() else math.nan,
        "max_clock_mhz": top,
        "hot_pct": _share(hot, known_temp, c),
        "hot_s": float(c.weight_s[hot].sum()) if known_temp.any() else math.nan,
        "max_temp_c": float(c.temp[known_temp].max()) if known_temp.any() else math.nan,
        "frozen_cap_s": float(((c.end_us[last] - c.start_us[first]) / 1e6).max(initial=0.0)) if known else math.nan,
    }


def _share(flag: np.ndarray, among: np.ndarray, c: _ThrottleSamples) -> float:
    return 100 * weighted_mean(flag[among], c.weight_s[among])
