"""``gpudiag inspect``: how each input was read, and nothing more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gpudiag.cli._console import console_for, reading, say
from gpudiag.cli._options import ReadingOptions, Study, choice
from gpudiag.readers._io.url import shown

if TYPE_CHECKING:
    from gpudiag.run import InputRecord


def inspect(
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="files, folders or storage URLs")],
    format_: Annotated[str, choice("--format", "text", "json")] = "text",
    study: Study = None,
    *,
    layout: ReadingOptions,
) -> None:
    """Say how each input was read, and nothing more."""
    from gpudiag._load.inspection import inspect as inspect_paths
    from gpudiag._load.inspection import to_json
    from gpudiag.plain_data import json_text
    from gpudiag.report._render.lines import folded
    from gpudiag.report.inspection import lines

    with reading(console_for(stderr=True)) as progress:  # takes standard output on a terminal: printed is afterwards
        entries = list(inspect_paths(paths, study=study, **layout.arguments(), progress=progress))
    if format_ == "json":
        typer.echo(json_text([to_json(entry) for entry in entries]), nl=False)
    elif not entries:
        empty = f"{', '.join(map(shown, paths))}: no file to read; what gpudiag wrote and hidden files are passed over."
        say(f"gpudiag: {empty}", err=True)
    else:
        width = console_for().width
        say(*(part for entry in entries for line in lines(entry) for part in folded(line, width, 4).split("\n")))
    if not any(entry.error is None for entry in entries) or _named_failed(paths, entries):
        raise typer.Exit(2)


def _named_failed(paths: list[str], entries: list[InputRecord]) -> bool:
    """True if a path that was named itself, not found in a folder, could not be read."""
    named = set(map(shown, paths))
    return any(entry.error is not None and entry.path in named for entry in entries)
