"""Which folders of a tree are runs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from gpudiag.manifest import MANIFEST
from gpudiag.report.batch import data_in, is_ours, is_run

LEFT_ALONE = ("__pycache__", "node_modules")


def _holds_files(inside: list[Path]) -> bool:
    """Whether there are files that may be somebody's data: neither hidden nor our own."""
    return any(not _is_hidden(one) and _is_file(one) and not is_ours(one) for one in inside)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def run_folders(folder: Path, leave_out: Path | None, others: list[Path]) -> Iterator[Path]:
    """Folders down to the first that is a run; ``others`` gets those with files that are none, and data beside folders
    with a run.toml each. A link to a folder is followed only if it leads out of the tree.
    """
    met: set[str] = set()
    pending = [folder]
    while pending:
        here = pending.pop()
        real = os.path.realpath(here)
        if real in met or (leave_out is not None and Path(real).is_relative_to(leave_out)):
            continue
        met.add(real)
        try:
            inside = sorted(here.iterdir())
        except OSError:
            yield here  # a run that nobody can read: reading it says why
            continue
        several = _holds_runs(here, inside)
        if not several and _is_run(here):
            yield here
        else:
            if several:
                others += data_in(here)
            elif _holds_files(inside):
                others.append(here)
            pending += [one for one in reversed(inside) if not _is_hidden(one) and _may_be_entered(one)]


def _holds_runs(folder: Path, inside: list[Path]) -> bool:
    """Whether several folders in it have a run.toml and it has none: then it is no run, whatever lies beside them."""
    if _is_file(folder / MANIFEST):
        return False
    return sum(_is_file(one / MANIFEST) for one in inside if not _is_hidden(one)) > 1


def _is_hidden(path: Path) -> bool:
    return path.name.startswith(".") or path.name in LEFT_ALONE


def owner(path: Path) -> str:
    try:
        return path.owner()
    except (KeyError, OSError, NotImplementedError):  # a number without a name; Windows
        return ""


def _is_run(folder: Path) -> bool:
    try:
        return is_run(folder)
    except OSError:  # it may be listed and not entered: reading it says so
        return True


def _may_be_entered(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False
