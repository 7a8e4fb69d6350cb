"""The commands as one typer application: all of them, or the one that is called.

Every start would pay for the options of all others: importing and building them takes a twentieth of a second.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from gpudiag import __version__
from gpudiag.cli._console import say
from gpudiag.cli._options import taking_groups
from gpudiag.cli._stderr import Commands
from gpudiag.cli._welcome import welcome

COMMANDS = (
    "report",
    "diagnose",
    "inspect",
    "compare",
    "fleet",
    "history",
    "plans",
    "whatif",
    "trace",
    "convert",
    "export",
    "record",
    "slurm-template",
    "lab",
    "mcp",
    "skill",
    "demo",
    "bug-report",
)
"""Of each the function, of the same name, in the file of that name: their order is that of the help."""
GROUPS = ("rules", "notebooks", "fetch")
"""Of each ``<name>_app``, in the file of that name."""


def application(called: str = "") -> typer.Typer:
    """The application with the command of this name alone; with every one where there is none of this name, since then
    all are listed, or the nearest names are.
    """
    app = typer.Typer(
        name="gpudiag",
        cls=Commands,
        help="Where did my GPU time go, what is wrong, what should I change, and what will that give me?",
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(_root)
    for name in (called,) if called in (*COMMANDS, *GROUPS) else (*COMMANDS, *GROUPS):
        module = import_module(f"gpudiag.cli.{name.replace('-', '_')}")
        if name in GROUPS:
            app.add_typer(getattr(module, f"{name}_app"), name=name)
        else:
            app.command()(taking_groups(getattr(module, name.replace("-", "_"))))
    return app


def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="print the version and exit")] = False,
) -> None:
    if version:
        typer.echo(f"gpudiag {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        if lines := welcome(Path()):
            say(*lines)
        else:
            typer.echo(context.get_help())
