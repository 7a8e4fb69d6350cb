"""``gpudiag demo``: a simulated run whose truth is known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpudiag.errors import ConfigError, nearest


def demo(
    case: Annotated[str, typer.Option("--case", help="name of the simulated case")] = "hpo-aggressive-pruning",
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="DIR", help="default: ./NAME")] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, max=10_000, help="draws another run, which begins SEED days later")
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="list the cases and exit")] = False,
) -> None:
    """Write a simulated run whose truth is known, to try gpudiag on."""
    from gpudiag.simulation.cases import CASES, write_case

    if list_:
        typer.echo("\n".join(CASES))
        return
    if case not in CASES:
        raise ConfigError(f"there is no case '{case}'; {nearest(case, CASES)}")
    folder = output or Path(case)
    write_case(case, folder, seed)
    typer.echo(f"{folder}: written. Next: gpudiag report {folder}")
