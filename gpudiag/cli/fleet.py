"""``gpudiag fleet``: every run below some paths, in one table and one report."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpudiag.cli._arguments import check_output
from gpudiag.cli._console import console_for, say
from gpudiag.cli._options import Timezone, choice
from gpudiag.errors import ConfigError, InputNotFound
from gpudiag.readers._io.url import shown as shown_input
from gpudiag.report.format import count, duration, plural

if TYPE_CHECKING:
    from gpudiag.fleets.table import FleetTable

REPORTS = ("fleet.html", "fleet.md", "fleet.json")
GROUPS = ("user", "project", "host", "gpu-model", "week", "month")


RunPaths = Annotated[
    list[str], typer.Argument(metavar="PATH...", help="folders that are or hold runs, files, storage URLs, data sets")
]
Output = Annotated[
    Path, typer.Option("-o", "--output", metavar="DIR", help="gets the table, the report and a diagnosis a run")
]
SchedulerJobs = Annotated[
    Path | None,
    typer.Option(
        "--scheduler-jobs", metavar="FILE", help="jobs as sacct --parsable2 or --json prints them, for a data set"
    ),
]
Workers = Annotated[int, typer.Option("--jobs", metavar="N", help="runs at once; 0: one a processor")]
Where = Annotated[str, typer.Option("--executor", metavar="WHERE", help="dask:local or dask:ADDRESS of a scheduler")]
By = Annotated[str, choice("--by", *GROUPS, help="what the report divides the fleet by: " + ", ".join(GROUPS))]
Anonymize = Annotated[
    bool, typer.Option("--anonymize", help="users, hosts, projects and runs as numbers in the report")
]
Alerts = Annotated[
    list[Path] | None,
    typer.Option("--alert", metavar="FILE", help="also a few lines to send: .json (webhook), .eml or .prom"),
]
Resume = Annotated[
    bool, typer.Option("--resume/--again", help="keep runs that have not changed, or diagnose all of them again")
]
Price = Annotated[
    float | None,
    typer.Option("--price", metavar="MONEY", help="per GPU-hour, of runs whose run.toml states no price_per_gpu_h"),
]
TimeLimit = Annotated[float, typer.Option("--time-limit", metavar="S", help="seconds that a run may take")]
MemoryLimit = Annotated[float, typer.Option("--memory-limit", metavar="MIB", help="memory that a run may take")]


def fleet(
    paths: RunPaths,
    output: Output = Path("reports/fleet"),
    scheduler_jobs: SchedulerJobs = None,
    jobs: Workers = 0,
    executor: Where = "",
    by: By = "project",
    anonymize: Anonymize = False,
    alert: Alerts = None,
    resume: Resume = True,
    price: Price = None,
    timezone: Timezone = None,
    time_limit: TimeLimit = 300.0,
    memory_limit: MemoryLimit = 4096.0,
) -> None:
    """Diagnose every run below some paths: one table, one report, causes ranked by what they cost.

    A data set of telemetry by day and host (gpudiag convert --partition) is cut by the jobs of a scheduler.
    A second call diagnoses only what has changed. A run that is broken, hangs or grows costs itself alone.
    """
    from gpudiag.fleets.executors import executor_named
    from gpudiag.fleets.fleet import fleet as diagnose_all

    if executor and jobs:
        raise ConfigError("--jobs is for this machine and --executor for another; leave one of them out.")
    _check(paths, output, alert or [])
    with executor_named(executor) as pool, _kept_on_interrupt() as count_run, _progress(count_run) as progress:
        table = diagnose_all(
            paths,
            output,
            scheduler_jobs=scheduler_jobs,
            executor=pool,
            jobs=jobs,
            timezone=timezone,
            time_limit_s=time_limit,
            memory_limit_mib=memory_limit,
            price_per_gpu_h=price,
            resume=resume,
            progress=progress,
        )
    divided = table.divided_by(by)
    shown = divided.anonymous() if anonymize else divided
    written = _write(shown, output, alert or [])
    _say(shown, named=not anonymize)
    for file in written:
        say(f"  {file}")
    if table.cluster is not None and not anonymize:
        for note in table.cluster.notes:
            say(note, err=True)
    if not table.counted:
        raise typer.Exit(2)


def _check(paths: list[str], output: Path, alerts: list[Path]) -> None:
    """Raise ConfigError or InputNotFound for what is given, before anything is read."""
    from gpudiag.fleets.alerts import check_alert

    check_output(output)
    for file in alerts:
        check_alert(file)
        if file.resolve().parent == output.resolve():
            raise ConfigError(f"{file}: lies in the output, which has names of its own; choose another folder.")
    for path in paths:
        if not path.strip():
            raise ConfigError("a path is empty.")
        if "://" not in path and not Path(path).exists():
            raise InputNotFound.run(shown_input(path))


def _say(table: FleetTable, *, named: bool) -> None:
    """The headline, and what was left out, the first runs by name."""
    from gpudiag.report.fleet.sections import passed_over

    head = table.document.headline
    for sentence in dict.fromkeys((head.verdict, *head.sentences)):
        if sentence:
            say(sentence)
    left = [row for row in table.rows if row.status == "not diagnosed"]
    if left:
        say(f"Not diagnosed: {plural(len(left), 'run')}{'; the report says why' if named else ''}.")
    for row in left[:5] if named else []:
        say(f"{row.run}: {row.reason}", err=True)
    if table.unread:
        say(passed_over(table.unread))


def _write(table: FleetTable, output: Path, alerts: list[Path]) -> list[Path]:
    """The reports, and what other tools send; before anything is said, which a reader may cut off (``| head``)."""
    from gpudiag.fleets.alerts import write_alert

    return [*(table.save(output / name) for name in REPORTS), *(write_alert(table, file) for file in alerts)]


@contextmanager
def _kept_on_interrupt() -> Iterator[Callable[[int, int], None]]:
    """Say how many runs are kept, and how to go on, where Ctrl-C or a signal ends it."""
    held = [0, 0]

    def count_run(done: int, of: int) -> None:
        held[:] = done, of

    try:
        yield count_run
    except KeyboardInterrupt:
        done, of = held
        kept = f"{done:,} of {plural(of, 'run')} are kept" if of else "No run had ended yet"
        say(f"{kept}. To go on: gpudiag {shlex.join(one for one in sys.argv[1:] if one != '--again')}", err=True)
        raise


@contextmanager
def _progress(count_run: Callable[[int, int], None]) -> Iterator[Any]:
    """A bar with rate and time left on a terminal; nothing in a pipe. ``count_run`` is told of each run as well."""
    console = console_for(stderr=True)
    if not console.is_terminal:
        yield lambda done, of, ended: None if isinstance(ended, str) else count_run(done, of)
        return
    began, first = time.monotonic(), -1
    with console.status("looking for runs ...") as status:

        def said(done: int, of: int, ended: Any) -> None:
            nonlocal first
            if isinstance(ended, str):
                status.update(f"{done:,} of {plural(of, 'host')} read ...")
                return
            count_run(done, of)
            first = done - 1 if first < 0 else first
            rate = (done - first) / max(time.monotonic() - began, 1e-9)
            left = duration((of - done) / rate)
            status.update(f"{done:,} of {plural(of, 'run')}, {count(round(60 * rate))} a minute, {left} left ...")

        yield said
