"""``gpudiag export``: a run and its diagnosis for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpudiag.cli._arguments import check_output, folder_name, one_of
from gpudiag.cli._console import console_for, spinner
from gpudiag.cli._faults import telling
from gpudiag.cli._options import Inputs, OnFault, ReadingOptions, RunPath


def export(
    run: RunPath = None,
    to: Annotated[str, typer.Option("--to", help="perfetto, parquet, csv or openmetrics")] = "perfetto",
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="PATH", help="default: ./NAME...")] = None,
    *,
    inputs: Inputs,
    layout: ReadingOptions,
    fault: OnFault,
) -> None:
    """Write a trace for ui.perfetto.dev, the tables as Parquet or CSV, or OpenMetrics of the diagnosis."""
    from gpudiag.diagnosis import diagnose
    from gpudiag.export import FORMATS
    from gpudiag.export import export as write
    from gpudiag.load import load_run

    one_of("--to", to, tuple(FORMATS))
    given = inputs.checked(run, layout)
    with telling(debug=fault.debug, strict=fault.strict):
        with spinner(console_for(stderr=True), "reading the run"):
            diagnosis = diagnose(load_run(**given))
        path = output or Path(folder_name(diagnosis.run.info.name) + FORMATS[to][0])
        check_output(path.parent)
        for written in write(diagnosis, to, path):
            typer.echo(written)
