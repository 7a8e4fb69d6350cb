"""A machine with GPUs for tests of the plugin: what NVML would tell, without a driver."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gpudiag.pytest_plugin import budget
from gpudiag.record import nvml, visible_gpu, worker
from gpudiag.record.readings import Device, NoDriver, Values


@dataclass
class FakeGpus:
    """So many GPUs of 24 GiB, all at this utilization (None: unknown, as with MIG) and with so much memory in use."""

    n: int = 1
    util_pct: float | None = 85.0
    used_mib: float = 8192.0
    driver: bool = True

    def open(self) -> tuple[str, Sequence[Device]]:
        if not self.driver:
            raise NoDriver("no NVIDIA driver on this machine: Driver Not Loaded.")
        return "570.86.15", tuple(
            Device(str(i), f"GPU-{i}{'ab' * 8}", "NVIDIA A10", f"0000:0{i}:00.0", 24576.0, 150.0) for i in range(self.n)
        )

    def read(self, device: Device, *, pcie: bool) -> Values:
        held = {"util_pct": self.util_pct, "mem_used_mib": self.used_mib, "mem_total_mib": 24576.0, "power_w": 100.0}
        return {name: value for name, value in held.items() if value is not None}

    def processes(self, device: Device) -> list[Values]:
        return []

    def close(self) -> None:
        pass


def install(machine: FakeGpus, replace: Callable[[object, str, Any], None] = setattr) -> None:
    """Let every reader of NVML see that machine, and tests of a fifth of a second be long enough, also where
    others keep this machine busy.
    """
    for module in (nvml, worker, visible_gpu):
        replace(module, "Nvml", lambda: machine)
    devices = machine.open()[1] if machine.driver else ()
    replace(visible_gpu, "known_devices", lambda: (machine, devices))
    for name, least in (("SHORTEST_S", 0.15), ("FEWEST_SAMPLES", 3), ("LEAST_OBSERVED", 0.1)):
        replace(budget, name, least)
    for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
        os.environ.pop(name, None)
