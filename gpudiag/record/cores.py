"""How many processor cores this process and what it starts may use: fewer than the machine's in a container."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

CGROUPS = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")


def usable_cores(cgroups: Path = CGROUPS, membership: Path = MEMBERSHIP) -> int:
    """Cores of this process's affinity, and no more than the quota of processor time of its control groups allows, in
    whole cores (cgroup v2 cpu.max, v1 cpu.cfs_quota_us); at least 1.
    """
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else psutil.cpu_count() or 1
    return max(1, math.floor(min([allowed, *_quotas(cgroups, membership)])))


def _quotas(cgroups: Path, membership: Path) -> Iterator[float]:
    """Quotas in cores of the groups that this process is in, from the innermost up to the root."""
    lines: list[str] = []
    with suppress(OSError):
        lines = membership.read_text(encoding="utf-8", errors="replace").splitlines()
    for line in lines:
        _, controllers, place = (*line.split(":", 2), "", "")[:3]
        inner = Path(place.lstrip("/"))
        for group in (inner, *inner.parents):
            if not controllers:
                yield from _quota(cgroups / group / "cpu.max")
            elif "cpu" in controllers.split(","):
                yield from _quota_v1(cgroups / "cpu" / group)


def _quota(file: Path) -> Iterator[float]:
    """``max 100000`` is none, ``150000 100000`` 1.5 cores."""
    with suppress(OSError, ValueError, ZeroDivisionError):
        quota, period = file.read_text(encoding="ascii").split()
        yield int(quota) / int(period)


def _quota_v1(group: Path) -> Iterator[float]:
    """A quota of -1 is none."""
    with suppress(OSError, ValueError, ZeroDivisionError):
        quota = int((group / "cpu.cfs_quota_us").read_text(encoding="ascii"))
        if quota > 0:
            yield quota / int((group / "cpu.cfs_period_us").read_text(encoding="ascii"))
