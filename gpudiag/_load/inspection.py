"""How each input would be read, and nothing more: `gpudiag inspect`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields
from datetime import tzinfo
from pathlib import Path
from typing import Any

from gpudiag._load.folder import walk
from gpudiag._load.intake import try_take
from gpudiag._run.tables import TIME, InputKind, InputRecord, StudyRecord
from gpudiag.manifest import MANIFEST, read_manifest
from gpudiag.plain_data import plain
from gpudiag.readers._io.problems import Problem
from gpudiag.readers._io.url import is_url, shown
from gpudiag.readers.base import ReadOptions
from gpudiag.timezones import parse_zone


def inspect(
    paths: Iterable[str | Path],
    *,
    timezone: str | tzinfo | None = None,
    study: str | None = None,
    columns: tuple[str, ...] = (),
    period_s: float | None = None,
    progress: Callable[[str], None] = lambda path: None,
) -> Iterator[InputRecord]:
    """One record per input, in order; a folder that is no input itself gives one per file below it.

    A folder's run.toml says how its files are to be read, where the arguments do not.

    An input that cannot be read gives a record of kind ``unknown`` with ``error`` set. ``progress`` is told each
    path before it is read.
    """
    given = ReadOptions(parse_zone(timezone), columns, period_s, study)
    for path in paths:
        if is_url(path) or not Path(path).is_dir():
            progress(shown(path))
            yield try_take(path, given).record
        else:
            options = given if timezone else _as_its_manifest_says(Path(path), given)
            for source, _ in walk(Path(path)):
                if source.path.name != MANIFEST:
                    progress(str(source.path))
                    yield try_take(source, options).record


def _as_its_manifest_says(folder: Path, given: ReadOptions) -> ReadOptions:
    if not (folder / MANIFEST).is_file():
        return given
    manifest = read_manifest(folder / MANIFEST)
    return ReadOptions(
        parse_zone(manifest.timezone),
        given.columns or manifest.columns,
        given.period_s or manifest.period_s,
        given.study,
    )


@dataclass(frozen=True)
class Inspected:
    """How one input was read: an entry of the list that `gpudiag inspect --format json` prints.

    Times are ISO 8601 in UTC; what is unknown is null or empty. ``error`` says why an input was not read.
    """

    path: str
    kind: InputKind
    reader: str
    rows: int
    gpus: tuple[str, ...]
    columns: tuple[str, ...]
    start: str | None = field(metadata=TIME)
    end: str | None = field(metadata=TIME)
    median_period_s: float | None
    studies: tuple[StudyRecord, ...]
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]
    error: str | None


def to_json(record: InputRecord) -> dict[str, Any]:
    """One entry of the list that `gpudiag inspect --format json` prints (schema gpudiag.inspect/1)."""
    entry: dict[str, Any] = plain(Inspected(*(getattr(record, one.name) for one in fields(Inspected))))
    return entry
