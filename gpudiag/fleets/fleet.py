"""``fleet``: every run below some paths, diagnosed by an executor of any kind, and kept in one folder."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from typing import Any

from gpudiag.errors import expected
from gpudiag.fleets.cluster.cluster import Cluster, cluster
from gpudiag.fleets.cluster.kept import keep_cluster, read_cluster
from gpudiag.fleets.found import FoundRun, part_of
from gpudiag.fleets.kept import AboutFleet, FleetFolder, read_about, read_rows
from gpudiag.fleets.money import at_price
from gpudiag.fleets.outcomes import executor_of, outcomes
from gpudiag.fleets.recordings import sought
from gpudiag.fleets.request import Place, check_request, options_of, place_of
from gpudiag.fleets.table import FleetTable
from gpudiag.fleets.worker import Job, Limits, Outcome
from gpudiag.load import Paths
from gpudiag.report.fleet.document import RunRow
from gpudiag.timezones import Zone

Progress = Callable[[int, int, RunRow | str], None]
"""Is told of each run that has ended: how many have, of how many, and the row; then of each host of a data set."""


def fleet(
    paths: Paths,
    output: str | Path,
    *,
    scheduler_jobs: str | Path | None = None,
    executor: Executor | None = None,
    jobs: int = 0,
    timezone: Zone = None,
    time_limit_s: float = 300,
    memory_limit_mib: float = 4096,
    price_per_gpu_h: float | None = None,
    resume: bool = True,
    progress: Progress | None = None,
) -> FleetTable:
    """Diagnose every run below ``paths`` and keep rows, diagnoses and the table in ``output``.

    Runs that have not changed since an earlier call with the same options are not diagnosed again. A run that is
    broken, or exceeds a limit, is a row that says so.

        table = gd.fleet("runs", "reports/fleet")
        table.by("user")

    A path may be a data set of telemetry by day and host, as ``gpudiag convert --partition`` writes it. It is read
    once, and its runs are the jobs of ``scheduler_jobs``, or the sessions of its hosts.

    Args:
        paths: folders that are or hold runs, files, storage URLs.
        output: folder, made where it does not exist.
        scheduler_jobs: jobs of Slurm, as ``sacct --parsable2``, ``sacct --json`` or ``scontrol show job`` prints them.
        executor: of :mod:`concurrent.futures`, such as dask's ``client.get_executor()``; default: this machine's
            processors.
        jobs: runs at once on this machine, without ``executor``; 0: one a processor.
        timezone: of timestamps that carry none, in runs whose run.toml states no zone; default: this machine's.
        time_limit_s: time that one run may take.
        memory_limit_mib: memory that one run may take.
        price_per_gpu_h: money per GPU-hour of runs whose run.toml states none, in the currency that it states (USD).
        resume: False diagnoses all of them again.
        progress: called after each run, and with the name of each host of a data set of telemetry.

    Raises:
        ConfigError: nothing is given, a limit or ``jobs`` is not positive, or ``jobs`` stands beside an executor; the
            output is somebody else's or is being written by another fleet.
        ReportError: the executor is broken for good.
        InputNotFound: nothing is at one of the paths.
        InputError: there is no run below them.
    """
    limits = Limits(time_limit_s, memory_limit_mib)
    check_request(output, executor, jobs, limits, timezone, price_per_gpu_h)
    folder = FleetFolder(Path(output))
    place = place_of(paths, Path(output), scheduler_jobs, timezone)
    options = options_of(timezone)
    with folder.alone(), executor_of(executor, jobs) as pool:
        held = folder.kept(place.runs, options) if resume else {}
        _diagnose(place.runs, held, folder, pool, options, limits, progress)
        whole = folder.in_order(_parted(place.runs, held))
        rows = [row for run in whole if (row := held[run.name].row)]
        whole_cluster = _cluster(place, rows, timezone, progress or _unheard)
        keep_cluster(folder.folder, whole_cluster)
        about = AboutFleet(place.unread, price_per_gpu_h)
        table = _table(rows, Path(output), about, whole_cluster)
        folder.finish(table)
        folder.compact([*(name for name in held if held[name].parts), *(run.name for run in whole)], about)
    return table


def _diagnose(
    found: Iterable[FoundRun],
    held: dict[str, Outcome],
    folder: FleetFolder,
    pool: Executor,
    options: Mapping[str, Mapping[str, Any]],
    limits: Limits,
    progress: Progress | None,
) -> None:
    """Diagnose what is not held yet, and keep it in the folder and in ``held``."""
    call, parted = token_hex(8), _parted(found, held)
    waiting = deque(Job(run, options, limits, call) for run in parted if run.name not in held)
    of = len(parted)
    done = of - len(waiting)
    for outcome in outcomes(pool, waiting):
        folder.keep(outcome, options)
        held[outcome.found.name] = outcome
        waiting.extend(Job(part_of(outcome.found, part), options, limits, call) for part in outcome.parts)
        of += max(len(outcome.parts) - 1, 0)
        if outcome.row is not None:
            done += 1
            if progress is not None:
                progress(done, of, outcome.row)


def _cluster(place: Place, rows: Iterable[RunRow], timezone: Zone, progress: Progress) -> Cluster | None:
    """Telemetry of a cluster, after the runs: what these recorded is looked for in it."""
    return cluster(place.datasets, place.jobs, timezone, progress, sought(rows)) if place.datasets else None


def _unheard(done: int, of: int, ended: RunRow | str) -> None:
    """Nobody follows how far it has come."""


def _parted(found: Iterable[FoundRun], held: Mapping[str, Outcome]) -> list[FoundRun]:
    """The runs with those that lie in one place instead of the place, as far as it has been read."""
    out = []
    for run in found:
        parts = held[run.name].parts if run.name in held else ()
        out += _parted([part_of(run, part) for part in parts], held) if parts else [run]
    return out


def read_fleet(folder: str | Path) -> FleetTable:
    """The table of a fleet's folder, as far as it has come. Raises InputError where there is none."""
    if not isinstance(folder, str | Path):
        raise expected("the folder of a fleet", folder)
    return _table(read_rows(folder), Path(folder), read_about(folder), read_cluster(Path(folder)))


def _table(rows: list[RunRow], folder: Path, about: AboutFleet, held: Cluster | None) -> FleetTable:
    """The table of runs and of what telemetry of a cluster gave."""
    every, both = [*rows, *(held.rows if held else ())], held.recordings if held else ()
    table = FleetTable.of(every, folder.resolve().name, about.unread, both)
    return replace(table, rows=at_price(table.rows, about.price_per_gpu_h), cluster=held.about if held else None)
