"""Good rows of one block as numpy columns, and which GPU each row speaks of."""

from __future__ import annotations

import mmap
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from gpudiag.readers._delimited.fast_rows import FastRows
from gpudiag.readers._delimited.grid import Layout, Parsed, is_missing, lost, unanswered
from gpudiag.readers._shape.identity import GpuIdentity

UNKNOWN = -1
_MASKED = "00000000-0000-0000-0000-000000000000"
_MOST_GPUS = 32_767
"""Indices are told apart in 16 bits; no index of a GPU is larger than their number in a machine."""
_PAGES = 64 * 1024
FEWEST_ASKED = 3
_FACE = ("index", "uuid", "bus_id", "name", "driver", "host")


@dataclass(eq=False)
class BlockRows:
    """Good rows of one block.

    ``columns``: arrays of equal length; ``lines``: 1-based line numbers; ``code``: position in ``identities`` or -1,
    None if no row says anything of its GPU; ``lost``: numbers of the lines that say the driver lost the GPU;
    ``marks``: line, time and text of rows that hold an event in place of a sample; ``unanswered``: numbers of the lines
    in which every number is an unknown error.
    """

    columns: dict[str, np.ndarray]
    lines: np.ndarray
    code: np.ndarray | None
    identities: tuple[GpuIdentity, ...]
    lost: np.ndarray
    marks: tuple[tuple[int, Any, str], ...] = ()
    unanswered: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.lines)


def piece_of(parsed: Parsed, layout: Layout, lines: np.ndarray) -> BlockRows:
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
        bits = [(field.target, field.bit) for field in flags]
        columns["throttle_reasons"], columns["throttle_known"] = _mask(good.rows, bits), _told(good.rows, bits)
    code, identities = _who(good.rows)
    gone, silent = _lost(good, layout), _unanswered(good, layout)
    return BlockRows(columns, lines, code, identities, lines[gone], marks, lines[silent])


def piece_of_fast_rows(rows: FastRows, layout: Layout, lines: np.ndarray) -> BlockRows | None:
    """The rows that went the short way; None if uuids, bus ids, else names, or hosts do not stay with their index."""
    columns = dict(rows.columns)
    index = columns.pop("index", None)
    texts = {field.target: place for place, field in layout.used if field.target in _FACE and field.kind == "text"}
    if "index" not in layout.targets:
        names = [rows.text(texts["name"], row) for row in range(min(64, len(lines)))] if "name" in texts else []
        return BlockRows(columns, lines, None, tuple(GpuIdentity(name=name) for name in names), lines[:0])
    if index is None:
        return None
    code, first = _index_codes(index)
    if not all(rows.stays(texts[target], first, code) for target in {"uuid", "bus_id", "host"} & set(texts)):
        return None
    by_name = "name" in texts and not {"uuid", "bus_id"} & set(texts)
    if by_name and not rows.mostly_stays(texts["name"], first, code):
        return None
    identities = []
    for at in first.tolist():
        fields = {target: text for target, place in texts.items() if not is_missing(text := rows.text(place, at))}
        identities.append(_unmasked(GpuIdentity(index=str(index[at]), **fields)))
    return BlockRows(columns, lines, code, tuple(identities), lines[:0])


def join(pieces: Sequence[BlockRows]) -> BlockRows:
    """Pieces of one stretch of a file as one: by GPU, then in the order of lines.

    Columns that a piece lacks are unknown there. A few rows go into many at the cost of a copy.
    """
    if len(pieces) == 1:
        return _sorted(pieces[0], pieces[0].identities)
    return _two(join(pieces[: len(pieces) // 2]), join(pieces[len(pieces) // 2 :]))  # each row is copied log(n) times


def _two(whole: BlockRows, more: BlockRows) -> BlockRows:
    identities = tuple(dict.fromkeys((*whole.identities, *more.identities)))
    known = whole.code is not None or more.code is not None
    whole, more = _sorted(whole, identities), _sorted(more, identities)
    spots = np.searchsorted(_place(whole), _place(more)) + np.arange(len(more))
    stays = np.ones(len(whole) + len(more), dtype=bool)
    stays[spots] = False

    def mixed(old: np.ndarray, new: np.ndarray) -> np.ndarray:
        out = _own_pages(len(stays), np.result_type(old, new))
        out[stays], out[spots] = old, new
        return out

    names = dict.fromkeys((*whole.columns, *more.columns))
    return BlockRows(
        {name: mixed(column_of(whole, name), column_of(more, name)) for name in names},
        mixed(whole.lines, more.lines),
        mixed(_codes(whole), _codes(more)) if known else None,
        identities,
        np.concatenate([whole.lost, more.lost]),
        whole.marks + more.marks,
        np.concatenate([whole.unanswered, more.unanswered]),
    )


def _sorted(piece: BlockRows, identities: tuple[GpuIdentity, ...]) -> BlockRows:
    """The rows with codes that point into ``identities``, by GPU and line."""
    code = piece.code
    if code is not None and identities != piece.identities[: len(identities)]:
        numbers = {identity: at for at, identity in enumerate(identities)}
        code = np.array([*map(numbers.__getitem__, piece.identities), UNKNOWN], dtype=np.int16)[code]
    out = BlockRows(piece.columns, piece.lines, code, identities, piece.lost, piece.marks, piece.unanswered)
    place = _place(out)
    if (place[1:] >= place[:-1]).all():
        return out
    order = np.argsort(place, kind="stable")
    out.columns = {name: values[order] for name, values in out.columns.items()}
    out.lines, out.code = out.lines[order], None if code is None else code[order]
    return out


def _place(piece: BlockRows) -> np.ndarray:
    return (_codes(piece).astype(np.int64) << 32) + piece.lines


def _codes(piece: BlockRows) -> np.ndarray:
    return np.full(len(piece), UNKNOWN, dtype=np.int16) if piece.code is None else piece.code


def between(piece: BlockRows, first_line: int, last_line: int) -> BlockRows:
    """The rows of these lines, of a piece in the order of lines."""
    rows = slice(*np.searchsorted(piece.lines, [first_line, last_line + 1]).tolist())

    def within(numbers: np.ndarray) -> np.ndarray:
        return numbers[(numbers >= first_line) & (numbers <= last_line)]

    return BlockRows(
        {name: values[rows] for name, values in piece.columns.items()},
        piece.lines[rows],
        None if piece.code is None else piece.code[rows],
        piece.identities,
        within(piece.lost),
        tuple(mark for mark in piece.marks if first_line <= mark[0] <= last_line),
        within(piece.unanswered),
    )


def by_gpu(piece: BlockRows) -> BlockRows:
    """The rows with those of each GPU together: cheap block by block, and the whole then falls in place."""
    code = piece.code
    if code is None or (code[1:] >= code[:-1]).all():
        return piece
    # Radix sort needs few bits.
    order = np.argsort(code.astype(np.int8 if len(piece.identities) < 127 else np.int16), kind="stable")
    piece.columns = {name: _apart(values, order) for name, values in piece.columns.items()}
    piece.lines, piece.code = piece.lines[order], code[order]
    return piece


def _apart(values: np.ndarray, order: np.ndarray) -> np.ndarray:
    """The values in an order."""
    return np.take(values, order, out=_own_pages(len(order), values.dtype), mode="clip")


def _own_pages(size: int, dtype: np.dtype) -> np.ndarray:
    """An array, a large one in pages of its own: they go back to the system as soon as it is freed.

    On Linux all are there at once, at a sixth of what a fault for each of them takes.
    """
    if size * dtype.itemsize < _PAGES:
        return np.empty(size, dtype)
    if sys.platform == "win32":
        return np.frombuffer(mmap.mmap(-1, size * dtype.itemsize), dtype)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_POPULATE", 0)
    return np.frombuffer(mmap.mmap(-1, size * dtype.itemsize, flags=flags), dtype)


def column_of(piece: BlockRows, name: str) -> np.ndarray:
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
    events = good.rows.filter(silent)
    timestamps = events["time"].to_list() if "time" in events.columns else [None] * len(events)
    marks = tuple(
        zip(lines[silent.to_numpy()].tolist(), timestamps, events["event"].fill_null("").to_list(), strict=True)
    )
    return Parsed(good.rows.filter(~silent), good.cells.filter(~silent)), lines[~silent.to_numpy()], marks


def _mask(rows: pl.DataFrame, flags: Sequence[tuple[str, int]]) -> np.ndarray:
    """The bits of all flags that are active; unknown where not one flag is known."""
    bits = pl.sum_horizontal(pl.when(pl.col(name)).then(float(bit)).otherwise(0.0) for name, bit in flags)
    known = pl.any_horizontal(pl.col(name).is_not_null() for name, _ in flags)
    return rows.select(pl.when(known).then(bits)).to_series().to_numpy()


def _told(rows: pl.DataFrame, flags: Sequence[tuple[str, int]]) -> np.ndarray:
    """The bits of all flags that are known."""
    bits = pl.sum_horizontal(pl.when(pl.col(name).is_not_null()).then(float(bit)).otherwise(0.0) for name, bit in flags)
    return rows.select(bits).to_series().to_numpy()


def _who(rows: pl.DataFrame) -> tuple[np.ndarray | None, tuple[GpuIdentity, ...]]:
    """Which of the GPUs met each row speaks of: by uuid, else bus id, else index or board; on each host by itself."""
    texts = [name for name in ("uuid", "bus_id", "board") if name in rows.columns]
    if texts or "host" in rows.columns or rows.schema.get("index") == pl.String or _several_names(rows):
        code, first = _text_codes(rows, texts)
    elif "index" in rows.columns:
        code, first = _index_codes(rows["index"].to_numpy())
    else:
        return None, _nameless(rows)
    return code, tuple(_face(rows, int(at)) for at in first)


def _several_names(rows: pl.DataFrame) -> bool:
    return {"index", "name"} <= set(rows.columns) and rows["name"].n_unique() > 1


def _index_codes(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    known = (values >= 0) & (values < _MOST_GPUS)
    whole = np.where(known, values, 0).astype(np.int16)
    met = np.flatnonzero(np.bincount(whole[known] if not known.all() else whole, minlength=1))
    place = np.zeros(_MOST_GPUS, dtype=np.int16)
    place[met] = np.arange(len(met))
    code = np.where(known, place[whole], UNKNOWN).astype(np.int16)
    first = np.zeros(len(met), dtype=np.int64)
    at = np.flatnonzero(known)[::-1]
    first[code[at]] = at  # of several rows of one GPU the first is written last
    return code, first


def _text_codes(rows: pl.DataFrame, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Codes by face, and the first row of each: one GPU has several where its index or its host changes."""
    parts = [pl.when(~pl.col(name).str.ends_with(_MASKED)).then(pl.col(name)) for name in texts]
    also = [pl.col("host").fill_null("")] if "host" in rows.columns else []
    if "index" in rows.columns:
        index = pl.col("index")
        if rows.schema["index"] != pl.String:
            number = index.cast(pl.Int64, strict=False)
            index = pl.when(number.is_between(0, _MOST_GPUS - 1)).then(number).cast(pl.String)
        parts.append(index)
        also.append(index.fill_null(""))
        if not texts and _several_names(rows):  # of another model is another GPU
            also.append(pl.col("name").fill_null(""))
    elif not parts:  # the host alone
        parts.append(pl.col("name").fill_null("") if "name" in rows.columns else pl.lit(""))
    key = rows.select(pl.concat_str(pl.coalesce(parts), *also, separator="\n").alias("key")).to_series()
    first = np.sort(key.arg_unique().to_numpy())
    known = key.gather(first)
    first = first[known.is_not_null().to_numpy()][:_MOST_GPUS]
    code = key.cast(pl.Enum(key.gather(first)), strict=False).to_physical().cast(pl.Int16).fill_null(UNKNOWN)
    return code.to_numpy(), first


def _face(rows: pl.DataFrame, at: int) -> GpuIdentity:
    cells = {name: rows[name][at] for name in _FACE if name in rows.columns}
    index = cells.pop("index", None)
    texts = {name: text or "" for name, text in cells.items()}
    if "board" in rows.columns:
        texts["name"] = rows["board"][at]
    known = "" if index is None else index if isinstance(index, str) else f"{index:g}"
    return _unmasked(GpuIdentity(index=known, **texts))


def _unmasked(identity: GpuIdentity) -> GpuIdentity:
    return replace(identity, uuid="") if identity.uuid.endswith(_MASKED) else identity


def _nameless(rows: pl.DataFrame) -> tuple[GpuIdentity, ...]:
    """What is known of the GPUs of a file that tells them by nothing: the names of the first rows, in order."""
    if "name" not in rows.columns or not len(rows):
        return ()
    return tuple(GpuIdentity(name=name or "") for name in rows["name"].head(64).to_list())


def _lost(good: Parsed, layout: Layout) -> np.ndarray:
    suspects = [lost(pl.col(f"field_{place}")).fill_null(False) for place in _with_gaps(good, layout)]
    return _true(good, pl.any_horizontal(suspects)) if suspects else np.empty(0, dtype=np.int64)


def _unanswered(good: Parsed, layout: Layout) -> np.ndarray:
    """Rows in which every number is an unknown error: of a few alone, as of a sensor, nothing follows."""
    asked = [place for place, field in layout.used if field.kind == "number" and field.target != "index"]
    if len(asked) < FEWEST_ASKED or not set(asked) <= set(_with_gaps(good, layout)):
        return np.empty(0, dtype=np.int64)
    return _true(good, pl.all_horizontal(unanswered(pl.col(f"field_{place}")).fill_null(False) for place in asked))


def _with_gaps(good: Parsed, layout: Layout) -> list[int]:
    """The columns of numbers in which some cell holds none."""
    return [place for place, field in layout.used if field.kind == "number" and good.rows[field.target].null_count()]


def _true(good: Parsed, holds: pl.Expr) -> np.ndarray:
    return good.cells.select(holds.arg_true()).to_series().to_numpy().astype(np.int64)
