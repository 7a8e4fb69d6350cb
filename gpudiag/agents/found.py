"""The runs in the folders, the one that changed last first."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from gpudiag.agents.folders import NEVER_READ, Folders
from gpudiag.errors import InputError
from gpudiag.manifest import MANIFEST
from gpudiag.report.batch import is_run

MOST_FOLDERS = 5000
"""Folders that are looked into; who has more names a folder among them."""


@dataclass(frozen=True)
class FoundRun:
    """A folder that is a run, and when a file directly in it changed last."""

    path: Path
    changed: datetime


def found_runs(folders: Folders, below: Path | None = None) -> list[FoundRun]:
    """The runs below the folders, or below one folder of them; links to folders are not followed.

    Raises InputError where there are more folders than are looked into.
    """
    found: dict[str, FoundRun] = {}
    for top in folders.given if below is None else (below,):
        for run in _runs(folders, top):
            found.setdefault(os.path.realpath(run), FoundRun(run, _changed(run)))
    return sorted(found.values(), key=lambda one: (-one.changed.timestamp(), str(one.path)))


def _runs(folders: Folders, top: Path) -> Iterator[Path]:
    """As a fleet finds runs: folders down to the first that is one."""
    pending, n = [top], 0
    while pending:
        here = pending.pop()
        n += 1
        if n > MOST_FOLDERS:
            raise InputError(f"{top}: holds more than {MOST_FOLDERS} folders; name one of those in it.")
        try:
            inside = sorted(here.iterdir())
        except OSError:
            continue
        if _is_run(folders, here, inside):
            yield here
            continue
        pending += [
            path
            for path in reversed(inside)
            if not (path.name.startswith(".") or path.name in NEVER_READ) and not _is_link(path) and _is_folder(path)
        ]


def _is_run(folders: Folders, folder: Path, inside: list[Path]) -> bool:
    """Whether it is a run. Where a link in it leads out, only a run.toml tells: telling otherwise would read there."""
    if (folder / MANIFEST) in inside:
        return True
    try:
        return all(map(folders.hold, filter(_is_link, inside))) and is_run(folder)
    except OSError:
        return False


def _is_link(path: Path) -> bool:
    return os.path.islink(path)  # noqa: PTH114 - Path.is_symlink raises where a folder may not be entered


def _is_folder(path: Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112 - likewise


def _changed(run: Path) -> datetime:
    times = [run.lstat().st_mtime, *(path.lstat().st_mtime for path in run.iterdir() if not path.is_dir())]
    return datetime.fromtimestamp(max(times), UTC).replace(microsecond=0)
