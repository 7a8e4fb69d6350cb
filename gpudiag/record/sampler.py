"""The loop: one tick after another at fixed moments, whatever the readings cost and whatever they fail with."""

from __future__ import annotations

import math
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gpudiag import __version__
from gpudiag.errors import ConfigError
from gpudiag.record.host import Host, process_name, sees_other_pids
from gpudiag.record.readings import (
    Adapter,
    Device,
    DriverGone,
    GpuLost,
    NoDriver,
    Reading,
    RecordKind,
    RecordRow,
    Values,
)
from gpudiag.record.sink import CsvSink
from gpudiag.report.format import duration

REOPEN_S = 10.0
"""How often a driver that is gone is asked whether it is back."""
PCIE_S = 0.04
"""What the driver takes to count both directions of one GPU's PCIe traffic: 20 ms each (METHODS 1)."""
STEP_S = 1.0
"""A change of the wall clock against the monotonic one that is worth an event; slewing stays far below."""


def boot_s() -> float:
    """Seconds on a clock that nobody sets and that runs on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def boot_id() -> str:
    """Which boot of the machine this is, where the system tells (Linux): sessions of one share ``mono_s``."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


@dataclass(frozen=True)
class Clock:
    """The two clocks and how to wait; tests pass their own."""

    wall: Callable[[], float] = time.time
    mono: Callable[[], float] = boot_s
    wait: Callable[[threading.Event, float], bool] = threading.Event.wait
    boot: Callable[[], str] = boot_id


@dataclass(frozen=True)
class Options:
    """What is sampled. ``gpus``: indices or uuids (beginnings will do), empty for all.

    ``zone`` (the machine's) and ``command`` (what is run meanwhile) go into the header.
    """

    interval_s: float = 1.0
    gpus: tuple[str, ...] = ()
    processes: bool = False
    zone: str = ""
    command: str = ""

    def __post_init__(self) -> None:
        if not 0.01 <= self.interval_s <= 3600:
            raise ConfigError(f"the interval must lie between 0.01 and 3600 s, but got {self.interval_s:g}.")


class Sampler:
    """Reads ``adapter`` and ``host`` at every tick and hands the rows to ``sink`` and to ``heard``.

    Either of the two may be None. No failure of a reading leaves this class: what cannot be read is absent,
    a GPU that is lost or a driver that restarts is an event, and the others are read on.
    """

    def __init__(
        self,
        sink: CsvSink,
        adapter: Adapter | None,
        host: Host | None,
        options: Options,
        *,
        clock: Clock | None = None,
        heard: Callable[[Sequence[RecordRow]], None] = lambda rows: None,
    ) -> None:
        self._sink, self._adapter, self._host, self._options = sink, adapter, host, options
        self._clock = clock or Clock()
        self._heard = heard
        self._marks: deque[RecordRow] = deque()
        self._ids: dict[str, str] = {}
        self._devices: list[Device] = []
        self._driver = ""
        self._reopen_at = math.inf
        self._ahead_s: float | None = None
        self._ticks = 0
        self._missed = 0

    def open(self) -> None:
        """Find the GPUs and begin the session.

        Raises NoDriver where GPUs are wanted and cannot be read, ConfigError for a GPU that does not exist.
        """
        if self._adapter is not None:
            self._driver, found = self._adapter.open()
            if not found:
                raise NoDriver(f"the NVIDIA driver {self._driver} sees no GPU on this machine.")
            self._devices = chosen(found, self._options.gpus)
            self._ids = {device.uuid: device.gpu for device in self._devices}
        self._begin()
        for device in self._devices:
            if device.mig:
                self.mark("mig", "GPU is split (MIG): the driver tells no utilization of it", gpu=device.gpu)

    def mark(self, kind: str, detail: str, **values: Reading | None) -> None:
        """Note an event; it is stamped now and written with the next tick. Any thread may call."""
        known = {name: value for name, value in values.items() if value is not None}
        self._marks.append(self._row("event", {"kind": kind, "detail": detail, **known}))

    def flush(self) -> bool:
        """Write the events noted so far."""
        rows = [self._marks.popleft() for _ in range(len(self._marks))]
        return self._sink.write(rows) if rows else not self._sink.failed

    def run(self, stop: threading.Event) -> None:
        """Sample until ``stop`` is set or nothing can be written; ticks never drift, late ones are left out."""
        mono, interval = self._clock.mono, self._options.interval_s
        began = mono()
        tick = 0
        while not stop.is_set() and self.tick():
            due = max(tick, math.floor((mono() - began) / interval)) + 1
            self._missed += due - tick - 1
            tick = due
            self._clock.wait(stop, began + tick * interval - mono())

    def tick(self) -> bool:
        """Read everything once and write it. False if the recording has ended."""
        rows = self._step()
        if self._adapter is not None:
            rows += self._gpu_rows(self._adapter)
        if self._host is not None:
            rows.append(self._row("host", self._host.read()))
        self._ticks += 1
        self._heard(rows)
        rows += [self._marks.popleft() for _ in range(len(self._marks))]
        return self._sink.write(rows)

    def close(self) -> None:
        """End the session; the file is whole without this too."""
        self.mark("record_end", f"{self._ticks} ticks, {self._missed} left out because reading took too long")
        self.flush()
        self._sink.close()
        if self._adapter is not None:
            self._adapter.close()

    def _begin(self) -> None:
        about: Values = {
            "gpudiag": __version__,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "zone": self._options.zone,
            "driver": self._driver,
            "interval_s": self._options.interval_s,
        }
        if boot := self._clock.boot():
            about["boot"] = boot
        if self._options.command:
            about["command"] = self._options.command
        if self._options.processes and sees_other_pids():
            about["pids"] = "of the host: this container has its own"
        self._sink.begin(about, self._devices)

    def _row(self, record: RecordKind, values: Values) -> RecordRow:
        return RecordRow(record, self._clock.wall(), self._clock.mono(), values)

    def _step(self) -> list[RecordRow]:
        """An event if the wall clock has been set since the last tick."""
        ahead = self._clock.wall() - self._clock.mono()
        before, self._ahead_s = self._ahead_s, ahead
        if before is None or abs(ahead - before) <= STEP_S:
            return []
        return [self._row("event", {"kind": "clock_step", "detail": _clock_set(ahead - before)})]

    def _gpu_rows(self, adapter: Adapter) -> list[RecordRow]:
        rows: list[RecordRow] = []
        try:
            if self._clock.mono() >= self._reopen_at:
                self._reopen(adapter)
            for place, device in enumerate(list(self._devices)):
                rows += self._device_rows(adapter, device, place)
        except DriverGone as error:
            self._devices = []
            self._reopen_at = self._clock.mono() + REOPEN_S
            rows.append(self._row("event", {"kind": "driver_gone", "detail": f"the driver answers no more: {error}"}))
        return rows

    def _device_rows(self, adapter: Adapter, device: Device, place: int) -> list[RecordRow]:
        """PCIe counters are read in turns where all of them would take more than half the interval."""
        turns = math.ceil(2 * PCIE_S * len(self._devices) / self._options.interval_s)
        try:
            values = adapter.read(device, pcie=(self._ticks + place) % turns == 0)
            rows = [self._row("gpu", {"gpu": device.gpu, **values})]
            for process in adapter.processes(device) if self._options.processes else ():
                name = process_name(int(process["pid"]))
                rows.append(replace(rows[0], record="process", values={"gpu": device.gpu, "name": name, **process}))
            return rows
        except GpuLost as error:
            self._devices.remove(device)
            return [self._row("event", {"kind": "gpu_lost", "detail": f"{error}: {device.name}", "gpu": device.gpu})]

    def _reopen(self, adapter: Adapter) -> None:
        """Ask whether the driver is back; a GPU keeps the name it had."""
        adapter.close()
        try:
            self._driver, found = adapter.open()
        except NoDriver:
            self._reopen_at = self._clock.mono() + REOPEN_S
            return
        self._reopen_at = math.inf
        self._devices = [replace(d, gpu=self._ids[d.uuid]) for d in found if d.uuid in self._ids]
        self._begin()
        self.mark("driver_back", f"driver {self._driver} answers again for {len(self._devices)} GPUs")


def _clock_set(by_s: float) -> str:
    return f"the clock was set {'ahead' if by_s > 0 else 'back'} by {duration(abs(by_s))}"


def chosen(devices: Sequence[Device], wanted: Sequence[str]) -> list[Device]:
    """The devices wanted by index or by the beginning of their uuid; all if none is named."""
    out: list[Device] = []
    for name in wanted:
        hits = [d for d in devices if d.gpu == name or (len(name) >= 8 and d.uuid.lower().startswith(name.lower()))]
        if len(hits) != 1:
            listed = ", ".join(f"{device.gpu} ({device.uuid})" for device in devices)
            raise ConfigError(f"there is no GPU '{name}'; give an index or a uuid of: {listed}.")
        out += [device for device in hits if device not in out]
    return out if wanted else list(devices)
