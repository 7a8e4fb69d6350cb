"""``gpudiag history``: is the newest of many runs of the same training worse than the earlier ones?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpudiag.cli._console import show
from gpudiag.cli._options import choice
from gpudiag.errors import ConfigError, InputError
from gpudiag.report.format import safe


def history(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="folder with reports of the same training below it")],
    format_: Annotated[str, choice("--format", "text", "json")] = "text",
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="also a report: .html, .md or .json"),
    ] = None,
    fail_on: Annotated[
        str, choice("--fail-on", "regression", "never", help="regression: the newest run is worse than the noise")
    ] = "never",
) -> None:
    """Compare the newest run with the noise of the earlier ones: utilization, GPU time, duration, energy."""
    from gpudiag.fleets.history.history import history as read_history
    from gpudiag.fleets.history.page import save_history
    from gpudiag.plain_data import json_text
    from gpudiag.report.fleet.history import history_text

    if output is not None and output.suffix not in (".html", ".md", ".json"):
        raise ConfigError(f"{output}: a report of a history is .html, .md or .json, by the name of its file.")
    held = read_history(folder)
    if format_ == "json":
        typer.echo(json_text(held), nl=False)
    else:
        show(history_text(held))
    if output is not None:
        save_history(held, output)
        typer.echo(f"  {safe(output)}", err=format_ == "json")
    if fail_on == "regression" and held.perhaps_newer:
        raise InputError(
            f"{held.perhaps_newer[0]} It may be the newest run, which is then not judged; make it again with "
            "gpudiag report, or delete it."
        )
    if fail_on == "regression" and held.regression:
        raise typer.Exit(1)
