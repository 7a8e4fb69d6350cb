"""Run folders in an object store: found by the names of their files, and each copied to this disk for its diagnosis."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import PurePosixPath

from gpudiag.errors import InputError
from gpudiag.manifest import MANIFEST
from gpudiag.readers._datasets.cloud import CloudFile, fetch, is_cloud, is_path, listed_below
from gpudiag.readers._io.url import shown
from gpudiag.report.format import quantity
from gpudiag.scratch import scratch

MOST_MIB = 1024
"""Of one run, which lies on the disk while it is read (without a source: logs and studies are far smaller)."""
WEIGHTS = frozenset(
    (".bin", ".ckpt", ".h5", ".npy", ".npz", ".onnx", ".pkl", ".pt", ".pth", ".safetensors", ".tar", ".whl", ".zip")
)
"""Suffixes of files that are never fetched: weights, arrays and archives."""
DOCUMENTS = frozenset((".html", ".ipynb", ".jpg", ".jpeg", ".md", ".pdf", ".png", ".py", ".rst", ".sh", ".svg"))
"""Suffixes of files that do not make a folder a run."""


@dataclass(frozen=True)
class CloudRun:
    """``parts``: folders from the URL that was given to the run; ``fingerprint`` changes with any of its files."""

    parts: tuple[str, ...]
    source: str
    fingerprint: str


def cloud_runs(url: str, unread: list[str]) -> Iterator[CloudRun]:
    """The runs below an URL: the first folders on the way down that hold data, or a run.toml where there is one below.

    Only names are looked at, since reading every file of a bucket to see what it is would fetch the bucket. ``unread``
    gets folders with data that stand above one with a run.toml. Raises InputError where it cannot be listed.
    """
    top = url.rstrip("/")
    files = [one for one in listed_below(top) if is_path(one.name)]
    stated = {PurePosixPath(one.name).parent for one in files if PurePosixPath(one.name).name == MANIFEST}
    above = {folder for one in stated for folder in one.parents}
    held = {PurePosixPath(one.name).parent for one in files if _is_data(one.name)} | stated
    runs: list[PurePosixPath] = []
    for folder in sorted(held, key=lambda one: (len(one.parts), one.parts)):
        if {folder, *folder.parents}.intersection(runs):
            continue
        if folder in above and folder not in stated:
            unread.append(shown(f"{top}/{folder}").removesuffix("/."))
        else:
            runs.append(folder)
    inside: dict[PurePosixPath, list[CloudFile]] = {run: [] for run in runs}
    for one in files:
        path = PurePosixPath(one.name)
        run = next((folder for folder in path.parents if folder in inside), None)
        if run is not None:
            inside[run].append(one)
    for run in sorted(inside, key=lambda one: one.parts):
        yield CloudRun(run.parts, f"{top}/{run}".removesuffix("/."), _fingerprint(inside[run]))


@contextmanager
def on_disk(source: str) -> Iterator[str]:
    """The place itself, or a copy of a folder in an object store that is gone afterwards: its files without weights.

    Raises InputError where it holds more than MOST_MIB, or cannot be read.
    """
    if not is_cloud(source):
        yield source
        return
    wanted = [one for one in listed_below(source) if PurePosixPath(one.name).suffix.lower() not in WEIGHTS]
    size_mib = sum(one.size_bytes for one in wanted) / 2**20
    if size_mib > MOST_MIB:
        raise InputError(
            f"{shown(source)}: holds {quantity(size_mib, 'MiB')} without weights, and at most "
            f"{quantity(MOST_MIB, 'MiB')} of a run are fetched; copy it to a disk and give the folder."
        )
    with scratch() as beside:
        folder = beside / (source.rstrip("/").rpartition("/")[2] or "run")
        folder.mkdir()
        fetch(source, [one.name for one in wanted], folder, MOST_MIB * 2**20)
        yield str(folder)


def _is_data(name: str) -> bool:
    """Whether a file may be somebody's data: neither hidden nor a document, a picture or weights."""
    path = PurePosixPath(name)
    hidden = any(part.startswith((".", "_")) for part in path.parts)
    document = path.suffix.lower() in WEIGHTS | DOCUMENTS or path.stem.upper() in ("README", "LICENSE")
    return not hidden and not document


def _fingerprint(files: list[CloudFile]) -> str:
    digest = sha256()
    for one in files:
        digest.update(f"{one.name}\0{one.size_bytes}\0{one.changed_ns}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()
