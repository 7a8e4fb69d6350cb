"""``gpudiag plans``: how often predictions came true, over the plans that were compared with what happened."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpudiag.cli._console import show
from gpudiag.cli._options import choice


def plans(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="folder with plans and comparisons below it")],
    format_: Annotated[str, choice("--format", "text", "json")] = "text",
) -> None:
    """Say how often the predictions of plans came true, by remedy and by measure."""
    from gpudiag.comparison.calibration import calibration
    from gpudiag.plain_data import json_text
    from gpudiag.report.comparison import calibration_text

    held = calibration(folder)
    if format_ == "json":
        typer.echo(json_text(held), nl=False)
    else:
        show(calibration_text(held))
