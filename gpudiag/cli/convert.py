"""``gpudiag convert``: logs of GPU metrics as one Parquet file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpudiag.cli._console import console_for, reading
from gpudiag.cli._options import ReadingOptions


def convert(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="logs of GPU metrics, of one run")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="NAME.parquet")],
    layout: ReadingOptions,
) -> None:
    """Write logs of GPU metrics, read as one, into a Parquet file that is read as an input like any other."""
    from gpudiag.export.convert import convert as convert_files
    from gpudiag.report.format import plural

    with reading(console_for(stderr=True)) as progress:
        data = convert_files(files, output, **layout.arguments(), progress=progress)
    typer.echo(f"{output}: {plural(data.rows, 'row')} of {plural(len(data.gpus), 'GPU')} written.")
