"""``fleet``: every run below some paths, diagnosed by an executor of any kind, and kept in one folder."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any

from gpudiag.errors import ConfigError, InputError, ReportError, expected
from gpudiag.fleets.found import FoundRun, part_of, runs_below
from gpudiag.fleets.kept import FleetFolder, read_rows
from gpudiag.fleets.row import not_diagnosed
from gpudiag.fleets.table import FleetTable
from gpudiag.fleets.worker import Job, Limits, Outcome, close_all, diagnosed
from gpudiag.load import Paths
from gpudiag.readers._io.url import shown
from gpudiag.report.fleet.document import RunRow
from gpudiag.timezones import Zone, parse_zone

AHEAD = 1024
"""Runs handed to the executor ahead of the results: enough for 500 workers, and few results in memory at once."""
TRIES = 3
"""A run whose worker was lost is given to another one, so often in all."""
SIGNAL_S = 0.5
"""How often the main thread looks whether a signal has come."""

Progress = Callable[[int, int, RunRow], None]
"""Is told of each run that has ended: how many have, of how many, and the row."""


def fleet(
    paths: Paths,
    output: str | Path,
    *,
    executor: Executor | None = None,
    jobs: int = 0,
    timezone: Zone = None,
    time_limit_s: float = 300,
    memory_limit_mib: float = 4096,
    resume: bool = True,
    progress: Progress | None = None,
) -> FleetTable:
    """Diagnose every run below ``paths`` and keep rows, diagnoses and the table in ``output``.

    Runs that have not changed since an earlier call with the same options are not diagnosed again. A run that is
    broken, or exceeds a limit, is a row that says so.

        table = gd.fleet("runs", "reports/fleet")
        table.by("user")

    Args:
        paths: folders that are or hold runs, files, storage URLs.
        output: folder, made where it does not exist.
        executor: of :mod:`concurrent.futures`, such as dask's ``client.get_executor()``; default: this machine's
            processors.
        jobs: runs at once on this machine; 0: one a processor.
        timezone: of timestamps that carry none; default: that of each run.toml, else of this machine.
        time_limit_s: time that one run may take.
        memory_limit_mib: memory that one run may take.
        resume: False diagnoses all of them again.
        progress: called after each run.

    Raises:
        ConfigError: nothing is given, a limit or ``jobs`` is not positive, or the output is somebody else's or is
            being written by another fleet.
        ReportError: the executor is broken for good.
        InputNotFound: nothing is at one of the paths.
        InputError: there is no run below them.
    """
    given = _paths(paths)
    if not isinstance(output, str | Path):
        raise expected("a folder for the output", output)
    if jobs < 0:
        raise ConfigError(f"--jobs must be 1 or more, or 0 for one a processor, but got {jobs}.")
    if not (time_limit_s > 0 and memory_limit_mib > 0):
        raise ConfigError("a limit of time or memory must be above 0.")
    parse_zone(timezone or None)  # raises for one that is unknown, before anything is read
    folder = FleetFolder(Path(output))
    found = runs_below(given, Path(output))
    if not found:
        places = ", ".join(str(shown(one)) for one in given)
        raise InputError(f"{places}: holds no run; a run is a folder with a file that gpudiag reads (gpudiag inspect).")
    options: dict[str, Mapping[str, Any]] = {
        "reading": {"timezone": None if timezone is None else str(timezone)},
        "judging": {},
    }
    limits, call = Limits(time_limit_s, memory_limit_mib), token_hex(8)
    with folder.alone(), _executor(executor, jobs) as pool:
        held = folder.kept(found, options) if resume else {}
        waiting = deque(Job(run, options, limits, call) for run in _parted(found, held) if run.name not in held)
        of = len(_parted(found, held))
        done = of - len(waiting)
        for outcome in _outcomes(pool, waiting):
            folder.keep(outcome, options)
            held[outcome.found.name] = outcome
            waiting.extend(Job(part_of(outcome.found, part), options, limits, call) for part in outcome.parts)
            of += max(len(outcome.parts) - 1, 0)
            if outcome.row is not None:
                done += 1
                if progress is not None:
                    progress(done, of, outcome.row)
        whole = _parted(found, held)
        table = FleetTable.of((row for run in whole if (row := held[run.name].row)), Path(output).resolve().name)
        folder.finish(table)
        folder.compact([*(name for name in held if held[name].parts), *(run.name for run in whole)])
    return table


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
    return FleetTable.of(read_rows(folder), Path(folder).resolve().name)


def _paths(given: object) -> list[str | Path]:
    """One path or several. Raises ConfigError for anything else."""
    held: list[Any] = list(given) if isinstance(given, list | tuple) else [given]
    for one in held:
        if not isinstance(one, str | Path):
            raise expected("a folder, a file or a storage URL, or a list of them", one)
    return held


@contextmanager
def _executor(given: Executor | None, jobs: int) -> Iterator[Executor]:
    if given is not None:
        yield given
        return
    pool = ThreadPoolExecutor(jobs or len(os.sched_getaffinity(0)))
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        close_all()


def _outcomes(pool: Executor, waiting: deque[Job]) -> Iterator[Outcome]:
    """Outcomes as they come; jobs may be added to ``waiting`` meanwhile."""
    running: dict[Future[Outcome], tuple[Job, int]] = {}
    try:
        while True:
            while waiting and len(running) < AHEAD:
                job = waiting.popleft()
                running[_submitted(pool, job)] = job, 1
            if not running:
                return
            for done in wait(running, SIGNAL_S, FIRST_COMPLETED).done:
                job, tries = running.pop(done)
                error = done.exception()
                if error is None:
                    yield done.result()
                elif tries < TRIES:
                    running[_submitted(pool, job)] = job, tries + 1
                else:
                    reason = f"its worker was lost {TRIES} times ({type(error).__name__})."
                    yield Outcome(job.found, not_diagnosed(job.found, reason), passing=True)
    finally:
        for one in running:
            one.cancel()


def _submitted(pool: Executor, job: Job) -> Future[Outcome]:
    try:
        return pool.submit(diagnosed, job)
    except BrokenExecutor as error:
        raise ReportError(
            f"the executor is broken ({type(error).__name__}); call again with a new one: what was diagnosed is kept."
        ) from error
