"""``gpudiag trace``: where the time of a profiled step went."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpudiag.cli._console import console_for, reading, show
from gpudiag.cli._options import choice
from gpudiag.readers._io.url import shown


def trace(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="trace of torch.profiler (JSON, .gz), or nsys export (SQLite)")
    ],
    format_: Annotated[str, choice("--format", "text", "json")] = "text",
) -> None:
    """Say what the GPU did in the profiled steps of a trace, and what the host did while it was idle."""
    from gpudiag.readers._traces.trace import read_trace
    from gpudiag.report._render.shown import blocks_of

    with reading(console_for(stderr=True)) as progress:
        progress(shown(file))
        held = read_trace(file)
        made = held.breakdown
    if format_ == "json":
        typer.echo(made.to_json(), nl=False)
    else:
        show(blocks_of(made))
