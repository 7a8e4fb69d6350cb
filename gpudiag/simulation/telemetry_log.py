"""What nvidia-smi in a loop would have logged."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gpudiag.simulation.spec import Gpu, Spec, TelemetrySpec
from gpudiag.simulation.step_function import Array, StepFunction
from gpudiag.simulation.world import History

POWER_WINDOW_S = 1.0  # Ampere except GA100, and newer: power.draw is the average of one second


def sample(spec: Spec, history: History, seed: int, start_s: float, end_s: float) -> pd.DataFrame:
    """Telemetry from ``start_s`` to ``end_s``, true seconds since the run's start.

    Returns:
        One row per tick and GPU, in that order: ``true_s`` (instant of the sample, whole milliseconds), ``gpu``
        and the metrics as the driver prints them (whole percents, MiB, degrees and MHz).
    """
    rng = np.random.default_rng([seed, 2])
    busy = [StepFunction.of(trace, 0.0) for trace in history.busy]
    ticks = _ticks(spec.telemetry, busy, start_s, end_s, rng)
    ticks = ticks[_observed(ticks, spec.telemetry)]
    frames = []
    at = np.round(ticks, 3)
    for index, gpu in enumerate(spec.gpus):
        used = StepFunction.of(history.used[index], float(gpu.base_mib))
        frames.append(_metrics(gpu, spec.telemetry, index, at, busy[index], used, rng))
        at = at + rng.integers(1, 6, len(at)) / 1000.0
    rows = pd.concat(frames, ignore_index=True)
    order = np.lexsort((rows["gpu"].to_numpy(dtype=int), np.tile(np.arange(len(ticks)), len(spec.gpus))))
    return rows.iloc[order].reset_index(drop=True)


def _ticks(
    telemetry: TelemetrySpec, busy: list[StepFunction], start_s: float, end_s: float, rng: np.random.Generator
) -> Array:
    """Instants at which the sampler wakes up."""
    count = int((end_s - start_s) / telemetry.period_s) + 1
    limit = 0.4 * telemetry.period_s
    jitter = np.clip(telemetry.jitter_s * rng.standard_normal(count), -limit, limit)
    if not telemetry.slow_down:
        return start_s + telemetry.period_s * np.arange(count) + jitter
    ticks, now = [], start_s
    while now <= end_s:
        ticks.append(now)
        loaded = any(float(steps.at(np.array(now))) > 0.5 for steps in busy)
        now += telemetry.period_s * (1.0 + telemetry.slow_down * loaded) + jitter[len(ticks) % count]
    return np.array(ticks)


def _observed(ticks: Array, telemetry: TelemetrySpec) -> np.ndarray:
    """False for ticks inside an outage of the sampler."""
    seen = np.ones(len(ticks), dtype=bool)
    for start_s, end_s in telemetry.outages_s:
        seen &= (ticks < start_s) | (ticks >= end_s)
    return seen


def _metrics(
    gpu: Gpu,
    telemetry: TelemetrySpec,
    index: int,
    at: Array,
    busy: StepFunction,
    used: StepFunction,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """The samples of one GPU."""
    share = busy.mean(at - telemetry.window_s, at)
    # Kernels come and go within the window: the reading scatters most at half load and not at all at 0 or 1.
    scatter = telemetry.util_noise_pct * 2.0 * np.sqrt(np.clip(share * (1.0 - share), 0.0, None))
    util = np.clip(np.rint(100.0 * share + scatter * rng.standard_normal(len(at))), 0, 100)
    memory = used.at(at)
    in_use = memory > gpu.base_mib + 1
    power = gpu.idle_w + gpu.context_w * in_use
    power = power + (gpu.full_w - gpu.idle_w - gpu.context_w) * busy.mean(at - POWER_WINDOW_S, at)
    temp = _temperature(gpu, at, power)
    power = np.clip(power + telemetry.power_noise_w * rng.standard_normal(len(at)), 0.5, None)
    for tick, where, watts in telemetry.spikes:
        if where == index and tick < len(power):
            power[tick] = watts
    clock = np.where(
        in_use | (share > 0), gpu.max_clock_mhz - 15 * np.clip((temp - 50) // 5, 0, 20), gpu.idle_clock_mhz
    )
    reasons = np.where(in_use | (share > 0), 0, 1) | np.where(power >= 0.97 * gpu.power_limit_w, 4, 0)
    return pd.DataFrame(
        {
            "true_s": at,
            "gpu": str(index),
            "util_pct": util,
            "mem_util_pct": np.rint(gpu.mem_util_ratio * util),
            "mem_used_mib": np.rint(memory),
            "mem_total_mib": float(gpu.mem_total_mib),
            "power_w": np.round(power, 2),
            "power_limit_w": gpu.power_limit_w,
            "temp_c": np.rint(temp),
            "sm_clock_mhz": clock.astype(float),
            "throttle_reasons": reasons,
        }
    )


def _temperature(gpu: Gpu, at: Array, power: Array) -> Array:
    """First-order lag behind ambient + c_per_w x power, in equilibrium at the first sample."""
    target = gpu.ambient_c + gpu.c_per_w * power
    keep = np.exp(-np.diff(at) / gpu.lag_s)
    out = np.empty(len(at))
    now = target[0] if len(at) else 0.0
    out[:1] = now
    for i, (share, goal) in enumerate(zip(keep.tolist(), target[1:].tolist(), strict=True), start=1):
        now = goal + (now - goal) * share
        out[i] = now
    return out
