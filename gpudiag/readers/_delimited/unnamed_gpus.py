"""Rows that do not say which GPU they speak of: their order does, on each host and among boards of one name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from gpudiag.readers._delimited.bursts import REGULAR, turns
from gpudiag.readers._delimited.pieces import BlockRows, column_of
from gpudiag.readers._delimited.row_order import blocks, gpus_in_blocks, place_in, usual_size
from gpudiag.readers._delimited.sorted_rows import SortedRows, columns_of, lines_of
from gpudiag.readers._delimited.sweep import NEW_HEADER, REPEATED, Sweep
from gpudiag.readers._shape.finish import Known
from gpudiag.readers._shape.identity import HOSTS, GpuIdentity, machines
from gpudiag.readers._shape.tidy import NO_GPU

_NAMED = 64
"""So many rows at most are the first tick of a host, which has the name of each of its GPUs."""

_BURSTS = (
    "Rows do not name their GPU and come {size} at a time. Neither memory nor temperature tells several GPUs: they "
    "were taken as those of one. Log the index of each GPU if there are more."
)
_UNEVEN = (
    "Rows do not name their GPU, and their number between two headers varies: they are assumed to be of one GPU. If "
    "there are several, every value here is a mixture of them. Log the index of each GPU."
)
_LEFT_OUT = (
    "{size} rows stand between two headers, but for {count:,} rows, as where two programs write one file: these were "
    "left out, and their time with them."
)
_NOT_WHOLE = "row of a block that is not whole"


def by_face(pieces: Sequence[BlockRows], faces: Sequence[GpuIdentity], sweep: Sweep, notes: list[str]) -> SortedRows:
    """Rows that name their host, or the board of their GPU: their order tells the GPUs of each host and board."""
    hosts, named = machines(faces), all(face.name for face in faces)
    groups: dict[tuple[str, str], set[GpuIdentity]] = {}
    for face in faces:
        if face.host or not hosts:
            groups.setdefault((hosts.get(face.host, ""), face.name if named else ""), set()).add(face)
    coded = [piece for piece in pieces if piece.code is not None] if len(groups) > 1 else pieces
    names = tuple(dict.fromkeys(name for piece in pieces for name in piece.columns))
    parts, told = [], list[str]()
    for wanted in groups.values():
        found = [_of_face(piece, wanted, names) for piece in coded]
        parts.append(in_order([piece for piece in found if len(piece)], sweep, told))
    notes += [HOSTS] * bool(hosts)
    notes += dict.fromkeys(told)
    _count_others(pieces, parts, sweep)
    return _together(parts, list(groups), names)


def _count_others(pieces: Sequence[BlockRows], parts: Sequence[SortedRows], sweep: Sweep) -> None:
    lines = np.setdiff1d(np.concatenate([piece.lines for piece in pieces]), np.concatenate([p.lines for p in parts]))
    sweep.log.add(NO_GPU, len(lines), line=int(lines[0]) if len(lines) else None, lost=True)


def _together(parts: Sequence[SortedRows], groups: Sequence[tuple[str, str]], names: Sequence[str]) -> SortedRows:
    """The GPUs of all groups, on each host numbered in the order of their first rows."""
    met = sorted(
        (int(part.lines[np.argmax(part.code == code)]), at, code)
        for at, part in enumerate(parts)
        for code in range(len(part.labels))
    )
    labels: dict[tuple[int, int], str] = {}
    for _, at, code in met:
        host = groups[at][0]
        number = sum(groups[other][0] == host for other, _ in labels)
        labels[at, code] = f"{host}/{number}" if host else str(number)
    place = {key: number for number, key in enumerate(sorted(labels))}
    gpus: list[Known] = [
        {**parts[at].gpus[code], "gpu": labels[at, code]} | ({"host": groups[at][0]} if groups[at][0] else {})
        for at, code in place
    ]
    first = [place[at, 0] for at in range(len(parts))]
    ticks = [np.arange(len(part.lines)) if part.tick is None else part.tick for part in parts]
    return SortedRows(
        {name: np.concatenate([part.columns[name] for part in parts]) for name in names},
        np.concatenate([part.lines for part in parts]),
        np.concatenate([part.code + at for part, at in zip(parts, first, strict=True)]).astype(np.int16),
        [labels[key] for key in place],
        gpus,
        np.concatenate(ticks),
    )


def _of_face(piece: BlockRows, wanted: set[GpuIdentity], names: Sequence[str]) -> BlockRows:
    """The rows of a piece that are of some faces, in the order of lines, with the faces of the first of them."""
    if piece.code is None:
        return piece
    mine = np.array([*(face in wanted for face in piece.identities), False])
    rows = np.flatnonzero(mine[piece.code])
    rows = rows[np.argsort(piece.lines[rows], kind="stable")]
    columns = {name: column_of(piece, name)[rows] for name in names or piece.columns}
    faces = tuple(piece.identities[at] for at in piece.code[rows[:_NAMED]])
    return BlockRows(columns, piece.lines[rows], None, faces, piece.lost, unanswered=piece.unanswered)


def in_order(pieces: Sequence[BlockRows], sweep: Sweep, notes: list[str]) -> SortedRows:
    """Rows that do not say which GPU they speak of: their order does, if GPUs take turns."""
    names = [identity.name for identity in pieces[0].identities]
    whole = [(piece, slice(None)) for piece in pieces]
    lines, columns = lines_of(whole), columns_of(whole)
    if "time" in columns:
        found = turns(columns["time"], columns)
        count, tick = found.gpus, found.tick
        notes += [_BURSTS.format(size=found.burst)] * (found.burst > 1)
    else:
        tick = blocks(lines, np.concatenate([np.empty(0, dtype=np.int32), *sweep.breaks]))
        count = gpus_in_blocks(tick, dated=bool(sweep.moments))
        size, most = usual_size(tick, _headings(sweep))
        notes += [_UNEVEN] * (size > 0 and not most)
        if most and count in (1, size):
            kept, tick = _whole(size, lines, tick, sweep, notes)
            count, lines, columns = size, lines[kept], {name: values[kept] for name, values in columns.items()}
    if count == 1:
        return SortedRows(columns, lines, np.zeros(len(lines), dtype=np.int16), ["0"], _called(["0"], names))
    notes.append(f"Rows do not name their GPU: the {count} GPUs were told by the order of rows.")
    place = place_in(tick)
    if (missing := count - np.count_nonzero(tick == tick[0])) > 0:  # the log begins in the middle of a tick
        place[: count - missing] += missing
        names = names[count - missing :]
    code = np.minimum(place, count - 1).astype(np.int16)
    order = np.argsort(code, kind="stable")
    labels = [str(number) for number in range(count)]
    columns = {name: values[order] for name, values in columns.items()}
    return SortedRows(columns, lines[order], code[order], labels, _called(labels, names), tick[order])


def _headings(sweep: Sweep) -> int:
    """How many lines are headers, dates, or the one text that comes again and again."""
    again = max(Counter(text for _, text in sweep.others).values(), default=0)
    return len(sweep.moments) + again + sum(one.count for one in sweep.log.all if one.kind in (REPEATED, NEW_HEADER))


def _whole(
    size: int, lines: np.ndarray, tick: np.ndarray, sweep: Sweep, notes: list[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Which rows are of blocks of this size, and the number of their block among these; the others count as lost.

    Where a row of a block is torn, which GPU the others are of is not known.
    """
    whole = np.bincount(tick) == size
    kept = whole[tick]
    left = int(np.count_nonzero(~kept))
    sweep.log.add(_NOT_WHOLE, left, line=int(lines[np.argmin(kept)]), lost=True)
    if whole.mean() < REGULAR:
        notes.append(_LEFT_OUT.format(size=size, count=left))
    return kept, (np.cumsum(whole) - 1)[tick[kept]]


def _called(labels: Sequence[str], names: Sequence[str]) -> list[Known]:
    if len(names) < len(labels):
        return [{"gpu": label} for label in labels]
    return [{"gpu": label, "name": name} for label, name in zip(labels, names, strict=False)]
