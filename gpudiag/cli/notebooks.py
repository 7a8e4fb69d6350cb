"""``gpudiag notebooks``: the notebooks that come with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpudiag.cli._arguments import assignments
from gpudiag.cli._console import console_for
from gpudiag.cli._options import Parameters

notebooks_app = typer.Typer(help="The notebooks that come with the package.", no_args_is_help=True)


@notebooks_app.command("list")
def notebooks_list() -> None:
    """List every notebook with its parameters."""
    from gpudiag.report._notebook.copies import list_notebooks
    from gpudiag.report._render.lines import folded

    for notebook in list_notebooks():
        typer.echo(f"{notebook.name:<16}  {notebook.title}")
        if notebook.parameters:
            typer.echo(folded(f"{'':<16}  -p {', '.join(notebook.parameters)}", console_for().width, 3))


@notebooks_app.command("copy")
def notebooks_copy(
    name: Annotated[str, typer.Argument(metavar="NAME", help="as listed, e.g. run_report")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="PATH", help="file or folder")] = Path(),
    parameter: Parameters = None,
) -> None:
    """Copy a notebook, with parameters filled in, to change it or to run it with papermill."""
    from gpudiag.report._notebook.copies import copy_notebook

    typer.echo(copy_notebook(name, output, assignments(parameter or [])))
