"""``gpudiag whatif``: what other numbers of trials at once, or another pruner, would bring."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from gpudiag.cli._console import console_for, show, spinner
from gpudiag.cli._faults import telling
from gpudiag.cli._options import Inputs, OnFault, ReadingOptions, RunPath, choice


def whatif(
    run: RunPath = None,
    parallel: Annotated[
        str, typer.Option("--parallel", metavar="K,K,...", help="numbers of trials at once, e.g. 2,3,4,6")
    ] = "",
    pruner: Annotated[
        str, typer.Option("--pruner", help="pruner to replay, e.g. 'patient(hyperband(min_resource=3), patience=4)'")
    ] = "",
    restart_min: Annotated[
        float | None,
        typer.Option("--restart-min", help="minutes without any trial that a change (default 10) or a crash costs"),
    ] = None,
    format_: Annotated[str, choice("--format", "text", "json", "md")] = "text",
    *,
    all_: Annotated[
        bool, typer.Option("--all", help="also models, start-up, batch, and memory by number and by parameters")
    ] = False,
    inputs: Inputs,
    layout: ReadingOptions,
    fault: OnFault,
) -> None:
    """Forecast what other settings would bring, with intervals and a back-test."""
    from gpudiag.forecast.parallelism.what_if import what_if
    from gpudiag.load import load_run

    given = inputs.checked(run, layout)
    with spinner(console_for(stderr=True), "reading the run"):
        loaded = load_run(**given)
    with telling(debug=fault.debug, strict=fault.strict), _steps() as progress:
        forecast = what_if(loaded, parallel or None, pruner=pruner or None, restart_min=restart_min, progress=progress)
    if format_ == "json":
        typer.echo(forecast.to_json())
    elif format_ == "md":
        typer.echo(forecast.to_markdown())
    else:
        from gpudiag.report._render.shown import blocks_of
        from gpudiag.report.kinds.forecast import screen

        show(blocks_of(forecast) if all_ else screen(forecast))


@contextmanager
def _steps() -> Iterator[Callable[[str], None]]:
    """What to call with each step before it is taken: a terminal shows a bar, a pipe stays quiet; Ctrl-C ends it."""
    console = console_for(stderr=True)
    if not console.is_terminal:
        yield lambda what: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("forecast", total=None)

        def show(what: str) -> None:
            bar.update(task, **({"description": what} if what else {"advance": 0}))

        yield show
