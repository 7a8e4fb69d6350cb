"""What is read from GPUs and host, and what a source of GPU readings must be able to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from gpudiag.errors import ConfigError

Reading = float | int | str
Values = dict[str, Reading]
"""Readings by column name of :mod:`gpudiag.schema`; what is unknown or unsupported is absent."""

RecordKind = Literal["gpu", "process", "host", "event"]


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU. ``handle`` is the adapter's own; ``mig`` tells that the GPU is split, so that it has no utilization."""

    gpu: str
    uuid: str = ""
    name: str = ""
    bus_id: str = ""
    mem_total_mib: float | None = None
    power_limit_w: float | None = None
    power_default_w: float | None = None
    sm_clock_max_mhz: float | None = None
    mig: bool = False
    handle: Any = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class RecordRow:
    """One row of one table: ``time_s`` since 1970 in UTC, ``mono_s`` on a clock that nobody sets."""

    record: RecordKind
    time_s: float
    mono_s: float
    values: Values


class Adapter(Protocol):
    """A source of GPU readings.

    ``read`` and ``processes`` raise GpuLost for a GPU that is gone and DriverGone where nothing can be read any
    more; a value that cannot be had is absent.
    """

    def open(self) -> tuple[str, Sequence[Device]]:
        """The driver's version and its GPUs. Raises NoDriver."""

    def read(self, device: Device, *, pcie: bool) -> Values:
        """One sample of a GPU; PCIe counters, which take 20 ms each, only if asked for."""

    def processes(self, device: Device) -> list[Values]:
        """The processes on a GPU: pid, and where known mem_used_mib and sm_pct."""

    def close(self) -> None:
        """Let go of the driver; may be opened again."""


class NoDriver(ConfigError):
    """There is no driver to read GPUs from."""


class GpuLost(Exception):
    """The driver has lost this GPU."""


class DriverGone(Exception):
    """The driver answers no more for any GPU: it was unloaded or updated."""
