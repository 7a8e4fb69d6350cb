"""What a fleet is asked for: what lies at its paths, and how each run is to be read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpudiag.errors import ConfigError, InputError, expected
from gpudiag.fleets.found import FoundRun, FoundRuns, runs_below
from gpudiag.fleets.worker import Limits
from gpudiag.readers._datasets.cloud import is_cloud
from gpudiag.readers._datasets.partitions import TelemetryDataset, telemetry_dataset
from gpudiag.readers._io.url import is_url, shown
from gpudiag.readers._jobs.scheduler_jobs import SchedulerJobs, read_jobs
from gpudiag.timezones import Zone, parse_zone


@dataclass(frozen=True)
class Place:
    """What lies at the paths: runs, folders that hold none, data sets of telemetry, and the jobs that cut these."""

    runs: tuple[FoundRun, ...]
    unread: tuple[str, ...]
    datasets: tuple[TelemetryDataset, ...]
    jobs: SchedulerJobs | None


def check_request(
    output: object,
    executor: Executor | None,
    jobs: int,
    limits: Limits,
    timezone: Zone,
    price_per_gpu_h: float | None = None,
) -> None:
    """Raise ConfigError for what cannot be done, wherever the runs are."""
    if not isinstance(output, str | Path):
        raise expected("a folder for the output", output)
    if jobs < 0:
        raise ConfigError(f"--jobs must be 1 or more, or 0 for one a processor, but got {jobs}.")
    if executor is not None and jobs:
        raise ConfigError("--jobs is for this machine, and an executor counts its own workers; leave one out.")
    if not (limits.time_s > 0 and limits.memory_mib > 0):
        raise ConfigError("a limit of time or memory must be above 0.")
    if price_per_gpu_h is not None and not (0 <= price_per_gpu_h < math.inf):
        raise ConfigError(f"a price per GPU-hour must be 0 or more, but got {price_per_gpu_h}.")
    parse_zone(timezone or None)  # raises for one that is unknown, before anything is read


def place_of(given: object, output: Path, scheduler_jobs: str | Path | None, timezone: Zone) -> Place:
    """What lies at the paths. Raises ConfigError, InputNotFound or InputError as :func:`~gpudiag.fleet` says."""
    paths = _paths(given)
    datasets = _datasets(paths)
    of_runs = [path for path in paths if str(path) not in {one.root for one in datasets}]
    below = runs_below(of_runs, output) if of_runs else FoundRuns((), ())
    if scheduler_jobs is not None and not datasets:
        raise ConfigError(
            "--scheduler-jobs cuts telemetry of a cluster by day and host, and none of the paths is such a data set; "
            "make one with: gpudiag convert FILE... --partition -o DIR"
        )
    listed = None if scheduler_jobs is None else read_jobs(scheduler_jobs, timezone)
    if not below.runs and not datasets:
        places = ", ".join(str(shown(one)) for one in paths)
        raise InputError(f"{places}: holds no run; a run is a folder with a file that gpudiag reads (gpudiag inspect).")
    return Place(tuple(below.runs), below.unread, tuple(datasets), listed)


def options_of(timezone: Zone) -> dict[str, Mapping[str, Any]]:
    """How runs are read and judged: what is kept counts only for the same options."""
    return {"reading": {"timezone": None if timezone is None else str(timezone)}, "judging": {}}


def _datasets(paths: list[str | Path]) -> list[TelemetryDataset]:
    """Those of the paths that are data sets. Raises InputError for an object store that cannot be listed."""
    out = []
    for path in paths:
        if is_url(path) and not is_cloud(path):
            continue
        found = telemetry_dataset(path)
        if found is not None:
            out.append(found)
    return out


def _paths(given: object) -> list[str | Path]:
    """One path or several. Raises ConfigError for anything else."""
    held: list[Any] = list(given) if isinstance(given, list | tuple) else [given]
    for one in held:
        if not isinstance(one, str | Path):
            raise expected("a folder, a file or a storage URL, or a list of them", one)
    return held
