"""How each input would be read, and nothing more: `gpudiag inspect`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from datetime import tzinfo
from pathlib import Path

from gpudiag._load.folder import file_of, of_run, walk
from gpudiag._load.folder_of_runs import runs_apart
from gpudiag._load.intake import Intake, Unopened, try_take
from gpudiag._load.sources import is_whole
from gpudiag._run.tables import InputKind, InputRecord, StudyRecord
from gpudiag.errors import InputError
from gpudiag.load import locate
from gpudiag.manifest import MANIFEST, Manifest, manifest_if_any, place_of
from gpudiag.plain_data import TIME, JsonObject, plain_object
from gpudiag.readers._io.problems import Problem
from gpudiag.readers._io.source import Source
from gpudiag.readers._io.url import is_address, shown
from gpudiag.readers._shape.merge_telemetry import taken_for
from gpudiag.readers.base import ReadOptions, Telemetry
from gpudiag.timezones import parse_zone

LEFT_OUT = "Its run.toml leaves it out of the run."
MOST_ROWS = 3_000_000
"""Logs of more are not held in memory together; a diagnosis says which GPUs it takes for one even so."""
MOST_LOGS = 64
"""Nor are more compared, each with each: a diagnosis does where they are of one run."""


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

    A folder's run.toml, given by itself or with the folder, says how its files are to be read, where the arguments do
    not; inputs that it names elsewhere, such as a storage URL, come after those of the folder. What it leaves out of
    the run has a note, and so has the last of a folder's logs where they may be of several machines.

    An input that cannot be read gives a record of kind ``unknown`` with ``error`` set. ``progress`` is told each
    path before it is read.
    """
    given = ReadOptions(parse_zone(timezone), columns, period_s, study)
    for path in paths:
        if is_address(path):
            progress(shown(path))
            yield from _of_tracker(path, given)
        elif not is_whole(path) or not Path(path).exists():
            progress(shown(path))
            yield try_take(path, given).record
        else:
            yield from _of_run(Path(path), given, progress, zone_given=bool(timezone))


def _of_run(run: Path, given: ReadOptions, progress: Callable[[str], None], *, zone_given: bool) -> list[InputRecord]:
    """The inputs of a folder or of a run.toml, which says how they are read where the options do not."""
    folder, file = place_of(run)
    manifest = manifest_if_any(file)
    left = _left_out(folder, manifest)
    zone = given.timezone if zone_given else parse_zone(manifest.timezone)
    period = given.period_s or manifest.period_s
    parallel = manifest.settings.parallel
    options = ReadOptions(zone, given.columns or manifest.columns, period, given.study, parallel=parallel)
    records: list[InputRecord] = []
    logs = _Logs(folder)
    for one in _inputs_of(folder, file, manifest):
        place = one.path if isinstance(one, Source | Unopened) else one
        progress(shown(place))
        intake = try_take(one, options)
        record = intake.record
        if place in left:
            record = replace(record, notes=(*record.notes, LEFT_OUT))
        else:
            logs.add(intake, len(records))
        records.append(record)
    if notes := logs.notes():
        last = records[logs.last]
        records[logs.last] = replace(last, notes=(*last.notes, *notes))
    return records


class _Logs:
    """The logs of GPUs of one folder, as long as they are few enough to be held together."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._logs, self._rows, self.last = folder, list[Intake](), 0, -1

    def add(self, intake: Intake, place: int) -> None:
        if isinstance(intake.data, Telemetry):
            self.last, self._rows = place, self._rows + intake.data.rows
            path = intake.record.path.removeprefix(f"{self._folder}/")
            self._logs.append(replace(intake, record=replace(intake.record, path=path)))
        if self._rows > MOST_ROWS:
            self._logs.clear()

    def notes(self) -> list[str]:
        """What is noted of GPUs that they name alike; nothing where each is of a run of its own."""
        many = self._rows > MOST_ROWS or len(self._logs) > MOST_LOGS
        several = many or any(self._folder.glob(f"*/{MANIFEST}"))
        if several or runs_apart(self._logs, self._folder):
            return []
        logs = [(one.data, one.record.path) for one in self._logs if isinstance(one.data, Telemetry)]
        return taken_for([data for data, _ in logs], [path for _, path in logs])


def _of_tracker(address: str, given: ReadOptions) -> list[InputRecord]:
    from gpudiag._load.tracked.intakes import take_tracked

    try:
        tracked = take_tracked(address, given)
    except InputError as error:
        return [InputRecord(address, "unknown", error=str(error))]
    first, *others = (intake.record for intake in tracked.intakes)
    return [replace(first, notes=(*first.notes, *tracked.stated["notes"])), *others]


def _inputs_of(folder: Path, file: Path, manifest: Manifest) -> Iterator[Source | Unopened | str | Path]:
    """The files of a folder, then what its run.toml names and the folder does not hold."""
    met = set()
    for source, _ in walk(folder):
        met.add(source.path.resolve())
        if source.path.name not in (MANIFEST, file.name):
            yield source
    for name in manifest.inputs:
        place = locate(name, folder)
        if file_of(place) not in met:
            yield place


def _left_out(folder: Path, manifest: Manifest) -> set[Path]:
    """Inputs in a folder that a run of it would not have."""
    if not manifest.inputs:
        return set()
    named = [locate(name, folder) for name in manifest.inputs]
    return {source.path for source, state in of_run(folder, manifest, named) if state == "left out"}


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
