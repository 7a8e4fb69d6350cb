"""``gpudiag lab``: JupyterLab on a copy of the notebooks."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from gpudiag.cli._arguments import check_output, existing_run
from gpudiag.errors import ConfigError
from gpudiag.interpreter import module_command


def lab(
    run: Annotated[
        str | None, typer.Argument(metavar="RUN", help="folder, run.toml, file or URL", show_default=False)
    ] = None,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIR", help="where the copies are kept, and found again next time")
    ] = Path("gpudiag-lab"),
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="-- ARGS", help="for jupyter lab itself, such as --no-browser")
    ] = None,
) -> None:
    """Start JupyterLab on copies of the notebooks, with RUN filled in.

    Without RUN, on the copies made before, and at first on simulated runs. Ctrl-C twice ends it.
    """
    given = list(arguments or [])
    if run is not None and run.startswith("-"):  # after a bare --, the first argument is JupyterLab's too
        given, run = [run, *given], None
    if find_spec("jupyterlab") is None:
        raise ConfigError("JupyterLab is not installed; install it with: pip install 'gpudiag[lab]'")
    check_output(output)
    chosen = existing_run(run)
    from gpudiag.report._notebook.copies import copy_all, kept_about_others

    made = copy_all(output, chosen)
    for copied in made:
        typer.echo(copied)
    others = kept_about_others(output, chosen) if chosen is not None else []
    if others:
        names = ", ".join(path.name for path in others)
        typer.echo(f"Kept as they are, with another run_path: {names}. Fresh copies: -o DIR", err=True)
    first = output / ("tour.ipynb" if chosen is None else "run_report.ipynb")
    start = [f"--LabApp.default_url=/lab/tree/{first.name}"] if first in made else []
    typer.echo(f"Starting JupyterLab in {output}; Ctrl-C twice ends it.")
    sys.stdout.flush()
    command = module_command("jupyterlab", [f"--notebook-dir={output.resolve()}", *start, *given])
    os.execv(sys.executable, command)  # JupyterLab takes this process's place: signals and exit code are its own
