"""``gpudiag slurm-template``: a job script of Slurm that records the nodes of a training and reports on it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpudiag.cli._arguments import check_output


def slurm_template(
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="DIR", help="write it there, with prolog and epilogs for your own script"
        ),
    ] = None,
) -> None:
    """Print a job script of Slurm that records every node of a training and writes the report at its end."""
    from gpudiag.schedulers.slurm.scripts import script_text, write_scripts

    if output is None:
        typer.echo(script_text(), nl=False)
        return
    check_output(output)
    for path in write_scripts(output):
        typer.echo(path)
