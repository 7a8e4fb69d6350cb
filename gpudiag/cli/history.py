"""``gpudiag history``: is the newest of many runs of the same training worse than the earlier ones?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpudiag.cli._console import show
from gpudiag.cli._options import choice


def history(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="folder with reports of the same training below it")],
    format_: Annotated[str, choice("--format", "text", "json")] = "text",
    fail_on: Annotated[
        str, choice("--fail-on", "regression", "never", help="regression: the newest run is worse than the noise")
    ] = "never",
) -> None:
    """Compare the newest run with the noise of the earlier ones: utilization, GPU time, duration, energy."""
    from gpudiag.fleets.history import FEWEST
    from gpudiag.fleets.history import history as read_history
    from gpudiag.plain_data import json_text
    from gpudiag.report.fleet.history import history_text

    held = read_history(folder)
    if format_ == "json":
        typer.echo(json_text(held), nl=False)
    else:
        show(history_text(held, FEWEST))
    if fail_on == "regression" and held.regression:
        raise typer.Exit(1)
