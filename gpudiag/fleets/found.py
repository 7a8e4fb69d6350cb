"""The runs below some paths: folders with data, and the studies of a storage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from gpudiag.errors import ConfigError, InputError, InputNotFound
from gpudiag.fleets.cloud_runs import cloud_runs
from gpudiag.fleets.fingerprint import fingerprint
from gpudiag.fleets.parts import Part
from gpudiag.fleets.run_folders import owner, run_folders
from gpudiag.readers._datasets.cloud import is_cloud
from gpudiag.readers._io.url import is_url, scheme_of, shown

HOST = "host="
"""How a folder of a partitioned data set names the host (``day=2026-03-01/host=node7``)."""


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


@dataclass(frozen=True)
class FoundRuns:
    """The runs below some paths, and folders that hold files of which none is read and no run below them."""

    runs: tuple[FoundRun, ...]
    unread: tuple[str, ...]


def part_of(run: FoundRun, part: Part) -> FoundRun:
    """One of the runs in one place. Studies of a storage at the top of what was given are a project of their own, which
    is called like their folder.
    """
    whole = run.name if run.part is None else run.name.removesuffix(f"::{run.part.name}")
    at_top = part.study and "/" not in whole and not is_url(run.source)
    project = as_text(_folder(Path(run.source)).resolve().name) if at_top else run.project
    return replace(run, name=f"{whole}::{part.name}", part=part, project=project)


def _folder(place: Path) -> Path:
    return place if place.is_dir() else place.parent


def runs_below(paths: Iterable[str | Path], leave_out: Path | None = None) -> FoundRuns:
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
    unread: list[str] = []
    for path in given:
        for run in _below(path, leave_out and leave_out.resolve(), unread):
            place = run.source if is_url(run.source) else str(Path(run.source).resolve())
            if place in found:
                continue
            name = next(n for n in _candidates(run, counted) if n not in names)
            names.add(name)
            found[place] = replace(run, name=name)
    return FoundRuns(tuple(found.values()), tuple(dict.fromkeys(unread)))


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


def _below(path: str | Path, leave_out: Path | None, unread: list[str]) -> Iterator[FoundRun]:
    """The runs below one path; ``unread`` gets the folders beside them whose files nobody reads."""
    if isinstance(path, str) and is_cloud(path):
        yield from _in_cloud(path, unread)
        return
    if is_url(path):
        if scheme_of(str(path)) in ("http", "https"):
            raise InputError(
                f"{shown(path)}: a web address has no list of its files; give a folder, s3://bucket/folder or "
                "gs://bucket/folder, or download it first."
            )
        yield FoundRun(shown(path), str(path))
        return
    top, runs = Path(path), list[Path]()
    if not top.exists():
        raise InputNotFound.run(top)
    others: list[Path] = []
    for run in [top] if top.is_file() else run_folders(top, leave_out, others):
        runs.append(run)
        below = run.relative_to(top)
        parts = below.parts
        yield FoundRun(
            name=as_text(below.as_posix() if parts else top.resolve().name),
            source=str(run),
            project=as_text(parts[0] if len(parts) > 1 else (top if parts else top.parent).resolve().name),
            host=as_text(next((part.removeprefix(HOST) for part in run.parts if part.startswith(HOST)), "")),
            user=owner(run),
            fingerprint=fingerprint(run),
        )
    above = {folder for run in runs for folder in run.parents}
    unread += [_named(one, top) for one in others if one not in above]


def _in_cloud(url: str, unread: list[str]) -> Iterator[FoundRun]:
    """The runs below an URL of an object store, called as on a disk."""
    top = as_text(url.rstrip("/").rpartition("/")[2])
    for one in cloud_runs(url, unread):
        parts = [as_text(part) for part in one.parts]
        yield FoundRun(
            name="/".join(parts) or top,
            source=one.source,
            project=parts[0] if len(parts) > 1 else top if parts else "",
            host=next((part.removeprefix(HOST) for part in parts if part.startswith(HOST)), ""),
            fingerprint=one.fingerprint,
        )


def _named(folder: Path, top: Path) -> str:
    """The folder as the name of a run in it would be."""
    return as_text(folder.relative_to(top).as_posix() if folder != top else top.resolve().name)
