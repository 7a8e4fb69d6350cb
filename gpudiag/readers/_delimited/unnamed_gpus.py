"""Rows that do not say which GPU they speak of: their order does, on each host by itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpudiag.readers._delimited.pieces import BlockRows, column_of
from gpudiag.readers._delimited.row_order import blocks, gpus_in_blocks, gpus_in_ticks, place_in
from gpudiag.readers._delimited.sorted_rows import SortedRows, columns_of, lines_of
from gpudiag.readers._delimited.sweep import Sweep
from gpudiag.readers._shape.finish import Known
from gpudiag.readers._shape.identity import HOSTS, GpuIdentity, machines

_NAMED = 64
"""So many rows at most are the first tick of a host, which has the name of each of its GPUs."""


def by_host(pieces: Sequence[BlockRows], faces: Sequence[GpuIdentity], sweep: Sweep, notes: list[str]) -> SortedRows:
    """Rows that name their host at most: on each of several hosts, their order tells its GPUs."""
    hosts = machines(faces)
    own = list(dict.fromkeys(hosts.values()))
    if not own:
        return in_order([_of_host(piece, set(faces), ()) for piece in pieces], sweep, notes)
    names = tuple(dict.fromkeys(name for piece in pieces for name in piece.columns))
    parts, told = [], list[str]()
    for host in own:
        wanted = {face for face in faces if hosts.get(face.host) == host}
        found = [_of_host(piece, wanted, names) for piece in pieces if piece.code is not None]
        parts.append(in_order([piece for piece in found if len(piece)], sweep, told))
    notes += [HOSTS, *dict.fromkeys(told)]
    labels = [f"{host}/{label}" for host, part in zip(own, parts, strict=True) for label in part.labels]
    gpus: list[Known] = [
        {**gpu, "gpu": f"{host}/{gpu['gpu']}", "host": host}
        for host, part in zip(own, parts, strict=True)
        for gpu in part.gpus
    ]
    first = np.cumsum([0, *(len(part.labels) for part in parts)])
    ticks = [np.arange(len(part.lines)) if part.tick is None else part.tick for part in parts]
    return SortedRows(
        {name: np.concatenate([part.columns[name] for part in parts]) for name in names},
        np.concatenate([part.lines for part in parts]),
        np.concatenate([part.code + at for part, at in zip(parts, first, strict=False)]).astype(np.int16),
        labels,
        gpus,
        np.concatenate(ticks),
    )


def _of_host(piece: BlockRows, wanted: set[GpuIdentity], names: Sequence[str]) -> BlockRows:
    """The rows of a piece that are of some faces, in the order of lines, with the faces of the first of them."""
    if piece.code is None:
        return piece
    mine = np.array([*(face in wanted for face in piece.identities), False])
    rows = np.flatnonzero(mine[piece.code])
    rows = rows[np.argsort(piece.lines[rows], kind="stable")]
    columns = {name: column_of(piece, name)[rows] for name in names or piece.columns}
    faces = tuple(piece.identities[at] for at in piece.code[rows[:_NAMED]])
    return BlockRows(columns, piece.lines[rows], None, faces, piece.lost)


def in_order(pieces: Sequence[BlockRows], sweep: Sweep, notes: list[str]) -> SortedRows:
    """Rows that do not say which GPU they speak of: their order does, if GPUs take turns."""
    names = [identity.name for identity in pieces[0].identities]
    whole = [(piece, slice(None)) for piece in pieces]
    lines, columns = lines_of(whole), columns_of(whole)
    if "time" in columns:
        count, tick = gpus_in_ticks(columns["time"])
        place = place_in(tick)
    else:
        tick = blocks(lines, np.concatenate([np.empty(0, dtype=np.int32), *sweep.breaks]))
        count = gpus_in_blocks(tick, dated=bool(sweep.moments))
        place = place_in(tick)
    if count == 1:
        return SortedRows(columns, lines, np.zeros(len(lines), dtype=np.int16), ["0"], _called(["0"], names))
    notes.append(f"Rows do not name their GPU: the {count} GPUs were told by the order of rows.")
    code = np.minimum(place, count - 1).astype(np.int16)
    order = np.argsort(code, kind="stable")
    labels = [str(number) for number in range(count)]
    columns = {name: values[order] for name, values in columns.items()}
    return SortedRows(columns, lines[order], code[order], labels, _called(labels, names), tick[order])


def _called(labels: Sequence[str], names: Sequence[str]) -> list[Known]:
    if len(names) < len(labels):
        return [{"gpu": label} for label in labels]
    return [{"gpu": label, "name": name} for label, name in zip(labels, names, strict=False)]
