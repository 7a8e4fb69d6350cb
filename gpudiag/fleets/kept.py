"""The folder of a fleet: rows as they come, a diagnosis.json a run, and the table as a Parquet data set."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpudiag import __version__
from gpudiag._load.own_outputs import is_own
from gpudiag.errors import ConfigError, InputError
from gpudiag.files import write
from gpudiag.fleets.cluster.kept import read_cluster
from gpudiag.fleets.found import FoundRun, part_of
from gpudiag.fleets.parts import part_from
from gpudiag.fleets.row import from_plain, to_plain
from gpudiag.fleets.worker import Outcome
from gpudiag.plain_data import plain
from gpudiag.report._notebook.runner import DOCUMENT
from gpudiag.report.fleet.document import RunRow
from gpudiag.scratch import scratch

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    import pandas as pd

    from gpudiag.fleets.table import FleetTable

JOURNAL = "fleet.jsonl"
TABLE = "table"
RUNS = "runs"
MARK = {"schema": "gpudiag.fleet-journal/1"}
"""First line of a journal: nothing else of that name is ours."""


@dataclass(frozen=True)
class AboutFleet:
    """What the last whole fleet knew beside its rows: folders in which there is nothing to read, and the price of runs
    that state none. A line of the journal, before the ``n_lines`` of its runs; what a later fleet adds comes after.
    """

    unread: tuple[str, ...] = ()
    price_per_gpu_h: float | None = None
    n_lines: int = 0


_PART = re.compile(r"runs-\d+\.parquet")


class FleetFolder:
    """Where a fleet is kept. Every row is on the disk before the next run is asked for, so that an interrupted fleet
    goes on where it was.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._journal = folder / JOURNAL
        if self._journal.exists() and not _is_ours(self._journal):
            raise ConfigError(f"{self._journal}: was not written by gpudiag; choose another output.")
        if not self._journal.exists() and folder.is_dir() and any(folder.iterdir()):
            raise ConfigError(f"{folder}: is not empty and holds no fleet; choose another output.")
        foreign = [one for one in (folder / TABLE).rglob("*") if one.is_file() and not _PART.fullmatch(one.name)]
        if foreign:
            raise ConfigError(f"{foreign[0]}: was not written by gpudiag; move it or choose another output.")

    def kept(self, runs: Iterable[FoundRun], options: Mapping[str, Any]) -> dict[str, Outcome]:
        """By name, outcomes of earlier calls for runs that have not changed since, read with the same options; the
        studies of a storage are among them.
        """
        held = self._lines()
        out: dict[str, Outcome] = {}
        pending = list(runs)
        while pending:
            run = pending.pop()
            line = held.get(run.name)
            if line is None or not run.fingerprint or line["key"] != _key(run, options):
                continue
            outcome = _outcome(run, line)
            if outcome.passing:
                continue
            if outcome.row and outcome.row.status == "diagnosed" and not self.document(run.name).is_file():
                continue
            out[run.name] = outcome
            pending += [part_of(run, part) for part in outcome.parts]
        return out

    def in_order(self, runs: Iterable[FoundRun]) -> list[FoundRun]:
        """The runs of the last whole fleet first, in its order: of equal copies the one that counted counts on."""
        n_lines = read_about(self.folder).n_lines if self._journal.is_file() else 0
        before = {name: at for at, name in enumerate([*self._lines()][:n_lines])}
        return sorted(runs, key=lambda run: before.get(run.name, n_lines))

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Make the folder and a journal in it, and keep other fleets out. Raises ConfigError where one is at work."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self._journal.exists():
            write(self._journal, json.dumps(MARK) + "\n")
        with self._journal.open("rb") as held:
            if fcntl is not None:
                try:
                    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise ConfigError(
                        f"{self.folder}: another fleet is being written there; wait for its end."
                    ) from None
                except OSError:  # a disk without locks
                    pass
            yield

    def keep(self, outcome: Outcome, options: Mapping[str, Any]) -> None:
        """Write what became of one run: first its diagnosis.json, then the line that says that it is there."""
        if outcome.document:
            write(self.document(outcome.found.name), outcome.document)
        held = {"parts": plain(outcome.parts)} if outcome.row is None else {"row": to_plain(outcome.row)}
        line = {"name": outcome.found.name, "key": _key(outcome.found, options), **held}
        if outcome.passing:
            line["passing"] = True
        with self._journal.open("a", encoding="utf-8") as journal:
            journal.write(json.dumps(line) + "\n")
            journal.flush()
            os.fsync(journal.fileno())

    def document(self, name: str) -> Path:
        """The diagnosis.json of a run, in a folder that is called like it as far as names of files allow."""
        plain = "".join(one if one.isalnum() or one in "-_." else "-" for one in name)[:60].strip(".")
        return (
            self.folder
            / RUNS
            / f"{plain or 'run'}-{sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
            / DOCUMENT
        )

    def finish(self, table: FleetTable) -> None:
        """Write the table in place of an earlier one."""
        with scratch(self.folder) as aside:
            _write_parquet(table.frame(), aside / TABLE)
            old, new = aside / "old", self.folder / TABLE
            if new.exists():
                new.rename(old)
            (aside / TABLE).rename(new)

    def compact(self, names: Iterable[str], about: AboutFleet) -> None:
        """Leave one line a run in the journal, of these runs alone, one of all of them, and no diagnosis.json of
        others.
        """
        held = self._lines()
        lines = [held[name] for name in names if name in held]
        about = replace(about, n_lines=len(lines))
        write(self._journal, "".join(json.dumps(line) + "\n" for line in (MARK, plain(about), *lines)))
        known = {self.document(line["name"]).parent.name for line in lines}
        for folder in (self.folder / RUNS).glob("*"):
            alone = folder.is_dir() and [one.name for one in folder.iterdir()] == [DOCUMENT]
            if alone and folder.name not in known and is_own(folder / DOCUMENT):
                shutil.rmtree(folder)

    def _lines(self) -> dict[str, dict[str, Any]]:
        """The last whole line of each run."""
        out: dict[str, dict[str, Any]] = {}
        if self._journal.is_file():
            for text in self._journal.read_text(encoding="utf-8", errors="replace").splitlines()[1:]:
                try:
                    line = json.loads(text)
                    _outcome(FoundRun(line["name"], ""), line)
                    out[line["name"]] = line
                except (ValueError, KeyError, TypeError):  # torn by a kill, or of another version
                    continue
        return out


def read_rows(folder: str | Path) -> list[RunRow]:
    """The rows of a fleet's folder. Raises InputError where there is none."""
    none = f"{folder}: holds no fleet; make one with: gpudiag fleet PATH... -o DIR"
    if Path(folder).is_dir() and not (Path(folder) / JOURNAL).exists():
        raise InputError(none)
    held = FleetFolder(Path(folder))
    rows = [from_plain(line["row"]) for line in held._lines().values() if "row" in line]
    if not rows and read_cluster(Path(folder)) is None:
        raise InputError(none)
    return rows


def read_about(folder: str | Path) -> AboutFleet:
    """What the last whole fleet knew beside its rows."""
    lines = (Path(folder) / JOURNAL).read_text(encoding="utf-8", errors="replace").splitlines()
    held = json.loads(lines[1]) if len(lines) > 1 and lines[1].startswith('{"unread"') else {}
    return AboutFleet(tuple(map(str, held.get("unread", ()))), held.get("price_per_gpu_h"), held.get("n_lines", 0))


def _outcome(run: FoundRun, line: Mapping[str, Any]) -> Outcome:
    """What a line of the journal says. Raises KeyError or TypeError where it is of another version."""
    if "parts" in line:
        return Outcome(run, None, parts=tuple(part_from(one) for one in line["parts"]))
    return Outcome(run, from_plain(line["row"]), passing=line.get("passing", False))


def _is_ours(path: Path) -> bool:
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.readline().strip() == json.dumps(MARK)


def _key(run: FoundRun, options: Mapping[str, Any]) -> str:
    """What a row depends on: the files, how they are read and judged, and this version."""
    held = json.dumps([run.source, plain(run.part), run.fingerprint, options, __version__], sort_keys=True, default=str)
    return sha256(held.encode("utf-8", "surrogateescape")).hexdigest()


def _write_parquet(frame: pd.DataFrame, folder: Path) -> None:
    """Hive partitions by the month a run began in and its host."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    frame = frame.assign(host=frame["host"].where(frame["host"] != "", "unknown"))
    table = pa.Table.from_pandas(frame, preserve_index=False)
    if not table.num_rows:
        folder.mkdir()
        return
    parts = ds.partitioning(pa.schema([("month", pa.string()), ("host", pa.string())]), flavor="hive")
    ds.write_dataset(
        table,
        folder,
        format="parquet",
        partitioning=parts,
        basename_template="runs-{i}.parquet",
        max_partitions=table.num_rows + 1,
    )
