"""How each input would be read, and nothing more: `gpudiag inspect`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from datetime import tzinfo
from pathlib import Path

from gpudiag._load.folder import walk
from gpudiag._load.intake import Unopened, try_take
from gpudiag._run.tables import InputKind, InputRecord, StudyRecord
from gpudiag.errors import InputError
from gpudiag.load import locate
from gpudiag.manifest import MANIFEST, Manifest, read_manifest
from gpudiag.plain_data import TIME, JsonObject, plain_object
from gpudiag.readers._io.problems import Problem
from gpudiag.readers._io.source import Source
from gpudiag.readers._io.url import is_address, is_url, scheme_of, shown, sqlite_path
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

    A folder's run.toml says how its files are to be read, where the arguments do not; inputs that it names elsewhere,
    such as a storage URL, come after those of the folder.

    An input that cannot be read gives a record of kind ``unknown`` with ``error`` set. ``progress`` is told each
    path before it is read.
    """
    given = ReadOptions(parse_zone(timezone), columns, period_s, study)
    for path in paths:
        if is_address(path):
            progress(shown(path))
            yield from _of_tracker(path, given)
        elif is_url(path) or not Path(path).is_dir():
            progress(shown(path))
            yield try_take(path, given).record
        else:
            folder = Path(path)
            manifest = read_manifest(folder / MANIFEST) if (folder / MANIFEST).is_file() else Manifest()
            zone = given.timezone if timezone else parse_zone(manifest.timezone)
            period = given.period_s or manifest.period_s
            options = ReadOptions(zone, given.columns or manifest.columns, period, given.study)
            for one in _inputs_of(folder, manifest):
                progress(shown(one.path if isinstance(one, Source | Unopened) else one))
                yield try_take(one, options).record


def _of_tracker(address: str, given: ReadOptions) -> list[InputRecord]:
    from gpudiag._load.tracked.intakes import take_tracked

    try:
        tracked = take_tracked(address, given)
    except InputError as error:
        return [InputRecord(address, "unknown", error=str(error))]
    first, *others = (intake.record for intake in tracked.intakes)
    return [replace(first, notes=(*first.notes, *tracked.stated["notes"])), *others]


def _inputs_of(folder: Path, manifest: Manifest) -> Iterator[Source | Unopened | str | Path]:
    """The files of a folder, then what its run.toml names and the folder does not hold."""
    met = set()
    for source, _ in walk(folder):
        met.add(source.path.resolve())
        if source.path.name != MANIFEST:
            yield source
    for name in manifest.inputs:
        place = locate(name, folder)
        if _file_of(place) not in met:
            yield place


def _file_of(place: str | Path) -> Path | None:
    """The file at a path or an SQLite URL; None for what is no file."""
    if isinstance(place, str) and scheme_of(place) != "sqlite":
        return None
    try:
        return (sqlite_path(place) if isinstance(place, str) else place).resolve()
    except (InputError, ValueError, OSError):  # in memory; no name that a file could have
        return None


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


def to_json(record: InputRecord) -> JsonObject:
    """One entry of the list that `gpudiag inspect --format json` prints (schema gpudiag.inspect/1)."""
    return plain_object(Inspected(*(getattr(record, one.name) for one in fields(Inspected))))
