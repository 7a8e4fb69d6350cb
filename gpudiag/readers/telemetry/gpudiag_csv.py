"""``gpudiag record``: the recorder's own CSV, session after session (see :mod:`gpudiag.readers._io.record_format`)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import polars as pl

from gpudiag.errors import InputError
from gpudiag.readers._io.csv_records import cells_of
from gpudiag.readers._io.paths import as_text
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.record_format import (
    BY_ITSELF,
    COLUMNS,
    CUT,
    GPU_LINE,
    KINDS,
    MAGIC,
    NUMBERS,
    START,
    TEXTS,
    VERSION,
    WITH_COMMAND,
)
from gpudiag.readers._io.source import Source
from gpudiag.readers._shape.finish import finish
from gpudiag.readers._shape.identity import GpuIdentity, resolve
from gpudiag.readers._shape.record_clock import Boot, on_one_clock, said_of
from gpudiag.readers.base import Reader, ReadOptions, Telemetry
from gpudiag.units import FIRST_YEAR, LAST_YEAR

NAME = "gpudiag-record"
_SNIFFED_LINES = 100
_ENDS = tuple(f",{kind}" for kind in KINDS)
_OWN = (*_ENDS, f",{COLUMNS[-1]}")
_NEEDED = {"time", "gpu", "pid", "name", "kind", "detail", "record"}
_WHOLE = ("pid", "throttle_reasons", "pstate", "trial")
_FLOATS = ("mono_s", *(name for name in NUMBERS if name not in _WHOLE))


@dataclass(eq=False)
class Session:
    """What one start of a recorder wrote: ``about`` and ``gpus`` from its header, ``rows`` with typed columns.

    ``rows`` has the columns of the format that the file has, and ``line``, the 1-based line number.
    """

    about: dict[str, Any] = field(default_factory=dict)
    gpus: list[dict[str, Any]] = field(default_factory=list)
    columns: tuple[str, ...] = COLUMNS
    rows: list[pl.DataFrame] = field(default_factory=list)

    @property
    def boot(self) -> Boot:
        return Boot(str(self.about.get("host") or ""), str(self.about.get("boot") or ""))


def recognises(source: Source) -> bool:
    """The head of a session, among lines that are mostly ours: in a file of another format it is one line of many."""
    lines = [line for line in source.lines[:_SNIFFED_LINES] if line.strip()]
    if not any(line.startswith(MAGIC) for line in lines):
        return False
    return 2 * sum(line.startswith((MAGIC, GPU_LINE + "{")) or line.endswith(_OWN) for line in lines) > len(lines)


def read(source: Source, options: ReadOptions) -> Telemetry:
    """Read every session; see :func:`gpudiag.readers.telemetry.read_telemetry`."""
    log = ProblemLog()
    return tables(source, NAME, options, sessions(source, log), log)


def sessions(source: Source, log: ProblemLog) -> list[Session]:
    """The sessions of a file in its order. Raises InputError for a format newer than this reader."""
    found: list[Session] = []
    for block in source.blocks():
        rows: list[tuple[int, str]] = []
        for number, line in enumerate(block.data.decode("utf-8", "replace").split("\n"), block.first_line):
            if line.endswith(_ENDS):
                rows.append((number, line))
            elif line.startswith(MAGIC):
                _take(rows, found, log)
                rows = []
                found.append(Session(_about(line, number, source, log)))
            elif line:
                _other(line, number, found, log)
        _take(rows, found, log)
    return found


def tables(source: Source, name: str, options: ReadOptions, found: Sequence[Session], log: ProblemLog) -> Telemetry:
    """The tables of the schema from all sessions; a GPU is one GPU in all of them, told by its uuid."""
    names, notes = _common_names(found)
    notes += [f"Recorded while running: {command}." for command in _commands(found)]
    frames = frames_of(found)
    notes += said_of(frames, [session.boot for session in found])
    marked = [_marked(frame, session.about) for frame, session in zip(frames, found, strict=True)]
    renamed = [_renamed(frame, own) for frame, own in zip(marked, names, strict=True) if len(frame)]
    whole = pl.concat(renamed, how="diagonal") if renamed else pl.DataFrame(schema={"record": pl.String})
    parts = {kind: _pandas(whole.filter(pl.col("record") == kind)) for kind in KINDS}
    events = parts["event"]
    return finish(
        source,
        name,
        options,
        log,
        gpu=parts["gpu"],
        gpus=_gpus(found, names),
        processes=parts["process"],
        host=parts["host"],
        events=None if events is None else events.assign(path=as_text(source.path.name)),
        notes=notes,
    )


def _about(line: str, number: int, source: Source, log: ProblemLog) -> dict[str, Any]:
    version, _, text = line.removeprefix(MAGIC).partition(" ")
    if version.isdecimal() and len(version) < 9 and int(version) > VERSION:
        raise InputError(
            f"{source.path}, line {number}: written in version {version} of the recorder's format; this gpudiag reads "
            f"version {VERSION}. Install a newer gpudiag."
        )
    return _object(text, line, number, log)


def _object(text: str, line: str, number: int, log: ProblemLog) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if isinstance(value, dict):
        return value
    log.add("damaged header line", line=number, example=line)
    return {}


def _other(line: str, number: int, found: list[Session], log: ProblemLog) -> None:
    """A line that is no row: part of a header, or nothing of ours."""
    if line.startswith(GPU_LINE) and found:
        gpu = _object(line.removeprefix(GPU_LINE), line, number, log)
        if isinstance(gpu.get("gpu"), str):
            found[-1].gpus.append(gpu)
    elif line.startswith("time,") and line.endswith(",record") and found:
        names = tuple(line.split(","))
        if len(set(names)) == len(names) and set(names) >= _NEEDED:
            found[-1].columns = names
        else:
            log.add("damaged header line", line=number, example=line)
    else:
        torn = line[:4].isdigit() and "," in line
        log.add("torn row" if torn else "line that is no row", line=number, example=line, lost=torn)


def _take(rows: list[tuple[int, str]], found: list[Session], log: ProblemLog) -> None:
    """Parse rows into the last session."""
    if not rows:
        return
    if not found:  # the head of the file is lost: its rows are whole
        found.append(Session())
    columns = found[-1].columns
    good = list(_whole(rows, len(columns), log))
    if not good:
        return
    frame = _cells([line for _, line in good], columns)
    found[-1].rows.append(_typed(frame, [number for number, _ in good], log))


def _whole(rows: Iterable[tuple[int, str]], width: int, log: ProblemLog) -> Iterator[tuple[int, str]]:
    for number, line in rows:
        cells = line.count(",") + 1 if '"' not in line else len(cells_of(line))
        if cells == width and line.count('"') % 2 == 0:
            yield number, line
        else:
            log.add("torn row", line=number, example=line, lost=True)


def _cells(lines: Sequence[str], columns: Sequence[str]) -> pl.DataFrame:
    try:
        text = "\n".join(lines).encode()
        return pl.read_csv(text, has_header=False, new_columns=list(columns), infer_schema=False)
    except pl.exceptions.ComputeError:  # damaged quoting, which the csv module takes as it comes
        rows = [[cell or None for cell in cells_of(line)] for line in lines]
        return pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row")


def _typed(frame: pl.DataFrame, lines: Sequence[int], log: ProblemLog) -> pl.DataFrame:
    """Text as times and numbers; a cell that is neither is unknown and counted."""
    time = pl.col("time").str.to_datetime("%Y-%m-%dT%H:%M:%S%.fZ", time_unit="us", strict=False)
    casts = [pl.when(time.dt.year().is_between(FIRST_YEAR, LAST_YEAR - 1)).then(time).alias("time")]
    wholes = [pl.col(name).cast(pl.Int64, strict=False) for name in frame.columns if name in _WHOLE]
    casts += [column.cast(pl.Float64) for column in wholes]
    casts += [pl.col(name).cast(pl.Float64, strict=False) for name in frame.columns if name in _FLOATS]
    out = frame.select(*casts, *(name for name in frame.columns if name in (*TEXTS, "record")))
    for name in out.columns:
        bad = out[name].is_null() & frame[name].is_not_null()
        if bad.any():
            at = int(bad.arg_true()[0])
            log.add(f"{name} that cannot be read", int(bad.sum()), line=lines[at], example=frame[name][at])
    return out.with_columns(pl.Series("line", lines, dtype=pl.Int64))


def frames_of(found: Sequence[Session]) -> list[pl.DataFrame]:
    """The rows of each session in the order of the file, those of one boot on one clock without steps."""
    rows = [pl.concat(session.rows, how="diagonal") if session.rows else pl.DataFrame() for session in found]
    return on_one_clock(rows, [session.boot for session in found])


def _marked(rows: pl.DataFrame, about: dict[str, Any]) -> pl.DataFrame:
    """The rows of one session between events that tell where it starts, and where it stops without an end."""
    if not len(rows):
        return rows
    at = [name for name in ("time", "line") if name in rows.columns]
    start = rows.head(1).select(at).with_columns(kind=pl.lit(START), record=pl.lit("event"))
    start = start.with_columns(pl.col("^line$") - 1, detail=pl.lit(WITH_COMMAND if about.get("command") else BY_ITSELF))
    cut = rows.tail(1).select(at).with_columns(kind=pl.lit(CUT), detail=pl.lit("no end"), record=pl.lit("event"))
    is_whole = "kind" in rows.columns and bool((rows["kind"] == "record_end").any())
    return pl.concat([start, rows, *([] if is_whole else [cut])], how="diagonal")


def _common_names(found: Sequence[Session]) -> tuple[list[dict[str, str]], list[str]]:
    """For each session, the name over all sessions of each of its GPUs."""
    identities = [[_face(gpu, session.about) for gpu in session.gpus] for session in found]
    ids, notes = resolve([identity for own in identities for identity in own])
    left = iter(ids)
    return [{identity.index: next(left) for identity in own} for own in identities], notes


def _commands(found: Sequence[Session]) -> list[str]:
    texts = [str(session.about.get("command", "")) for session in found]
    return [text if len(text) <= 200 else text[:197] + "..." for text in dict.fromkeys(texts) if text]


def _face(gpu: dict[str, Any], about: dict[str, Any]) -> GpuIdentity:
    known = {key: str(gpu.get(key) or "") for key in ("uuid", "bus_id", "name")}
    return GpuIdentity(gpu["gpu"], host=str(about.get("host") or ""), **known)


def _renamed(frame: pl.DataFrame, names: dict[str, str]) -> pl.DataFrame:
    other = {old: new for old, new in names.items() if old != new}
    return frame.with_columns(pl.col("gpu").replace(other)) if other else frame


def _gpus(found: Sequence[Session], names: Sequence[dict[str, str]]) -> pd.DataFrame | None:
    """Table ``gpus``: for each GPU what the last session that names it tells."""
    by_name: dict[str, dict[str, Any]] = {}
    for session, own in zip(found, names, strict=True):
        about = {key: session.about[key] for key in ("driver", "host") if session.about.get(key)}
        for gpu in session.gpus:
            name = own[gpu["gpu"]]
            by_name[name] = by_name.get(name, {}) | about | gpu | {"gpu": name}
    return pd.DataFrame(list(by_name.values())) if by_name else None


def _pandas(rows: pl.DataFrame) -> pd.DataFrame | None:
    if not len(rows):
        return None
    frame = pd.DataFrame({name: rows[name].to_numpy() for name in rows.columns if name not in ("record", "stepped")})
    return frame.assign(time=frame["time"].dt.tz_localize("UTC"))


READER = Reader(NAME, recognises, read)
