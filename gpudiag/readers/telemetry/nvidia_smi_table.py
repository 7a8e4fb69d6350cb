"""Plain ``nvidia-smi`` in a loop (``nvidia-smi -l 1``): tables, each below a date line of whole seconds."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd

from gpudiag.readers._io.lines import is_screen, numbered_lines, screen_refused
from gpudiag.readers._io.paths import as_text
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._shape import smi_table, ticks
from gpudiag.readers._shape.finish import finish, nothing_usable
from gpudiag.readers._shape.identity import GpuIdentity, resolve, short_bus_id
from gpudiag.readers._shape.moments import Moment, offset_of, read_moment
from gpudiag.readers.base import Reader, ReadOptions, Telemetry
from gpudiag.readers.telemetry.smi_messages import failure

NAME = "nvidia-smi table"

NOT_TABLE = "line between tables"
TORN = "torn table row"
ERROR_CELL = "ERR! in a cell"

_PREFIX = re.compile(r"\s*(?P<host>[^\s|+:]+)(?: out| err)?: ?(?P<rest>.*)")
"""``srun -l`` writes its task, some launchers the host, before each line."""

_OTHER_TOOLS = {
    "dmon": re.compile(r"# ?(?:date +)?(?:time +)?gpu +(?!pid)", re.IGNORECASE),
    "pmon": re.compile(r"# ?(?:date +)?(?:time +)?gpu +pid", re.IGNORECASE),
    "-q": re.compile("=+NVSMI LOG=+"),
    "--query-gpu": re.compile(r".*\butilization\.gpu \[%\]"),
}
_SOON = timedelta(minutes=1)
"""A table comes so soon below the date that a script writes for it."""
_NO_GPU = -1
_METRICS = tuple(name for name in smi_table.SmiReadings.__dataclass_fields__ if name not in ("errors", "lost"))


def recognises(source: Source) -> bool:
    return smi_table.is_table(source) or ("NVIDIA-SMI" in source.text and is_screen(source))


def read(source: Source, options: ReadOptions) -> Telemetry:
    if is_screen(source):
        raise screen_refused(source, "nvidia-smi", "nvidia-smi -l 1 > gpu.log")
    log = ProblemLog()
    writers: dict[str, _Writer] = {}
    for number, line in numbered_lines(source, log):
        if line and not line.isspace():
            host, text = _host(line)
            if not text and host not in writers:
                host, text = "", line
            if text:
                writers.setdefault(host, _Writer(log)).take(number, text)
    writers = {host: writer for host, writer in writers.items() if writer.snapshots}
    if not writers:
        raise nothing_usable(source, NAME, log)
    return _tables(source, options, log, writers)


def _host(line: str) -> tuple[str, str]:
    """Who wrote the line, where a launcher says so, and the line from its frame on."""
    if line[0] in "|+":
        return "", line
    match = _PREFIX.match(line)
    if match and (match["rest"].strip()[:1] in ("", "|", "+") or read_moment(match["rest"])):
        return match["host"], match["rest"].strip()
    return "", line.strip()


@dataclass(frozen=True)
class _Snapshot:
    """One table: the moment it states and the driver."""

    moment: Moment | None
    driver: str = ""


@dataclass
class _Writer:
    """Follows the lines of one writer through table after table.

    Rows are kept as (number of the snapshot, line, number of the GPU, values ...).
    """

    log: ProblemLog
    snapshots: list[_Snapshot] = field(default_factory=list)
    gpu: list[tuple[Any, ...]] = field(default_factory=list)
    processes: list[tuple[Any, ...]] = field(default_factory=list)
    events: list[tuple[Any, ...]] = field(default_factory=list)
    gpus: dict[tuple[str, str], GpuIdentity] = field(default_factory=dict)
    other_tools: set[str] = field(default_factory=set)
    _moment: Moment | None = None
    _offset: timedelta | None = None
    _part: str = ""
    _head: smi_table.GpuHeading | None = None
    _numbers: dict[tuple[str, str], int] = field(default_factory=dict)
    _at_index: dict[str, int] = field(default_factory=dict)
    _bad: set[int] = field(default_factory=set)

    def take(self, number: int, line: str) -> None:
        """Use one line; what is no part of a table is counted."""
        if line[0] == "|":
            self._framed(number, line)
        elif line[0] == "+":
            self._drop_head(number)
        elif (moment := read_moment(line)) and moment.day and moment.clock:
            self._moment, self._part = self._in_zone(moment), ""
        elif text := failure(line):
            self._fail(number, text, line)
        else:
            self.log.add(NOT_TABLE, line=number, example=line)
            self.other_tools.update(tool for tool, form in _OTHER_TOOLS.items() if form.match(line))

    def _in_zone(self, moment: Moment) -> Moment:
        """The moment with the zone of a ``date`` line above it, as of a script, where a table states none."""
        above = self._moment
        if above is not None and above.utc and not moment.zone:
            offset = offset_of(above.zone)
            if offset is not None and abs(above.timestamp + offset - moment.timestamp) <= _SOON:
                self._offset = offset
        if moment.zone or self._offset is None:
            return moment
        return replace(moment, timestamp=moment.timestamp - self._offset, utc=True)

    def _framed(self, number: int, line: str) -> None:
        if line.startswith("| NVIDIA-SMI"):
            self.snapshots.append(_Snapshot(self._moment, smi_table.driver(line)))
            self._moment, self._part, self._head = None, "", None
            self._bad.discard(_NO_GPU)
        elif line.startswith("| GPU  Name"):
            self._part = "gpus"
        elif line.startswith(("| MIG devices", "| GPU  GI  CI  MIG")):
            self._part = "mig"
        elif line.startswith("| Processes:"):
            self._part = "processes"
        elif self._part == "gpus" and self.snapshots:
            self._gpu_row(number, line)
        elif self._part == "processes" and self.snapshots:
            self._process_row(number, line)
        elif not self._part and not self.snapshots:
            self.log.add(NOT_TABLE, line=number, example=line)

    def _gpu_row(self, number: int, line: str) -> None:
        if head := smi_table.head_row(line):
            self._head = head
        elif self._head is not None:
            values = smi_table.value_row(line)
            if values is None:
                self.log.add(TORN, line=number, example=line, lost=True)
            else:
                self._sample(number, self._head, values, line)
            self._head = None
        elif line.count("MiB") == 2:
            self.log.add(TORN, line=number, example=line, lost=True)

    def _drop_head(self, number: int) -> None:
        if self._head is not None:
            self.log.add(TORN, line=number - 1, example=self._head.name, lost=True)
            self._head = None

    def _sample(self, number: int, head: smi_table.GpuHeading, values: smi_table.SmiReadings, line: str) -> None:
        key = (head.gpu, head.bus_id)
        gpu = self._at_index[head.gpu] = self._numbers.setdefault(key, len(self._numbers))
        self.gpus[key] = GpuIdentity(head.gpu, bus_id=head.bus_id, name=head.name, driver=self.snapshots[-1].driver)
        self.log.add(ERROR_CELL, values.errors, line=number, example=line)
        if values.lost:
            self._event(number, "gpu_lost", gpu, line)
            return
        self._bad.discard(gpu)
        metrics = tuple(getattr(values, name) for name in _METRICS)
        self.gpu.append((len(self.snapshots) - 1, number, gpu, *metrics, head.ecc_uncorrected))

    def _process_row(self, number: int, line: str) -> None:
        row = smi_table.process_row(line)
        if row is None:
            return
        index, pid, name, memory = row
        if index in self._at_index:
            self.processes.append((len(self.snapshots) - 1, number, self._at_index[index], pid, name, memory))

    def _fail(self, number: int, text: str, line: str) -> None:
        """An error line in place of a table is a snapshot of its own, so that the event has its moment."""
        lost = smi_table.LOST.search(line)
        at = (n for n, identity in enumerate(self.gpus.values()) if short_bus_id(identity.bus_id) in line.lower())
        self.snapshots.append(_Snapshot(self._moment))
        self._event(number, "gpu_lost" if lost else "driver_failed", next(at, _NO_GPU), line if lost else text)
        self._moment = None

    def _event(self, number: int, kind: str, gpu: int, line: str) -> None:
        """One event where a fault begins; the same fault in the tables that follow is the same event."""
        if gpu not in self._bad:
            self.events.append((len(self.snapshots) - 1, number, gpu, kind, " ".join(line.split())))
            self._bad.add(gpu)


def _tables(source: Source, options: ReadOptions, log: ProblemLog, writers: dict[str, _Writer]) -> Telemetry:
    """All snapshots of all writers as tables."""
    timestamps, notes = _timestamps(list(writers.values()), options)
    known, labels, doubts = _gpus(writers)
    first = np.cumsum([0] + [len(writer.snapshots) for writer in writers.values()])

    def frame(part: str, *columns: str) -> pd.DataFrame:
        rows = [
            (row[0] + start, row[1], labels[host].get(row[2]), *row[3:])
            for (host, writer), start in zip(writers.items(), first, strict=False)
            for row in getattr(writer, part)
        ]
        table = pd.DataFrame(rows, columns=["time", "line", "gpu", *columns])
        table["time"] = timestamps[table["time"].to_numpy(dtype="int64")].reset_index(drop=True)
        return table

    return finish(
        source,
        NAME,
        options,
        log,
        gpu=frame("gpu", *_METRICS, "ecc_uncorrected"),
        gpus=known,
        processes=frame("processes", "pid", "name", "mem_used_mib"),
        events=frame("events", "kind", "detail").assign(path=as_text(source.path.name)),
        notes=notes + doubts + _tools_note(writers),
    )


def _gpus(writers: dict[str, _Writer]) -> tuple[pd.DataFrame | None, dict[str, dict[int, str]], list[str]]:
    """Table ``gpus``, the id of each writer's GPUs by number, and notes. Ids name one of several writers."""
    rows, labels, notes = [], {}, []
    for host, writer in writers.items():
        identities = list(writer.gpus.values())
        ids, doubts = resolve(identities)
        labels[host] = {n: f"{host}/{text}" if len(writers) > 1 else text for n, text in enumerate(ids)}
        notes += doubts
        rows += [
            {"gpu": labels[host][n], "bus_id": identity.bus_id, "name": identity.name, "driver": identity.driver}
            for n, identity in enumerate(identities)
        ]
    return (pd.DataFrame(rows).drop_duplicates("gpu", keep="last") if rows else None), labels, notes


def _timestamps(writers: list[_Writer], options: ReadOptions) -> tuple[pd.Series, list[str]]:
    """The time of every snapshot, writer after writer, and what was assumed."""
    moments = [snapshot.moment for writer in writers for snapshot in writer.snapshots]
    if any(moments):
        extra = [ticks.spread([snapshot.moment for snapshot in writer.snapshots]) for writer in writers]
        return ticks.moment_column(moments, options.timezone) + np.concatenate(extra), ticks.zone_note(moments)
    order = np.concatenate([np.arange(len(writer.snapshots)) for writer in writers])
    return pd.Series(ticks.relative_time(order, options.period_s)), [ticks.relative_note(options.period_s)]


def _tools_note(writers: dict[str, _Writer]) -> list[str]:
    """A transcript of several commands: only its tables have a date of their own."""
    others = sorted({tool for writer in writers.values() for tool in writer.other_tools})
    if not others:
        return []
    return [f"It also holds output of nvidia-smi {', '.join(others)}, which was not read: give each a file of its own."]


READER = Reader(NAME, recognises, read)
