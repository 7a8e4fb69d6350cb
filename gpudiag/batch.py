"""Many runs in one go: each report in a process of its own, and an index over all of them.

A process of its own, because a run that exhausts the memory or kills its kernel must not take the others with it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from gpudiag.errors import ConfigError
from gpudiag.load import MANIFEST
from gpudiag.report.index import Index, Row, failed, read_row
from gpudiag.report.notebooks import DOCUMENT

FAILED = 2


@dataclass(frozen=True)
class Job:
    """One report to make: the run, and the folder of its report below the batch's."""

    run: Path
    folder: str


def plan_jobs(runs: Sequence[Path]) -> list[Job]:
    """A job a run; a folder that only holds runs stands for all of them. Folders of reports are named after runs."""
    paths = [path for run in runs for path in _expanded(run)]
    taken: dict[str, int] = {}
    jobs = []
    for path in paths:
        name = path.resolve().name if path.is_dir() else path.resolve().parent.name
        if sum((other.resolve().name == name) for other in paths) > 1:
            name = f"{path.resolve().parent.name}-{name}"
        taken[name] = taken.get(name, 0) + 1
        jobs.append(Job(path, name if taken[name] == 1 else f"{name}-{taken[name]}"))
    return jobs


def _expanded(run: Path) -> list[Path]:
    if run.is_dir() and not (run / MANIFEST).is_file():
        return sorted(found.parent for found in run.rglob(MANIFEST)) or [run]
    return [run]


def report_all(
    jobs: Sequence[Job],
    output: Path,
    options: Sequence[str] = (),
    *,
    workers: int = 1,
    progress: Callable[[Row], None] = lambda row: None,
) -> Index:
    """Make every report below ``output``, ``workers`` at a time, and the index over them.

    Args:
        jobs: what to make.
        output: made where it does not exist; gets index.html and index.md.
        options: options of ``gpudiag report`` for every run.
        workers: processes at once, at least 1.
        progress: told each row as its report is done.

    Raises:
        ConfigError: fewer than one worker.
    """
    if workers < 1:
        raise ConfigError(f"--jobs must be 1 or more, but got {workers}.")
    rows = []
    for row in _rows(jobs, output, options, workers):
        progress(row)
        rows.append(row)
    index = Index.of(rows)
    index.write(output)
    return index


def _rows(jobs: Sequence[Job], output: Path, options: Sequence[str], workers: int) -> Iterator[Row]:
    with ThreadPoolExecutor(workers) as pool:
        waiting = [pool.submit(_report, job, output, options) for job in jobs]
        try:
            for done in as_completed(waiting):
                yield done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _report(job: Job, output: Path, options: Sequence[str]) -> Row:
    folder = output / job.folder
    (folder / DOCUMENT).unlink(missing_ok=True)  # what an earlier batch left is not this run's
    command = [sys.executable, "-m", "gpudiag", "report", str(job.run), "-o", str(folder), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if (folder / DOCUMENT).is_file() and done.returncode != FAILED:
        return read_row(folder, job.folder)
    said = done.stderr.strip().splitlines()
    reason = said[-1].removeprefix("gpudiag: ") if said else f"its process ended with {done.returncode}"
    return failed(str(job.run), job.folder, reason)
