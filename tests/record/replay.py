"""Sources of readings for tests: an adapter that replays a script, and a clock that only tests move."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpudiag.record.readings import Device, NoDriver, Values

Step = Values | Exception | float
"""What one reading gives: values, a failure, or seconds to wait before the usual values."""


def device(number: int, **more: Any) -> Device:
    """Its handle is a pointer, as NVML's is: it can be neither copied nor pickled."""
    handle = ctypes.pointer(ctypes.c_int(number))
    return Device(
        str(number), f"GPU-{number}{'cd' * 8}", "NVIDIA H200", f"0000:0{number}:00.0", 143771.0, 700.0,
        **{"handle": handle} | more,
    )  # fmt: skip


def reading(util: float = 85.0) -> Values:
    """What an H200 tells in one sample."""
    return {
        "util_pct": util, "mem_util_pct": 40, "mem_used_mib": 12595.2, "mem_total_mib": 24576.0,
        "mem_reserved_mib": 450.5, "power_w": 410.123, "power_average_w": 409.9, "power_instant_w": 431.2,
        "power_limit_w": 700.0, "energy_j": 123456789.125, "temp_c": 61, "mem_temp_c": 72, "sm_clock_mhz": 1755,
        "mem_clock_mhz": 3201, "throttle_reasons": 4, "pstate": 0, "enc_pct": 0, "dec_pct": 0,
    }  # fmt: skip


@dataclass
class Replay:
    """An adapter that gives each GPU its script, then the usual reading for ever. ``opens`` scripts open()."""

    scripts: dict[str, list[Step]] = field(default_factory=lambda: {"0": []})
    seen: dict[str, list[Values]] = field(default_factory=dict)
    opens: list[Exception | Sequence[Device]] = field(default_factory=list)
    usual: Values = field(default_factory=reading)
    pcie: list[tuple[str, bool]] = field(default_factory=list)
    closed: int = 0
    mig: bool = False

    def open(self) -> tuple[str, Sequence[Device]]:
        step = self.opens.pop(0) if self.opens else [device(int(gpu), mig=self.mig) for gpu in self.scripts]
        if isinstance(step, Exception):
            raise step
        return "570.86.15", step

    def read(self, of: Device, *, pcie: bool) -> Values:
        self.pcie.append((of.gpu, pcie))
        script = self.scripts.get(of.gpu, [])
        step = script.pop(0) if script else self.usual
        if isinstance(step, Exception):
            raise step
        if isinstance(step, float):
            time.sleep(step)
            return self.usual
        return step

    def processes(self, of: Device) -> list[Values]:
        return self.seen.get(of.gpu, [])

    def close(self) -> None:
        self.closed += 1


def no_driver() -> NoDriver:
    return NoDriver("no NVIDIA driver on this machine: Driver Not Loaded.")


@dataclass
class Hands:
    """A pair of clocks that advance only while something waits, plus ``cost_s`` for every look at them."""

    wall_s: float = 1_772_359_200.0
    mono_s: float = 5000.0
    cost_s: float = 0.0
    at_wait: Callable[[int], None] = lambda n: None
    waits: int = 0

    def wall(self) -> float:
        return self.wall_s

    def mono(self) -> float:
        self.mono_s += self.cost_s
        self.wall_s += self.cost_s
        return self.mono_s

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        self.mono_s += max(seconds, 0.0)
        self.wall_s += max(seconds, 0.0)
        self.waits += 1
        self.at_wait(self.waits)
        return stop.is_set()
