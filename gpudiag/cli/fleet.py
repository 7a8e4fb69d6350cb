"""``gpudiag fleet``: every run below some paths, in one table and one report."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from gpudiag.cli._arguments import check_output
from gpudiag.cli._console import console_for, say
from gpudiag.cli._options import Timezone, choice
from gpudiag.errors import ConfigError, InputNotFound
from gpudiag.readers._io.url import shown as shown_input
from gpudiag.report.format import count, duration, plural

GROUPS = ("user", "project", "host", "gpu-model", "week", "month")


def fleet(
    paths: Annotated[
        list[str],
        typer.Argument(metavar="PATH...", help="folders that are or hold runs, files, storage URLs"),
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIR", help="gets the table, the report and a diagnosis a run")
    ] = Path("reports/fleet"),
    jobs: Annotated[int, typer.Option("--jobs", metavar="N", help="runs at once; 0: one a processor")] = 0,
    executor: Annotated[
        str, typer.Option("--executor", metavar="WHERE", help="dask:local or dask:ADDRESS of a scheduler")
    ] = "",
    by: Annotated[str, choice("--by", *GROUPS, help="what the report divides the fleet by: " + ", ".join(GROUPS))] = (
        "project"
    ),
    anonymize: Annotated[
        bool, typer.Option("--anonymize", help="users, hosts, projects and runs as numbers in the report")
    ] = False,
    alert: Annotated[
        list[Path] | None,
        typer.Option("--alert", metavar="FILE", help="also a few lines to send: .json (webhook), .eml or .prom"),
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="diagnose runs again that have not changed")] = False,
    timezone: Timezone = None,
    time_limit: Annotated[float, typer.Option("--time-limit", metavar="S", help="seconds that a run may take")] = 300.0,
    memory_limit: Annotated[
        float, typer.Option("--memory-limit", metavar="MIB", help="memory that a run may take")
    ] = 4096.0,
) -> None:
    """Diagnose every run below some paths: one table, one report, causes ranked by what they cost.

    A second call diagnoses only what has changed. A run that is broken, hangs or grows costs itself alone.
    """
    from gpudiag.fleets.alerts import check_alert, write_alert
    from gpudiag.fleets.executors import executor_named
    from gpudiag.fleets.fleet import fleet as diagnose_all

    check_output(output)
    for file in alert or []:
        check_alert(file)
        if file.resolve().parent == output.resolve():
            raise ConfigError(f"{file}: lies in the output, which has names of its own; choose another folder.")
    for path in paths:
        if not path.strip():
            raise ConfigError("a path is empty.")
        if "://" not in path and not Path(path).exists():
            raise InputNotFound.run(shown_input(path))
    with executor_named(executor) as pool, _progress() as progress:
        table = diagnose_all(
            paths,
            output,
            executor=pool,
            jobs=jobs,
            timezone=timezone,
            time_limit_s=time_limit,
            memory_limit_mib=memory_limit,
            resume=not again,
            progress=progress,
        )
    shown = table.divided_by(by)
    shown = shown.anonymous() if anonymize else shown
    for sentence in shown.document.headline.sentences:
        if sentence:
            say(sentence)
    left = [row for row in shown.rows if row.status == "not diagnosed"]
    if left:
        say(f"Not diagnosed: {plural(len(left), 'run')}; the report says why.")
    for row in left[:5] if not anonymize else []:
        say(f"{row.run}: {row.reason}", err=True)
    for name in ("fleet.html", "fleet.md", "fleet.json"):
        say(f"  {shown.save(output / name)}")
    for file in alert or []:
        say(f"  {write_alert(shown, file)}")
    if not table.counted:
        raise typer.Exit(2)


@contextmanager
def _progress() -> Iterator[Any]:
    """A bar with rate and time left on a terminal; nothing in a pipe."""
    console = console_for(stderr=True)
    if not console.is_terminal:
        yield lambda done, of, row: None
        return
    began, first = time.monotonic(), -1
    with console.status("looking for runs ...") as status:

        def ended(done: int, of: int, row: Any) -> None:
            nonlocal first
            first = done - 1 if first < 0 else first
            rate = (done - first) / max(time.monotonic() - began, 1e-9)
            left = duration((of - done) / rate)
            status.update(f"{done:,} of {plural(of, 'run')}, {count(round(60 * rate))} a minute, {left} left ...")

        yield ended
