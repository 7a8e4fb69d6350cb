"""From the rows of a sweep to tables: one GPU id and one time for each row, then the step all readers end with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

from gpudiag.errors import InputError
from gpudiag.readers._delimited import numbering
from gpudiag.readers._delimited.pieces import UNKNOWN, BlockRows, by_gpu
from gpudiag.readers._delimited.row_order import clock_of, place_in, timestamps_from_lines
from gpudiag.readers._delimited.sorted_rows import SortedRows, columns_of, lines_of
from gpudiag.readers._delimited.sweep import Sweep
from gpudiag.readers._delimited.unnamed_gpus import by_face, in_order
from gpudiag.readers._io.paths import as_text
from gpudiag.readers._io.source import Source
from gpudiag.readers._shape.coded import Coded
from gpudiag.readers._shape.corrections import correct
from gpudiag.readers._shape.finish import Known, finish, nothing_usable
from gpudiag.readers._shape.gpu_text import told
from gpudiag.readers._shape.identity import GpuIdentity, machines, other_model, resolve
from gpudiag.readers._shape.implied_events import implied_events
from gpudiag.readers._shape.ticks import (
    FROM_START,
    MIDNIGHT_NOTE,
    apart,
    counted_note,
    relative_note,
    relative_time,
    since_midnight,
    zone_note,
)
from gpudiag.readers._shape.tidy import NO_GPU
from gpudiag.readers.base import ReadOptions, Telemetry

_MOST_GPUS = 4096
"""More texts in a column are not the names of GPUs, and would take minutes to tell apart."""
_COUNTED = 0.1
"""Share of the rows whose time is counted from that of a row above from which on this is told."""
_TORN = 1000
"""A name in so many times fewer rows than another is none."""


def assemble(
    source: Source,
    reader: str,
    options: ReadOptions,
    sweep: Sweep,
    notes: Sequence[str],
    *,
    guessed: bool = False,
    unitless: Collection[str] = (),
) -> Telemetry:
    """Tables from the good rows of a sweep.

    ``guessed`` tells that its columns were named by their units alone, ``unitless`` which have no unit.

    Raises InputError if there is no good row.
    """
    marks = [mark for piece in sweep.pieces for mark in piece.marks] + _marks(sweep)
    pieces = [piece for piece in sweep.pieces if len(piece)]
    sweep.pieces.clear()
    if not pieces:
        raise nothing_usable(source, reader, sweep.log)
    all_notes = list(notes)
    lost = {
        "[GPU is lost]": np.concatenate([piece.lost for piece in pieces]),
        "[Unknown Error]": np.concatenate([piece.unanswered for piece in pieces]),
    }
    coded = any(piece.code is not None for piece in pieces)
    faces = _read_texts(pieces, source)
    if coded and (not faces or any(map(_names_a_gpu, faces))):
        rows = _named(pieces, sweep, all_notes, source, reader)
    elif coded:
        rows = by_face(pieces, faces, sweep, all_notes)
    else:
        rows = in_order(pieces, sweep, all_notes)
    timestamps = _time(rows, sweep, options, all_notes)
    all_notes += correct(rows.columns, rows.code, guessed=guessed, unitless=unitless)
    host = _host(rows, timestamps, all_notes)
    timestamps, coarse = apart(timestamps, rows.code, rows.columns)
    all_notes += coarse
    gpu = Coded(rows.code, rows.labels)
    events = implied_events(timestamps, gpu, rows.lines, lost, sweep.others, marks, as_text(source.path.name))
    columns: dict[str, Any] = rows.columns
    columns |= {"time": timestamps, "line": rows.lines, "gpu": gpu}
    return finish(
        source, reader, options, sweep.log, gpu=columns, gpus=rows.gpus, host=host, events=events, notes=all_notes
    )


def _read_texts(pieces: Sequence[BlockRows], source: Source) -> list[GpuIdentity]:
    """What the rows of all pieces say of their GPUs, put in place of the text of their cells."""
    coded = [piece for piece in pieces if piece.code is not None]
    faces = told(dict.fromkeys(face for piece in coded for face in piece.identities))
    if len(faces) > _MOST_GPUS:
        raise InputError(
            f"{source.path}: the column that names the GPU holds {len(faces):,} different texts, as "
            f"{next(iter(faces)).index[:40]!r}; expected {_MOST_GPUS:,} at most. Name the columns with --columns, or "
            "as columns in run.toml ('-' for one to skip)."
        )
    for piece in coded:
        piece.identities = tuple(map(faces.__getitem__, piece.identities))
    return list(dict.fromkeys(faces.values()))


def _marks(sweep: Sweep) -> list[tuple[int, Any, str]]:
    if not sweep.marks:
        return []
    timestamps = sweep.layout.timestamp.read(
        pl.Series([timestamp for _, timestamp, _ in sweep.marks], dtype=pl.String)
    ).to_list()
    return [(line, timestamp, text) for (line, _, text), timestamp in zip(sweep.marks, timestamps, strict=True)]


def _named(pieces: Sequence[BlockRows], sweep: Sweep, notes: list[str], source: Source, reader: str) -> SortedRows:
    """Rows that say which GPU they speak of."""
    _forget_torn_names(pieces)
    identities = list(dict.fromkeys(identity for piece in pieces for identity in piece.identities))
    several = bool(machines(identities))  # without its host an index names no GPU of them
    identities = [one for one in identities if _names_a_gpu(one) and (one.host or one.uuid or not several)]
    identities, how = numbering.in_order(identities, pieces)
    ids, made_up = resolve(identities, lambda one, other: other_model(identities[one], identities[other]))
    notes += how + made_up + _moved(identities, ids)
    labels = list(dict.fromkeys(ids))
    place = {label: at for at, label in enumerate(labels)}
    number = {identity: place[label] for identity, label in zip(identities, ids, strict=True)}
    cuts: list[list[slice]] = [[] for _ in pieces]
    nameless: list[np.ndarray] = []
    for piece, own in zip(pieces, cuts, strict=True):
        code = _recode(piece, number)
        edges = np.searchsorted(code, range(len(labels) + 1))
        own += [slice(low, high) for low, high in pairwise(edges)]
        nameless.append(piece.lines[: edges[0]])
        piece.code = None
    without = np.concatenate(nameless)
    sweep.log.add(NO_GPU, len(without), line=int(without.min()) if len(without) else None, lost=True)
    if not labels:
        raise nothing_usable(source, reader, sweep.log)
    order = [(piece, own[gpu]) for gpu in range(len(labels)) for piece, own in zip(pieces, cuts, strict=True)]
    sizes = [sum(own[gpu].stop - own[gpu].start for own in cuts) for gpu in range(len(labels))]
    code = np.repeat(np.arange(len(labels), dtype=np.int16), sizes)
    return SortedRows(columns_of(order), lines_of(order), code, labels, _described(labels, identities, ids))


def _forget_torn_names(pieces: Sequence[BlockRows]) -> None:
    """Take the names of a row or two away where others stand in very many: two rows ran together within the name."""
    rows: Counter[str] = Counter()
    for piece in pieces:
        if piece.code is not None:
            for identity, count in zip(piece.identities, np.bincount(piece.code[piece.code >= 0]), strict=False):
                rows[identity.name] += int(count)
    torn = {name for name, count in rows.items() if name and _TORN * count < max(rows.values())}
    for piece in pieces if torn else ():
        piece.identities = tuple(replace(one, name="") if one.name in torn else one for one in piece.identities)


def _moved(identities: Sequence[GpuIdentity], ids: Sequence[str]) -> list[str]:
    """A sentence on GPUs whose index changes, as it may where a machine starts anew."""
    indices = pd.DataFrame({"id": ids, "index": [one.index for one in identities]}).query("index != ''")
    moved = [str(label) for label, n in indices.groupby("id")["index"].nunique().items() if n > 1]
    if not moved:
        return []
    return [f"The index of GPU {', '.join(moved)} changes: each keeps its first one, told by its uuid or bus id."]


def _names_a_gpu(face: GpuIdentity) -> bool:
    return bool(face.index or face.uuid or face.bus_id)


def _recode(piece: BlockRows, number: dict[GpuIdentity, int]) -> np.ndarray:
    """The number of the GPU of each row, after the piece has been sorted by it."""
    if piece.code is None:
        return np.full(len(piece), UNKNOWN, dtype=np.int16)
    table = np.array([*(number.get(identity, UNKNOWN) for identity in piece.identities), UNKNOWN], dtype=np.int16)
    piece.code = table[piece.code]
    if len(set(table)) <= len(piece.identities):  # two faces turned out to be one GPU: its rows back into their order
        order = np.argsort(piece.lines, kind="stable")
        piece.columns = {name: values[order] for name, values in piece.columns.items()}
        piece.lines, piece.code = piece.lines[order], piece.code[order]
    code = by_gpu(piece).code
    assert code is not None
    return code


def _described(labels: Sequence[str], identities: Sequence[GpuIdentity], ids: Sequence[str]) -> list[Known]:
    """Rows of table ``gpus``: for each id the last thing known of each kind."""
    known: dict[str, Known] = {label: {"gpu": label} for label in labels}
    for identity, label in zip(identities, ids, strict=True):
        kinds = {kind: getattr(identity, kind) for kind in ("uuid", "bus_id", "name", "driver", "host")}
        known[label] = {**known[label], **{kind: text for kind, text in kinds.items() if text}}
    return list(known.values())


def _time(rows: SortedRows, sweep: Sweep, options: ReadOptions, notes: list[str]) -> Any:
    """The time of each row: from its own column, from date lines, else counted from 1970."""
    form = sweep.layout.timestamp
    if "time" in rows.columns:
        timestamps = rows.columns.pop("time")
        if form.kind == "clock":
            notes.append(MIDNIGHT_NOTE)
            timestamps = _dated(timestamps, rows.code)
        elif form.kind == "relative":
            notes.append(FROM_START)
        return pd.Series(timestamps).dt.tz_localize("UTC") if form.zoned else timestamps
    moments = clock_of(sweep.moments)
    if moments:
        notes += zone_note([moment for _, moment in moments])
        timestamps, turn = timestamps_from_lines(rows.lines, rows.code, moments, options.period_s, options.timezone)
        notes += [counted_note(options.period_s)] * bool(np.mean(turn > 0) > _COUNTED)
        return timestamps
    notes.append(relative_note(options.period_s))
    tick = place_in(rows.code) if rows.tick is None else rows.tick
    return pd.Series(relative_time(tick, options.period_s)).dt.tz_localize("UTC")


def _dated(clock: np.ndarray, code: np.ndarray) -> np.ndarray:
    """Times of day with a day each, GPU by GPU."""
    epoch = np.datetime64(0, "us")
    edges = np.flatnonzero(np.diff(code)) + 1
    return np.concatenate([since_midnight(part - epoch) for part in np.split(clock, edges)])


def _host(rows: SortedRows, timestamps: Any, notes: list[str]) -> pd.DataFrame | None:
    """Table ``host`` from columns that speak of it, which are taken out; rows of several GPUs repeat it."""
    columns = rows.columns
    own = {name.removeprefix("host."): columns.pop(name) for name in list(columns) if name.startswith("host.")}
    free = own.pop("ram_free_mib", None)
    if free is not None and "ram_total_mib" in own:
        own.setdefault("ram_used_mib", own["ram_total_mib"] - free)
    if not own:
        return None
    if any("/" in gpu["gpu"] for gpu in rows.gpus):
        notes.append("CPU and memory of several hosts have no place in one run: these columns were left out.")
        return None
    frame = pd.DataFrame({"time": timestamps, "line": rows.lines} | own).sort_values("line", kind="stable")
    return frame[frame[list(own)].notna().any(axis=1)].drop_duplicates("time", keep="last")
