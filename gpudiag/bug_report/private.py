"""What of a run is private: where its inputs lie, and the names of people, machines and studies."""

from __future__ import annotations

import getpass
import platform
import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pandas as pd

from gpudiag._load.sources import is_whole
from gpudiag._run.tables import InputRecord
from gpudiag.bug_report.masked import Masked
from gpudiag.errors import GpudiagError
from gpudiag.manifest import MANIFEST, Manifest, read_manifest
from gpudiag.readers._io.url import HIDDEN, is_url, scheme_of, shown
from gpudiag.run import Run

FOLDER = "RUN"
"""What stands for the folder of the run."""
_PEOPLE = ("host", "hostname", "user")
_NAMES = ("study", "worker", "project")
"""Columns of tables whose cells are names."""


def masked_for(inputs: Sequence[str], records: Sequence[InputRecord], run: Run | None) -> Masked:
    """What takes the names of these inputs, and of the run that they are where it could be read, out of messages."""
    people, names = set(_of_this_machine()), {study.name for record in records for study in record.studies}
    for manifest in _manifests(inputs):
        people |= {manifest.host, manifest.user}
        names |= {manifest.name or "", manifest.project, *manifest.notes}
        names |= {text for text in manifest.settings.model_dump().values() if isinstance(text, str)}
    if run is not None:
        people |= _cells(run, _PEOPLE)
        names |= {run.info.name, *_cells(run, _NAMES), *_columns(run)}
    people |= {name.partition(".")[0] for name in people}  # a host without its domain
    return Masked(_labels(inputs, records), people, names)


def folders_of(inputs: Iterable[str]) -> list[Path]:
    """The folders that are a run; of a run.toml the one that it lies in."""
    return [Path(one) if Path(one).is_dir() else Path(one).parent for one in inputs if is_whole(one)]


def label(path: str, folders: Iterable[Path]) -> str:
    """How an input is called: by its place within the run's folder, its own name, or the kind of its storage."""
    if is_url(path):
        return f"{scheme_of(path)}://{HIDDEN}"
    for folder in folders:
        if Path(path) == folder:
            return FOLDER
        if Path(path).is_relative_to(folder):
            return Path(path).relative_to(folder).as_posix()
    return Path(path).name


def _labels(inputs: Sequence[str], records: Iterable[InputRecord]) -> dict[str, str]:
    """The label of each path and URL, by how messages may spell it."""
    folders = folders_of(inputs)
    labels: dict[str, str] = {}
    manifests = (folder / MANIFEST for folder in folders)
    for path in (*(record.path for record in records), *map(str, (*folders, *manifests)), *inputs):
        spelled = [path, shown(path), label(path, folders)]
        if not is_url(path):
            spelled += [str(Path(path)), str(Path(path).absolute()), str(Path(path).resolve())]
        labels |= dict.fromkeys(spelled, label(path, folders))
    return labels


def _manifests(inputs: Iterable[str]) -> Iterator[Manifest]:
    """Of each run.toml, also where the run itself cannot be read."""
    for folder in folders_of(inputs):
        with suppress(GpudiagError, OSError):
            yield read_manifest(folder / MANIFEST)


def _of_this_machine() -> Iterator[str]:
    yield from (platform.node(), socket.gethostname())
    with suppress(RuntimeError):  # nobody's home
        yield Path.home().name
    with suppress(OSError, KeyError, ImportError):  # a user id without a name
        yield getpass.getuser()


def _tables(run: Run) -> Iterator[pd.DataFrame]:
    yield from (run.gpu, run.gpus, run.host, run.processes, run.trials, run.studies, run.events, run.steps)


def _cells(run: Run, columns: Sequence[str]) -> set[str]:
    cells = {cell for table in _tables(run) for name in columns if name in table for cell in table[name].unique()}
    return {cell for cell in cells if isinstance(cell, str)}


def _columns(run: Run) -> set[str]:
    """Names of parameters and attributes."""
    return {name.partition(".")[2] for table in _tables(run) for name in map(str, table.columns) if "." in name}
