"""Utilization, memory and power of each GPU over time, in buckets."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import pandas as pd

from gpudiag.analysis import Analysis
from gpudiag.measures._gpu.boards import gpu_boards
from gpudiag.measures._gpu.gpu_rows import by_gpu
from gpudiag.measures._time.cells import cells, cells_of, longest_period_s
from gpudiag.measures._time.microseconds import microseconds
from gpudiag.measures.memory import possible_readings
from gpudiag.measures.power import PowerProfile, measure_power, power_cells
from gpudiag.memo import memoized
from gpudiag.report.timeline.buckets import Buckets, Raster, bucketed
from gpudiag.run import Run
from gpudiag.schema import has_values
from gpudiag.units import MIB_PER_GIB

Samples = list[tuple[str, pd.DataFrame]]
OF_CLOCKS = (
    "gpu-straggler", "clocks-low", "thermal-throttling", "hardware-slowdown", "power-throttling",
    "power-fault-throttling",
)  # fmt: skip
"""Rules whose findings the clock shows; without one its lane says nothing that somebody looks for."""


@dataclass(frozen=True, eq=False)
class Channel:
    """One quantity: its column, what it is called and its unit, and the cells of its samples by GPU.

    A value is divided by ``scale`` to be shown. ``top`` is where the axis ends at least, in what is shown; None where
    the data say.
    """

    column: str
    name: str
    unit: str
    scale: float
    top: float | None
    samples: Samples

    def between(self, low_us: int, high_us: int) -> Channel:
        """The same with those samples alone of which some part lies between the two."""
        return replace(self, samples=[(gpu, _between(part, low_us, high_us)) for gpu, part in self.samples])

    def buckets(self, raster: Raster) -> dict[str, Buckets]:
        """By GPU."""
        return {
            gpu: bucketed(
                part["start_us"].to_numpy(), part["end_us"].to_numpy(), part[self.column].to_numpy(float), raster
            )
            for gpu, part in self.samples
        }


def _between(part: pd.DataFrame, low_us: int, high_us: int) -> pd.DataFrame:
    first = part["end_us"].searchsorted(low_us, "right")
    return part.iloc[first : part["start_us"].searchsorted(high_us, "left")]


def channels_of(analysis: Analysis, found: Iterable[str] = ()) -> tuple[Channel, ...]:
    """The quantities that the telemetry has, the clock only where a rule ``found`` something about it; readings that
    the measures set aside are left out here too.
    """
    run, power = analysis.run, analysis.get(measure_power)
    makers: dict[str, Callable[[Run], Channel]] = {"util_pct": _utilization, "mem_used_mib": _memory}
    if not set(OF_CLOCKS).isdisjoint(found):
        makers["sm_clock_mhz"] = _clock
    known = [make(run) for column, make in makers.items() if has_values(run.gpu, column)]
    if power is not None and "power_w" in run.gpu:
        known.append(_power(run, power))
    return tuple(channel for channel in known if channel.samples)


@memoized
def _utilization(run: Run) -> Channel:
    return Channel("util_pct", "GPU utilization", "%", 1.0, 100.0, _kept(cells(run, "util_pct")))


@memoized
def _memory(run: Run) -> Channel:
    samples, _ = possible_readings(cells(run, "mem_used_mib"), run)
    total = gpu_boards(run)["total_mib"].max()
    top = None if pd.isna(total) else float(total) / MIB_PER_GIB
    return Channel("mem_used_mib", "GPU memory", "GiB", MIB_PER_GIB, top, _kept(samples))


@memoized
def _clock(run: Run) -> Channel:
    return Channel("sm_clock_mhz", "GPU clock", "MHz", 1.0, None, _kept(cells(run, "sm_clock_mhz")))


def _power(run: Run, power: PowerProfile) -> Channel:
    samples, rejected = power_cells(run), power.rejected
    if len(rejected):
        keys = pd.MultiIndex.from_frame(rejected[["gpu", "time"]])
        kept = ~pd.MultiIndex.from_frame(samples[["gpu", "time"]]).isin(keys)
        samples = cells_of(samples.loc[kept, ["gpu", "time", "power_w"]], "power_w")
    return Channel("power_w", "GPU power", "W", 1.0, None, _kept(samples))


def _kept(samples: pd.DataFrame) -> Samples:
    """The samples by GPU; a single one stands for no time."""
    return [(gpu, part) for gpu, part in by_gpu(samples) if part["weight_s"].sum() > 0]


def extent_us(channels: tuple[Channel, ...]) -> tuple[int, int] | None:
    """First and last instant that was observed; None without telemetry."""
    parts = [part for channel in channels for _, part in channel.samples]
    if not parts:
        return None
    return min(int(part["start_us"].iloc[0]) for part in parts), max(int(part["end_us"].iloc[-1]) for part in parts)


def period_us(channels: tuple[Channel, ...]) -> int:
    """The median step of the GPU that was sampled least often; 0 unknown."""
    periods = [longest_period_s(microseconds(part["time"]) for _, part in channel.samples) for channel in channels]
    return round(max((period for period in periods if period == period), default=0.0) * 1e6)
