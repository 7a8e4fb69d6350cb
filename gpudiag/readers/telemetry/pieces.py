"""Good rows of one block as numpy columns, and which GPU each row speaks of."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from gpudiag.readers.telemetry.express import Express
from gpudiag.readers.telemetry.grid import Layout, Parsed, lost
from gpudiag.readers.telemetry.identity import Face
from gpudiag.readers.telemetry.nvidia_fields import is_missing

UNKNOWN = -1
_MASKED = "00000000-0000-0000-0000-000000000000"
_MOST_GPUS = 4096
_PAGES = 64 * 1024
_FACE = ("index", "uuid", "bus_id", "name", "driver")


@dataclass(eq=False)
class Piece:
    """Good rows of one block.

    ``columns``: arrays of equal length; ``lines``: 1-based line numbers; ``code``: position in ``faces`` or -1,
    None if no row says anything of its GPU; ``lost``: numbers of the lines that say the driver lost the GPU;
    ``marks``: line, time and text of rows that hold an event in place of a sample.
    """

    columns: dict[str, np.ndarray]
    lines: np.ndarray
    code: np.ndarray | None
    faces: tuple[Face, ...]
    lost: np.ndarray
    marks: tuple[tuple[int, Any, str], ...] = ()

    def __len__(self) -> int:
        return len(self.lines)


def piece_of(parsed: Parsed, layout: Layout, lines: np.ndarray) -> Piece:
    """The good rows of a parse; ``lines`` numbers all its rows. Texts are given up, so that the block can be freed."""
    if parsed.bad is not None:
        lines = lines[~parsed.bad.to_numpy()]
    good = parsed.good
    marks: tuple[tuple[int, Any, str], ...] = ()
    if "event" in good.rows.columns:
        good, lines, marks = _without_marks(good, layout, lines)
    flags = [field for _, field in layout.used if field.kind == "flag"]
    numbers = [field.target for _, field in layout.used if field.kind in ("number", "time") and field.target != "index"]
    columns = {name: good.rows[name].to_numpy() for name in numbers}
    if "throttle_reasons" in layout.targets:
        columns["throttle_reasons"] = good.rows["throttle_reasons"].cast(pl.Float64).to_numpy()
    elif flags:
        columns["throttle_reasons"] = _mask(good.rows, [(field.target, field.bit) for field in flags])
    code, faces = _who(good.rows)
    return Piece(columns, lines, code, faces, lines[_lost(good, layout)], marks)


def piece_of_express(express: Express, layout: Layout, lines: np.ndarray) -> Piece | None:
    """The rows that went the short way; None if uuids or bus ids do not stay with their index."""
    columns = dict(express.columns)
    index = columns.pop("index", None)
    texts = {field.target: place for place, field in layout.used if field.target in _FACE and field.kind == "text"}
    if "index" not in layout.targets:
        names = [express.text(texts["name"], row) for row in range(min(64, len(lines)))] if "name" in texts else []
        return Piece(columns, lines, None, tuple(Face(name=name) for name in names), lines[:0])
    if index is None:
        return None
    code, first = _index_codes(index)
    if not all(express.stays(texts[target], first, code) for target in {"uuid", "bus_id"} & set(texts)):
        return None
    faces = []
    for at in first.tolist():
        told = {target: text for target, place in texts.items() if not is_missing(text := express.text(place, at))}
        faces.append(_unmasked(Face(index=str(index[at]), **told)))
    return Piece(columns, lines, code, tuple(faces), lines[:0])


def join(pieces: Sequence[Piece]) -> Piece:
    """Pieces of one block as one, in the order of their lines; columns that a piece lacks are unknown there."""
    if len(pieces) == 1:
        return pieces[0]
    names = list(dict.fromkeys(name for piece in pieces for name in piece.columns))
    lines = np.concatenate([piece.lines for piece in pieces])
    order = np.argsort(lines, kind="stable")
    bases = np.cumsum([0, *(len(piece.faces) for piece in pieces)])
    code = np.concatenate([_shifted(piece, base) for piece, base in zip(pieces, bases, strict=False)])
    known = any(piece.code is not None for piece in pieces)
    return Piece(
        {name: np.concatenate([column_of(piece, name) for piece in pieces])[order] for name in names},
        lines[order],
        code[order] if known else None,
        tuple(face for piece in pieces for face in piece.faces),
        np.concatenate([piece.lost for piece in pieces]),
        tuple(mark for piece in pieces for mark in piece.marks),
    )


def by_gpu(piece: Piece) -> Piece:
    """The rows with those of each GPU together: cheap block by block, and the whole then falls in place."""
    code = piece.code
    if code is None or (code[1:] >= code[:-1]).all():
        return piece
    # Radix sort needs few bits.
    order = np.argsort(code.astype(np.int8 if len(piece.faces) < 127 else np.int16), kind="stable")
    piece.columns = {name: _apart(values, order) for name, values in piece.columns.items()}
    piece.lines, piece.code = piece.lines[order], code[order]
    return piece


def _apart(values: np.ndarray, order: np.ndarray) -> np.ndarray:
    """The values in an order, in pages of their own: they go back to the system as soon as they are freed."""
    if values.nbytes < _PAGES:
        return values[order]
    out = np.frombuffer(mmap.mmap(-1, values.nbytes), values.dtype)
    np.take(values, order, out=out, mode="clip")
    return out


def _shifted(piece: Piece, base: int) -> np.ndarray:
    if piece.code is None:
        return np.full(len(piece), UNKNOWN, dtype=np.int16)
    return np.where(piece.code == UNKNOWN, UNKNOWN, piece.code + base).astype(np.int16)


def column_of(piece: Piece, name: str) -> np.ndarray:
    """A column of a piece, unknown throughout if the piece lacks it."""
    if name in piece.columns:
        return piece.columns[name]
    return np.full(len(piece), np.datetime64("NaT", "us") if name == "time" else np.nan)


def _without_marks(
    good: Parsed, layout: Layout, lines: np.ndarray
) -> tuple[Parsed, np.ndarray, tuple[tuple[int, Any, str], ...]]:
    """The rows that measure something, their lines, and what the others say."""
    numbers = [field.target for _, field in layout.used if field.kind == "number" and field.target != "index"]
    silent = good.rows.select(pl.all_horizontal(pl.col(numbers).is_null())).to_series()
    if not silent.any():
        return good, lines, ()
    told = good.rows.filter(silent)
    stamps = told["time"].to_list() if "time" in told.columns else [None] * len(told)
    marks = tuple(zip(lines[silent.to_numpy()].tolist(), stamps, told["event"].fill_null("").to_list(), strict=True))
    return Parsed(good.rows.filter(~silent), good.cells.filter(~silent)), lines[~silent.to_numpy()], marks


def _mask(rows: pl.DataFrame, flags: Sequence[tuple[str, int]]) -> np.ndarray:
    """The bits of all flags that are active; unknown where not one flag is known."""
    bits = pl.sum_horizontal(pl.when(pl.col(name)).then(float(bit)).otherwise(0.0) for name, bit in flags)
    known = pl.any_horizontal(pl.col(name).is_not_null() for name, _ in flags)
    return rows.select(pl.when(known).then(bits)).to_series().to_numpy()


def _who(rows: pl.DataFrame) -> tuple[np.ndarray | None, tuple[Face, ...]]:
    """Which of the GPUs met each row speaks of: by uuid, else bus id, else index."""
    texts = [name for name in ("uuid", "bus_id") if name in rows.columns]
    if texts:
        code, first = _text_codes(rows, texts)
    elif "index" in rows.columns:
        code, first = _index_codes(rows["index"].to_numpy())
    else:
        return None, _nameless(rows)
    return code, tuple(_face(rows, int(at)) for at in first)


def _index_codes(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    known = (values >= 0) & (values < _MOST_GPUS)
    whole = np.where(known, values, 0).astype(np.int16)
    met = np.flatnonzero(np.bincount(whole[known] if not known.all() else whole, minlength=1))
    place = np.zeros(_MOST_GPUS, dtype=np.int16)
    place[met] = np.arange(len(met))
    code = np.where(known, place[whole], UNKNOWN).astype(np.int16)
    return code, np.array([int(np.argmax(code == k)) for k in range(len(met))])


def _text_codes(rows: pl.DataFrame, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    parts = [pl.when(~pl.col(name).str.ends_with(_MASKED)).then(pl.col(name)) for name in texts]
    if "index" in rows.columns:
        parts.append(pl.col("index").cast(pl.Int64, strict=False).cast(pl.String))
    key = rows.select(pl.coalesce(parts).alias("key")).to_series()
    first = np.sort(key.arg_unique().to_numpy())
    known = key.gather(first)
    first = first[known.is_not_null().to_numpy()]
    code = key.cast(pl.Enum(known.drop_nulls())).to_physical().cast(pl.Int16).fill_null(UNKNOWN)
    return code.to_numpy(), first


def _face(rows: pl.DataFrame, at: int) -> Face:
    cells = {name: rows[name][at] for name in _FACE if name in rows.columns}
    index = cells.pop("index", None)
    texts = {name: text or "" for name, text in cells.items()}
    return _unmasked(Face(index="" if index is None else f"{index:g}", **texts))


def _unmasked(face: Face) -> Face:
    return replace(face, uuid="") if face.uuid.endswith(_MASKED) else face


def _nameless(rows: pl.DataFrame) -> tuple[Face, ...]:
    """What is known of the GPUs of a file that tells them by nothing: the names of the first rows, in order."""
    if "name" not in rows.columns or not len(rows):
        return ()
    return tuple(Face(name=name or "") for name in rows["name"].head(64).to_list())


def _lost(good: Parsed, layout: Layout) -> np.ndarray:
    suspects = [
        lost(pl.col(f"field_{place}")).fill_null(False)
        for place, field in layout.used
        if field.kind == "number" and good.rows[field.target].null_count()
    ]
    if not suspects:
        return np.empty(0, dtype=np.int64)
    return good.cells.select(pl.any_horizontal(suspects).arg_true()).to_series().to_numpy().astype(np.int64)
