"""The runs below some paths: folders with data, and the studies of a storage."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from gpudiag.errors import ConfigError, InputError, InputNotFound
from gpudiag.fleets.parts import Part
from gpudiag.load import locate
from gpudiag.manifest import MANIFEST, read_manifest
from gpudiag.readers._io.url import is_url, shown
from gpudiag.report.batch import is_run

HOST = "host="
"""How a folder of a partitioned data set names the host (``day=2026-03-01/host=node7``)."""
LEFT_ALONE = ("__pycache__", "node_modules")


@dataclass(frozen=True)
class FoundRun:
    """A run that is to be diagnosed.

    ``name`` is unique within the fleet: the path below the one that was given. ``source`` is what
    :func:`gpudiag.load_run` reads, ``part`` what of it is this run. ``project`` and ``host`` are what the folders above
    it are called, '' where they say nothing. ``fingerprint`` changes with the content of its files; '' where only
    reading could tell (a URL).
    """

    name: str
    source: str
    part: Part | None = None
    project: str = ""
    host: str = ""
    user: str = ""
    fingerprint: str = ""


def part_of(run: FoundRun, part: Part) -> FoundRun:
    """One of the runs in one place."""
    whole = run.name if run.part is None else run.name.removesuffix(f"::{run.part.name}")
    return replace(run, name=f"{whole}::{part.name}", part=part)


def runs_below(paths: Iterable[str | Path], leave_out: Path | None = None) -> list[FoundRun]:
    """Every run in these folders, files and URLs, each once, in the order of their names within each path.

    A folder is a run if it has a run.toml or a file that a reader recognises, or if a reader takes it whole; else the
    folders in it are looked at. What lies below ``leave_out`` (the output) is none.

    Raises InputNotFound where a path does not exist, ConfigError where nothing is given.
    """
    given = list(paths)
    if not given:
        raise ConfigError("a fleet needs at least one folder, file or storage URL.")
    found: dict[str, FoundRun] = {}
    names: set[str] = set()
    counted: Counter[str] = Counter()
    for path in given:
        for run in _below(path, leave_out and leave_out.resolve()):
            place = run.source if is_url(run.source) else str(Path(run.source).resolve())
            if place in found:
                continue
            name = next(n for n in _candidates(run, counted) if n not in names)
            names.add(name)
            found[place] = replace(run, name=name)
    return list(found.values())


def _candidates(run: FoundRun, counted: Counter[str]) -> Iterator[str]:
    """Names in the order of liking; ``counted``: how often each was asked for."""
    yield run.name
    if not is_url(run.source):
        yield f"{as_text(Path(run.source).resolve().parents[run.name.count('/')].name)}/{run.name}"
    while True:
        counted[run.name] += 1
        yield f"{run.name} ({counted[run.name] + 1})"


def as_text(name: str) -> str:
    """A name of a file that has a form in UTF-8: bytes that have none are escaped."""
    return name.encode("utf-8", "backslashreplace").decode()


def _below(path: str | Path, leave_out: Path | None) -> Iterator[FoundRun]:
    if is_url(path):
        yield FoundRun(shown(path), str(path))
        return
    top = Path(path)
    if not top.exists():
        raise InputNotFound.run(top)
    for run in [top] if top.is_file() else _runs(top, leave_out):
        below = run.relative_to(top)
        parts = below.parts
        yield FoundRun(
            name=as_text(below.as_posix() if parts else top.resolve().name),
            source=str(run),
            project=as_text(parts[0] if len(parts) > 1 else (top if parts else top.parent).resolve().name),
            host=as_text(next((part.removeprefix(HOST) for part in run.parts if part.startswith(HOST)), "")),
            user=_owner(run),
            fingerprint=_fingerprint(run),
        )


def _runs(folder: Path, leave_out: Path | None) -> Iterator[Path]:
    """Folders down to the first that is a run. A link to a folder is followed only if it leads out of the tree."""
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
        if _is_run(here):
            yield here
        else:
            pending += [one for one in reversed(inside) if not _is_hidden(one) and _may_be_entered(one)]


def _is_hidden(path: Path) -> bool:
    return path.name.startswith(".") or path.name in LEFT_ALONE


def _owner(path: Path) -> str:
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


def _fingerprint(run: Path) -> str:
    """Name, size and time of change of every file of the run, of those that its run.toml names elsewhere too, as one
    digest; '' where an input is a URL.
    """
    digest = sha256()
    for path in _files(run):
        try:
            held = os.stat(path)  # noqa: PTH116 - a fleet has 100,000 files
        except OSError:
            continue
        digest.update(f"{path}\0{held.st_size}\0{held.st_mtime_ns}\n".encode("utf-8", "surrogateescape"))
    manifest = run / MANIFEST
    if manifest.is_file():
        try:
            inputs = [locate(name, run) for name in read_manifest(manifest).inputs]
        except (ConfigError, InputError, OSError):  # reading the run says so
            inputs = []
        for one in inputs:
            if is_url(one):
                return ""
            for path in _files(Path(one)):
                with suppress(OSError):
                    held = os.stat(path)  # noqa: PTH116
                    digest.update(f"{path}\0{held.st_size}\0{held.st_mtime_ns}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _files(run: Path) -> Iterator[str]:
    """Files of a folder, through links as well; a file with what SQLite writes beside it."""
    if not run.is_dir():
        yield from (f"{run}{suffix}" for suffix in ("", "-wal", "-journal"))
        return
    met: set[str] = set()
    for folder, folders, files in os.walk(run, followlinks=True):
        real = os.path.realpath(folder)
        if real in met:
            folders.clear()
            continue
        met.add(real)
        folders.sort()
        yield from (f"{folder}/{name}" for name in sorted(files))
