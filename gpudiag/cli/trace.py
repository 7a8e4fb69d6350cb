"""``gpudiag trace``: where the time of a profiled step went."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpudiag.cli._console import console_for, reading, show
from gpudiag.cli._options import choice
from gpudiag.readers._io.url import shown

if TYPE_CHECKING:
    from gpudiag.report._render.blocks import Block


def trace(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="traces of torch.profiler (JSON, .gz), or nsys export (SQLite)"),
    ],
    format_: Annotated[str, choice("--format", "text", "json")] = "text",
) -> None:
    """Say what the GPU did in the profiled steps of a trace, and what the host did while it was idle.

    Several traces are the ranks of one training.
    """
    from gpudiag.readers._traces.trace import read_trace
    from gpudiag.report._render.shown import blocks_of

    with reading(console_for(stderr=True)) as progress:
        made = []
        for file in files if format_ == "json" or len(files) == 1 else ():
            progress(shown(file))
            made.append(read_trace(file).breakdown)
        blocks = _of_ranks(files) if not made else blocks_of(made[0])
    if format_ == "text":
        show(blocks)
    else:
        held = [json.loads(one.to_json()) for one in made]
        typer.echo(json.dumps(held[0] if len(held) == 1 else held, indent=2))


def _of_ranks(files: list[Path]) -> Sequence[Block]:
    """The ranks beside each other, and what was found in them."""
    from gpudiag.diagnosis import diagnose
    from gpudiag.load import load_run
    from gpudiag.report._sections.profiled import profiled
    from gpudiag.report.sections import card, cards

    document = diagnose(load_run(artifacts=files)).document
    return [*profiled(document), *cards(document, card)]
