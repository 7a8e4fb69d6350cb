"""``gpudiag skill``: what teaches a coding assistant to use gpudiag."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpudiag.cli._arguments import check_output


def skill(
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="DIR", help="write DIR/gpudiag/SKILL.md, e.g. -o .claude/skills"),
    ] = None,
) -> None:
    """Print the skill that teaches a coding assistant to diagnose a run, or write it where the assistant looks."""
    from gpudiag.agents.skill import skill_text, write_skill

    if output is None:
        typer.echo(skill_text(), nl=False)
        return
    check_output(output)
    typer.echo(write_skill(output))
