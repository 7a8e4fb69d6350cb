"""The host beside the GPUs: processors, memory, disks, through psutil."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from gpudiag.record.cores import usable_cores
from gpudiag.record.readings import Values
from gpudiag.units import BYTES_PER_MIB

SCAN_SHARE = 0.002
"""Share of one core that looking through all processes may cost; on a host with many it is done less often."""
_FIRST_PID_NAMESPACE = "pid:[4026531836]"
"""What Linux calls the namespace of the host (PROC_PID_INIT_INO)."""


class Host:
    """Rates since the last reading: the first one holds only what is no rate. ``source`` is psutil."""

    def __init__(
        self,
        source: Any = psutil,
        clock: Callable[[], float] = time.monotonic,
        allowed: Callable[[], int] = usable_cores,
    ) -> None:
        self._source = source
        self._clock = clock
        self._allowed = allowed()
        self._cores: Sequence[Any] = ()
        self._read_at = 0.0
        self._read_bytes: int | None = None
        self._process_s: dict[tuple[int, float], float] = {}
        self._scanned_at = 0.0
        self._scan_again_at = 0.0

    def read(self) -> Values:
        """One sample; what this host does not tell is absent."""
        values: Values = {"cpu_cores": self._allowed}
        for part in (self._memory, self._processors, self._disks, self._busiest_process):
            with suppress(psutil.Error, OSError, RuntimeError, NotImplementedError):  # a part of /proc that is hidden
                values |= part()
        return values

    def _memory(self) -> Values:
        memory = self._source.virtual_memory()
        return {
            "ram_used_mib": (memory.total - memory.available) / BYTES_PER_MIB,
            "ram_total_mib": memory.total / BYTES_PER_MIB,
        }

    def _processors(self) -> Values:
        """Busy means neither idle nor waiting for input or output."""
        before, self._cores = self._cores, self._source.cpu_times(percpu=True)
        if len(before) != len(self._cores):
            return {}
        deltas = [_delta(old, new) for old, new in zip(before, self._cores, strict=True)]
        totals = [sum(delta.values()) for delta in deltas]
        if min(totals) <= 0:
            return {}
        rest = [delta.get("idle", 0.0) + delta.get("iowait", 0.0) for delta in deltas]
        busy = [100 * (1 - idle / total) for idle, total in zip(rest, totals, strict=True)]
        values: Values = {
            "host_cores": len(deltas),
            "cpu_pct": 100 * (1 - sum(rest) / sum(totals)),
            "cpu_max_core_pct": max(busy),
        }
        if "iowait" in deltas[0]:
            values["io_wait_pct"] = 100 * sum(delta["iowait"] for delta in deltas) / sum(totals)
        return values

    def _disks(self) -> Values:
        counters = self._source.disk_io_counters()
        now, before, since = self._clock(), self._read_bytes, self._read_at
        self._read_at, self._read_bytes = now, counters.read_bytes if counters else None
        if before is None or self._read_bytes is None or now <= since or self._read_bytes < before:
            return {}
        return {"read_mib_s": (self._read_bytes - before) / BYTES_PER_MIB / (now - since)}

    def _busiest_process(self) -> Values:
        """Processor time of every process since the last look through them; 100 % is one core."""
        began = self._clock()
        if began < self._scan_again_at:
            return {}
        now: dict[tuple[int, float], float] = {}
        for process in self._source.process_iter():
            try:
                times = process.cpu_times()
                now[(process.pid, process.create_time())] = times.user + times.system
            except (psutil.Error, OSError):
                continue
        span_s = began - self._scanned_at
        used = [spent - self._process_s[key] for key, spent in now.items() if key in self._process_s]
        first = not self._process_s
        self._process_s, self._scanned_at = now, began
        self._scan_again_at = began + (self._clock() - began) / SCAN_SHARE
        return {} if first or not used or span_s <= 0 else {"process_cpu_max_pct": max(0.0, 100 * max(used) / span_s)}


def _delta(old: Any, new: Any) -> Mapping[str, float]:
    """Seconds spent per state; a guest's time is within user's already."""
    return {
        name: max(0.0, getattr(new, name) - getattr(old, name))
        for name in new._fields
        if name not in ("guest", "guest_nice")
    }


def process_name(pid: int) -> str:
    """Name of a process as the driver numbers it; empty where it is gone or its number may mean another here."""
    if sees_other_pids():
        return ""
    try:
        return str(psutil.Process(pid).name())
    except (psutil.Error, OSError, ValueError):
        return ""


def sees_other_pids() -> bool:
    """True in a container with process numbers of its own, where the driver's may be the host's."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        return str(Path("/proc/self/ns/pid").readlink()) != _FIRST_PID_NAMESPACE
    except OSError:
        return False
