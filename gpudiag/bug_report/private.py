"""What of a run is private: where its inputs lie, and the names of people, machines and studies."""

from __future__ import annotations

import getpass
import os
import platform
import re
import socket
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pandas as pd

from gpudiag._load.sources import is_whole
from gpudiag._run.tables import InputRecord
from gpudiag.bug_report.masked import Masked
from gpudiag.manifest import MANIFEST
from gpudiag.plain_data import JsonObject
from gpudiag.readers._io.url import HIDDEN, is_address, is_url, scheme_of, shown
from gpudiag.run import Run
from gpudiag.schema import TABLES

FOLDER = "RUN"
"""What stands for the folder of the run."""
_PEOPLE = ("host", "hostname", "user")
_NAMES = ("study", "worker", "project")
"""Columns of tables whose cells are names."""


def masked_for(
    places: Places, inputs: Sequence[str], records: Sequence[InputRecord], run: Run | None, study: str | None
) -> Masked:
    """What takes the names of these inputs, and of the run that they are where it could be read, out of messages."""
    people, names = set(_of_this_machine()), {one.name for record in records for one in record.studies}
    names |= {study} if study else set()
    names |= places.names()
    for stated in _stated(inputs):
        people |= {text for key in ("host", "user") for text in _texts(stated.get(key))}
        names |= set(_texts(stated))
    if run is not None:
        people |= _cells(run, _PEOPLE)
        names |= {run.info.name, *_cells(run, _NAMES), *_columns(run)}
    people |= {name.partition(".")[0] for name in people}  # a host without its domain
    return Masked(places.labels(), people, names)


def folders_of(inputs: Iterable[str]) -> list[Path]:
    """The folders that are a run; of a run.toml the one that it lies in."""
    return [Path(one) if Path(one).is_dir() else Path(one).parent for one in inputs if is_whole(one)]


class Places:
    """How inputs are called: by their place within the run's folder, its folders as numbers.

    Args:
        inputs: as they were given.
        records: of each input that was read or met; the folders are numbered as they come there.
    """

    def __init__(self, inputs: Sequence[str], records: Iterable[InputRecord]) -> None:
        self._folders = folders_of(inputs)
        self._numbers: dict[Path, str] = {}
        self._met = [*(record.path for record in records), *inputs]
        for path in self._met:
            self.label(path)

    def label(self, path: str) -> str:
        """The label of a path, its own name, or the kind of its storage."""
        if is_address(path):
            return f"{path.partition(':')[0]}:{HIDDEN}"
        if is_url(path):
            return f"{scheme_of(path)}://{HIDDEN}"
        for folder in self._folders:
            if os.path.normpath(path) == os.path.normpath(folder):
                return FOLDER
            place = Path(os.path.normpath(path))
            if place.is_relative_to(os.path.normpath(folder)):
                *above, last = _beginnings(place.relative_to(os.path.normpath(folder)))
                numbers = [self._number(folder / one) for one in above]
                return "/".join([*numbers, self._number(folder / last) if place.is_dir() else last.name])
        return HIDDEN if Path(path).is_dir() else Path(path).name

    def labels(self) -> dict[str, str]:
        """The label of each path and URL, by how messages may spell it."""
        labels: dict[str, str] = {}
        manifests = (folder / MANIFEST for folder in self._folders)
        for path in (*self._met, *map(str, (*self._numbers, *self._folders, *manifests))):
            spelled = [path, shown(path), self.label(path)]
            if not is_url(path):
                spelled += [str(Path(path)), str(Path(path).absolute()), str(Path(path).resolve())]
                within = [folder for folder in self._folders if Path(path) != folder]
                spelled += [Path(path).relative_to(at).as_posix() for at in within if Path(path).is_relative_to(at)]
            labels |= dict.fromkeys(spelled, self.label(path))
        return labels

    def names(self) -> set[str]:
        """The names of the folders."""
        return {folder.name for folder in self._numbers}

    def _number(self, folder: Path) -> str:
        return self._numbers.setdefault(folder, str(len(self._numbers) + 1))


def _beginnings(path: Path) -> list[Path]:
    """``a`` and ``a/b`` of ``a/b``."""
    return [path, *path.parents][-2::-1]


def _stated(inputs: Iterable[str]) -> Iterator[JsonObject]:
    """Of each run.toml what it holds, also where gpudiag refuses it."""
    for folder in folders_of(inputs):
        with suppress(OSError, UnicodeDecodeError):
            text = (folder / MANIFEST).read_text(encoding="utf-8")
            try:
                yield tomllib.loads(text)
            except (tomllib.TOMLDecodeError, RecursionError):
                yield {"quoted": [one[0] or one[1] for one in re.findall(r"\"([^\"\n]*)\"|'([^'\n]*)'", text)]}


def _texts(value: object) -> Iterator[str]:
    """Every text in what a run.toml holds."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)


def _of_this_machine() -> Iterator[str]:
    yield from (platform.node(), socket.gethostname())
    with suppress(RuntimeError):  # nobody's home
        yield Path.home().name
    with suppress(OSError, KeyError, ImportError):  # a user id without a name
        yield getpass.getuser()


def _tables(run: Run) -> Iterator[pd.DataFrame]:
    yield from (getattr(run, name) for name in TABLES)


def _cells(run: Run, columns: Sequence[str]) -> set[str]:
    cells = {cell for table in _tables(run) for name in columns if name in table for cell in table[name].unique()}
    return {cell for cell in cells if isinstance(cell, str)}


def _columns(run: Run) -> set[str]:
    """Names of parameters and attributes."""
    return {name.partition(".")[2] for table in _tables(run) for name in map(str, table.columns) if "." in name}
