"""``gpudiag`` alone in a folder with data: what lies there, and the two commands to begin with."""

from __future__ import annotations

from pathlib import Path

MOST_FILES = 100
"""Files that are looked at: this is a hint, and it comes at once."""
MOST_NAMED = 5
WORDS = {"telemetry": "GPU telemetry", "trials": "trials", "artifacts": "a log or results"}


def welcome(folder: Path) -> list[str]:
    """Lines on the inputs that lie in a folder and what to do with them; none where no file is recognised."""
    found = list(_inputs(folder))
    if not found:
        return []
    more = [f"  ... and {len(found) - MOST_NAMED} more"] if len(found) > MOST_NAMED else []
    return [
        "This folder holds data of a run:",
        *(f"  {name}: {WORDS[kind]} ({reader})" for name, kind, reader in found[:MOST_NAMED]),
        *more,
        "",
        "  gpudiag diagnose .   what is wrong, on one screen",
        "  gpudiag report .     the same as a page, in reports/",
        "  gpudiag --help       all commands",
    ]


def _inputs(folder: Path) -> list[tuple[str, str, str]]:
    """(name, kind, reader) of the files that a reader recognises, by name."""
    from gpudiag.errors import InputError
    from gpudiag.readers._io.source import Source
    from gpudiag.readers.identify import identify

    try:
        files = sorted(path for path in folder.iterdir() if path.is_file())
    except OSError:  # a folder that is gone, or may not be listed
        return []
    found: list[tuple[str, str, str]] = []
    for path in files[:MOST_FILES]:
        try:
            claim = identify(Source.open(path))
        except InputError:  # a pipe, or damaged
            continue
        if claim is not None:
            found.append((path.name, claim[0], claim[1].name))
    return found
