"""``gpudiag convert``: logs of GPU metrics as one Parquet file, or as a data set by day and host."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpudiag.cli._console import console_for, reading
from gpudiag.cli._options import ReadingOptions
from gpudiag.errors import ConfigError


def convert(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="logs of GPU metrics, of one run")],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="NAME.parquet, or a folder with --partition")
    ],
    layout: ReadingOptions,
    partition: Annotated[
        bool, typer.Option("--partition", help="a data set by day and host, of a cluster: see gpudiag fleet")
    ] = False,
    host: Annotated[str, typer.Option("--host", help="with --partition: the host, where the logs name none")] = "",
) -> None:
    """Write logs of GPU metrics, read as one, into a Parquet file that is read as an input like any other.

    With --partition they are added to the Parquet data set day=YYYY-MM-DD/host=NAME (days in UTC) in a folder.
    """
    from gpudiag.export.convert import convert as convert_files
    from gpudiag.export.partitioned import convert_partitioned
    from gpudiag.report.format import plural

    if host and not partition:
        raise ConfigError("--host goes with --partition: one file has no place for it.")
    with reading(console_for(stderr=True)) as progress:
        if partition:
            data = convert_partitioned(files, output, host=host, **layout.arguments(), progress=progress)
        else:
            data = convert_files(files, output, **layout.arguments(), progress=progress)
    typer.echo(f"{output}: {plural(data.rows, 'row')} of {plural(len(data.gpus), 'GPU')} written.")
