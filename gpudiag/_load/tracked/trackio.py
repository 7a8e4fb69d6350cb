"""A run of trackio, from the store on this machine (``TRACKIO_DIR``), by calls that read."""

from __future__ import annotations

import csv
import re
import sqlite3
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gpudiag._load.tracked.tracked_run import Point, TrackedRun
from gpudiag.errors import InputError, PackageMissing
from gpudiag.readers._io.url import first_line
from gpudiag.values import is_number

try:
    from trackio import Api
    from trackio.sqlite_storage import SQLiteStorage
except ModuleNotFoundError:
    raise PackageMissing("trackio:PROJECT/RUN needs trackio: pip install 'gpudiag[trackio]'.") from None

SAMPLES = "gpu.csv"
_GPU = re.compile(r"gpu/(\d{1,4})/(\w+)")
_GPU_COLUMNS = {
    "utilization": ("util_pct", 1),
    "memory_utilization": ("memory_controller_util_pct", 1),
    "allocated_memory": ("memory_used_mib", 1024),
    "total_memory": ("memory_total_mib", 1024),
    "power": ("power_w", 1),
    "power_limit": ("power_limit_w", 1),
    "temp": ("temp_c", 1),
    "sm_clock": ("sm_clock_mhz", 1),
    "memory_clock": ("memory_clock_mhz", 1),
    "fan_speed": ("fan_pct", 1),
}
"""What trackio asks of NVML, memory in GiB, as a table of one's own would name it."""


def fetch(run: str, folder: Path) -> TrackedRun:
    """The metrics of ``PROJECT/RUN``, the newest of that name; its samples of GPUs lie in ``folder``.

    It becomes no trial: trackio does not keep when, and how, a run ended. Raises InputError where there is none.
    """
    project, _, name = run.partition("/")
    try:
        held = [one for one in Api().runs(project) if name in (one.name, one.id)]
        if not held:
            raise InputError(f"trackio:{run}: the project has no run of that name.")
        which = {"project": project, "run": held[-1].name, "run_id": held[-1].id}
        logged, system = SQLiteStorage.get_logs(**which), SQLiteStorage.get_system_logs(**which)
    except (ValueError, OSError, sqlite3.Error) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"trackio:{run}: trackio does not give the run: {first_line(error)}") from error
    _write_samples(system, folder / SAMPLES)
    return TrackedRun(held[-1].name, [], _points(logged), {"project": project})


def _points(logged: Iterable[Mapping[str, Any]]) -> dict[str, list[Point]]:
    found: dict[str, list[Point]] = {}
    for one in logged:
        for name, value in one.items():
            if name not in ("timestamp", "step") and is_number(value):
                found.setdefault(name, []).append((_epoch_s(one["timestamp"]), float(value), int(one["step"])))
    return found


def _write_samples(system: Iterable[Mapping[str, Any]], path: Path) -> None:
    """A row a GPU and time; no file where no GPU was sampled."""
    rows = []
    for one in system:
        by_gpu: dict[str, dict[str, object]] = {}
        for name, value in one.items():
            match = _GPU.fullmatch(name)
            if match and match[2] in _GPU_COLUMNS and isinstance(value, int | float):
                column, factor = _GPU_COLUMNS[match[2]]
                by_gpu.setdefault(match[1], {})[column] = value * factor
        rows += [{"timestamp": one["timestamp"], "gpu": gpu, **values} for gpu, values in by_gpu.items()]
    if not rows:
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        columns = ["timestamp", "gpu", *(column for column, _ in _GPU_COLUMNS.values())]
        writer = csv.DictWriter(file, [name for name in columns if any(name in row for row in rows)])
        writer.writeheader()
        writer.writerows(rows)


def _epoch_s(stamp: str) -> float:
    moment = datetime.fromisoformat(stamp)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
