"""W&B's system metrics, by whatever file they came, as rows of the tables gpu and host.

The names are the same in all of them (``gpu.0.memoryAllocated``), with ``system.`` or ``system/`` before them in
exports. See https://docs.wandb.ai/ref/python/experiments/system-metrics
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np
import pandas as pd

from gpudiag.units import BYTES_PER_MIB

NOTE = (
    "W&B writes one value an interval (10 to 30 s), up to version 0.17 the mean of several readings: "
    "peaks within an interval do not show."
)

_GPU_KEY = re.compile(r"gpu\.(\d+)\.(\w+)")
_CORE_KEY = re.compile(r"cpu\.\d+\.cpu_percent")
_PREFIX = re.compile(r"^system[./]")
_GPU_COLUMNS = {
    "gpu": "util_pct",
    "memory": "mem_util_pct",
    "temp": "temp_c",
    "powerWatts": "power_w",
    "enforcedPowerLimitWatts": "power_limit_w",
    "smClock": "sm_clock_mhz",
    "memoryClock": "mem_clock_mhz",
    "fanSpeed": "fan_pct",
}
_SAME_TICK_US = 1_000_000
"""One tick's records (0.18 writes five) differ by milliseconds; ticks are at least 2 s apart."""


@dataclass
class WandbTick:
    """Everything measured at one time; ``line`` is where a text file has it."""

    time_us: int
    values: dict[str, float]
    line: int = 0


@dataclass(frozen=True, eq=False)
class WandbTables:
    """Rows for :func:`gpudiag.readers._shape.finish.finish`; None where nothing was measured."""

    gpu: pd.DataFrame | None
    host: pd.DataFrame | None
    notes: tuple[str, ...]


def is_number(value: object) -> TypeGuard[float]:
    """True for a number that a float holds; JSON knows larger integers."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def plain_name(key: str) -> str:
    """``gpu.0.gpu`` from ``system.gpu.0.gpu`` or ``system/gpu.0.gpu``."""
    return _PREFIX.sub("", key)


def joined(ticks: Iterable[WandbTick]) -> list[WandbTick]:
    """Records of one tick as one, under the time of the first; a key that comes again begins a new tick."""
    out: list[WandbTick] = []
    for tick in ticks:
        last = out[-1] if out else None
        near = last is not None and 0 <= tick.time_us - last.time_us < _SAME_TICK_US
        if last is not None and near and not last.values.keys() & tick.values.keys():
            last.values |= tick.values
        else:
            out.append(tick)
    return out


def tables(ticks: list[WandbTick]) -> WandbTables:
    """The tables and the sentences on what was derived."""
    gpu, notes = _gpu(ticks)
    own = any("gpu.process." in key for tick in ticks for key in tick.values)
    if own:
        notes.append("W&B lists the run's own GPUs once more (gpu.process.N); these copies were left out.")
    if gpu is None:
        notes.append("The W&B log holds no GPU metrics.")
    return WandbTables(gpu, _host(ticks), (NOTE, *notes))


def _gpu(ticks: list[WandbTick]) -> tuple[pd.DataFrame | None, list[str]]:
    rows: list[dict[str, float | int | str]] = []
    for tick in ticks:
        by_gpu: dict[str, dict[str, float | int | str]] = {}
        for key, value in tick.values.items():
            if match := _GPU_KEY.fullmatch(key):
                by_gpu.setdefault(match[1], {})[match[2]] = value
        rows += [{"time": tick.time_us, "line": tick.line, "device": gpu, **cells} for gpu, cells in by_gpu.items()]
    if not rows:
        return None, []
    raw = pd.DataFrame(rows)
    known = {ours: raw[name] for name, ours in _GPU_COLUMNS.items() if name in raw}
    out = pd.DataFrame({"time": _timestamps(raw["time"]), "line": raw["line"], "gpu": raw["device"], **known})
    return out, _derived(raw, out)


def _derived(raw: pd.DataFrame, out: pd.DataFrame) -> list[str]:
    """Memory in MiB; sizes and limits, which W&B only tells as percentages of them."""
    notes = []
    if "memoryAllocatedBytes" in raw:
        out["mem_used_mib"] = raw["memoryAllocatedBytes"] / BYTES_PER_MIB
        if "memoryAllocated" in raw:
            out["mem_total_mib"] = whole_of(out["gpu"], out["mem_used_mib"], raw["memoryAllocated"])
            notes.append("Memory size of each GPU was derived from its use in bytes and in percent.")
    elif "memoryAllocated" in raw:
        notes.append("The log tells memory in percent of a size that it does not tell: memory in MiB is unknown.")
    if "power_limit_w" not in out and {"powerWatts", "powerPercent"} <= set(raw):
        out["power_limit_w"] = whole_of(out["gpu"], raw["powerWatts"], raw["powerPercent"]).round()
        notes.append("Power limit of each GPU was derived from its power in watts and in percent.")
    return notes


def whole_of(gpu: pd.Series, part: pd.Series, percent: pd.Series) -> pd.Series:
    """What ``part`` is ``percent`` of, one value a GPU: told by the largest percentage, which rounding harms least."""
    usable = percent.where((percent > 0) & part.notna())
    best = usable.groupby(gpu).transform("max")
    whole = (part / percent * 100.0).where(usable == best)
    return whole.groupby(gpu).transform("first")


def _host(ticks: list[WandbTick]) -> pd.DataFrame | None:
    cores = {key for tick in ticks for key in tick.values if _CORE_KEY.fullmatch(key)}
    # Up to 0.12 "cpu" is the machine's load, later the process' own over all cores.
    of_machine = not cores and not any("memory_percent" in tick.values for tick in ticks)
    rows = []
    for tick in ticks:
        row = _host_row(tick.values, cores, of_machine=of_machine)
        if row:
            rows.append({"time": tick.time_us, "line": tick.line, **row})
    if not rows:
        return None
    frame = pd.DataFrame(rows)
    return frame.assign(time=_timestamps(frame["time"]))


def _host_row(values: Mapping[str, float], cores: set[str], *, of_machine: bool) -> dict[str, float]:
    row: dict[str, float] = {}
    loads = [values[core] for core in cores if core in values]
    if loads:
        row |= {"cpu_pct": float(np.mean(loads)), "cpu_max_core_pct": max(loads)}
    if "cpu" in values and loads:
        row["process_cpu_max_pct"] = values["cpu"] * len(cores)
    elif "cpu" in values and of_machine:
        row["cpu_pct"] = values["cpu"]
    used_pct = values.get("memory_percent", values.get("memory"))
    available_mib = values.get("proc.memory.availableMB")
    if used_pct is not None and available_mib is not None and 0 <= used_pct < 100:
        row["ram_total_mib"] = available_mib / (1 - used_pct / 100)
        row["ram_used_mib"] = row["ram_total_mib"] - available_mib
    return row


def _timestamps(time_us: pd.Series) -> pd.Series:
    return pd.Series(pd.to_datetime(time_us, unit="us", utc=True)).astype("datetime64[us, UTC]")
