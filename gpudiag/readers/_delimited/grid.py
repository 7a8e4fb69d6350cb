"""Lines of delimited text under a known layout become typed columns; every cell is checked.

All work is on whole columns: a line is split once, a number costs about 30 ns, and only columns in which
some cell did not parse are looked at again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import polars as pl

from gpudiag.readers._shape.timestamp_forms import NVIDIA, TimestampForm

FieldKind = Literal["skip", "number", "time", "text", "mask", "flag"]

MISSING = ("N/A", "n/a", "NA", "nan", "NaN", "NAN", "null", "NULL", "None", "-", "--", "?", "", "ERR!", "Unknown Error")
"""Spellings of an unknown cell beside words in square brackets: ``[N/A]``, ``[GPU is lost]``, ..."""
_MISSING = frozenset(MISSING)
_IN_BRACKETS = re.compile(r"\[(?:[^0-9]*| *[A-Za-z][^\[\],.]*)\]")
"""``[N/A]``, ``[Err 5]``; no list of numbers, whose first may be ``nan``."""

_FEW_BYTES = 64 * 1024
_NO_ANSWER = ("[Unknown Error]", "Unknown Error", "ERR!")
_LOST = ("[GPU is lost]", "GPU is lost", "[GPU requires reset]", "GPU requires reset")


@dataclass(frozen=True)
class Field:
    """One column of a file.

    ``target`` is a column of table ``gpu`` or ``host``, one of ``time index uuid bus_id name driver host``,
    or a name the reader deals with; empty if the column is not used. ``unit`` is what every cell ends with, blank
    included; ``prefix`` what it begins with; a value is the number times ``scale``. ``whole`` expects whole
    numbers, which take half the time and the memory of others; fractions are read all the same.
    """

    name: str
    target: str = ""
    kind: FieldKind = "skip"
    unit: str = ""
    prefix: str = ""
    scale: float = 1.0
    bit: int = 0
    whole: bool = False


@dataclass(frozen=True)
class Layout:
    """The columns of a file in order, and how its cells are set apart and written.

    ``tolerant`` allows blanks around cells; ``clock_place`` is the column of the time of day where the timestamp
    stands in two.
    """

    fields: tuple[Field, ...]
    separator: str = ", "
    timestamp: TimestampForm = NVIDIA
    tolerant: bool = False
    decimal_comma: bool = False
    clock_place: int | None = None

    @cached_property
    def used(self) -> tuple[tuple[int, Field], ...]:
        """Position and field of the columns that are read."""
        return tuple((place, field) for place, field in enumerate(self.fields) if field.kind != "skip")

    @cached_property
    def targets(self) -> tuple[str, ...]:
        return tuple(field.target for _, field in self.used)

    @property
    def nameless(self) -> Layout:
        """The same columns without their names: equal where the same is read."""
        return replace(self, fields=tuple(replace(field, name="") for field in self.fields))

    @property
    def writes_units(self) -> bool:
        """True if some cells carry a unit."""
        return any(field.unit for _, field in self.used)

    @property
    def starts_with_timestamp(self) -> bool:
        """True if a row begins with its time, written as text."""
        return bool(self.fields) and self.fields[0].kind == "time" and self.timestamp.kind == "text"

    def relaxed(self) -> Layout:
        """The same columns with any blanks around cells and any spelling of the timestamp that the form allows."""
        return replace(self, separator=self.separator.strip() or self.separator, tolerant=True)

    def bare(self) -> Layout:
        """The same columns without units in the cells, as ``nounits`` writes them."""
        return replace(self.relaxed(), fields=tuple(replace(field, unit="") for field in self.fields))


@dataclass(frozen=True, eq=False)
class Parsed:
    """``rows``: typed columns by target, one row per line. ``cells``: the texts. ``bad``: None if all are good."""

    rows: pl.DataFrame
    cells: pl.DataFrame
    bad: pl.Series | None = None

    @property
    def good(self) -> Parsed:
        """The good rows alone."""
        if self.bad is None:
            return self
        keep = ~self.bad
        return Parsed(self.rows.filter(keep), self.cells.filter(keep))


def split_lines(data: bytes) -> pl.Series:
    """One text per line, null for a blank one; the position is the line number."""
    if len(data) < _FEW_BYTES:  # a call of read_csv costs as much as a thousand lines
        lines = data.decode().split("\n")
        return pl.Series("line", [line or None for line in (lines if lines[-1] else lines[:-1])], dtype=pl.String)
    table = pl.read_csv(data, has_header=False, schema={"line": pl.String}, separator="\0", quote_char=None)
    return table.to_series()


def parse(lines: pl.Series, layout: Layout) -> Parsed:
    """Read lines under a layout.

    A row is bad if the number of its cells is wrong, if it has a time column without a time, or if a cell that
    is used is neither what its column holds nor a spelling of "unknown".
    """
    size = len(layout.fields)
    cells = lines.str.splitn(layout.separator, size + 1).struct.unnest()
    if layout.tolerant:
        cells = cells.select(pl.all().str.strip_chars())
    # One column after the other: blocks run in parallel.
    rows = cells.select_seq(_value(place, field, layout) for place, field in layout.used)
    fractions = [(place, replace(field, whole=False)) for place, field in layout.used if _falls_short(rows, field)]
    if fractions:
        rows = rows.with_columns(cells.select_seq(_value(place, field, layout) for place, field in fractions))
    if "time" in rows.columns:
        rows = rows.with_columns(layout.timestamp.read(rows["time"]).alias("time"))
    return Parsed(rows, cells, _bad(rows, cells, layout))


def _falls_short(rows: pl.DataFrame, field: Field) -> bool:
    return field.whole and rows[field.target].null_count() > 0


def _bad(rows: pl.DataFrame, cells: pl.DataFrame, layout: Layout) -> pl.Series | None:
    """True where a row is bad; None if all are good. A column in which every cell parsed costs next to nothing."""
    size = len(layout.fields)
    faults: list[pl.Expr] = []
    last, beyond = pl.col(_cell(size - 1)), pl.col(_cell(size))
    if cells[_cell(size - 1)].null_count():
        faults.append(last.is_null())
    if cells[_cell(size)].null_count() < len(cells):  # a comma at the end of a line is no further cell
        faults.append((beyond.str.strip_chars() != "").fill_null(False))
    faults += _torn_cells(cells, layout)
    for place, field in layout.used:
        if field.kind == "text" or not rows[field.target].null_count():
            continue
        value = pl.col(field.target)
        absent = missing(_bare(pl.col(_cell(place)), field)).fill_null(False)
        faults.append(value.is_null() if field.kind == "time" else value.is_null() & ~absent)
    if not faults:
        return None
    bad = cells.hstack(rows).select(bad=pl.any_horizontal(faults)).to_series()
    return bad if bad.any() else None


def _torn_cells(cells: pl.DataFrame, layout: Layout) -> list[pl.Expr]:
    """Where a number lacks its unit, for each column in which that happens; 'nan' parses, and is an unknown cell."""
    whole = {field.target: _whole(place, field) for place, field in layout.used if field.unit or field.prefix}
    fits = cells.select(fit.all().alias(target) for target, fit in whole.items()) if whole else pl.DataFrame()
    torn = [target for target in fits.columns if not fits[target][0]]
    number = {target: pl.col(target).is_not_nan().fill_null(False) for target in torn}
    return [number[target] & ~whole[target].fill_null(False) for target in torn]


def _whole(place: int, field: Field) -> pl.Expr:
    cell = pl.col(_cell(place))
    tests = [cell.str.starts_with(field.prefix)] if field.prefix else []
    tests += [cell.str.ends_with(field.unit)] if field.unit else []
    return pl.all_horizontal(tests) if len(tests) > 1 else tests[0]


def _cell(place: int) -> str:
    return f"field_{place}"


def is_missing(cell: str) -> bool:
    """True if a cell, stripped, says that its value is unknown; a list of numbers does not."""
    return cell in _MISSING or (cell[:1] == "[" and _IN_BRACKETS.fullmatch(cell) is not None)


def missing(cell: pl.Expr) -> pl.Expr:
    """True where the text of a cell says that its value is unknown."""
    text = cell.str.strip_chars()
    return text.is_in(MISSING) | text.is_in(_LOST) | text.str.contains(f"^{_IN_BRACKETS.pattern}$")


def lost(cell: pl.Expr) -> pl.Expr:
    """True where a cell says that the driver lost the GPU."""
    return cell.str.strip_chars().is_in(_LOST)


def unanswered(cell: pl.Expr) -> pl.Expr:
    """True where a cell says that the driver gave no answer; where all do, it has no longer any of the GPU."""
    return cell.str.strip_chars().is_in(_NO_ANSWER)


def _value(place: int, field: Field, layout: Layout) -> pl.Expr:
    return _typed(pl.col(_cell(place)), field, layout).alias(field.target)


def _typed(cell: pl.Expr, field: Field, layout: Layout) -> pl.Expr:
    if field.kind == "number":
        bare = _bare(cell, field)
        if layout.tolerant:
            bare = bare.str.strip_chars()
        if layout.decimal_comma:
            bare = bare.str.replace(",", ".", literal=True)
        number = bare.cast(pl.Int32 if field.whole else pl.Float64, strict=False)
        return number if field.scale == 1.0 else number * field.scale
    if field.kind == "time":
        clock = layout.clock_place
        return cell if clock is None else pl.concat_str(cell, pl.col(_cell(clock)), separator=" ")
    if field.kind == "mask":
        return cell.str.strip_prefix("0x").str.to_integer(base=16, strict=False, dtype=pl.Int64)
    if field.kind == "flag":
        return pl.when(cell.is_in(("Active", "Not Active"))).then(cell == "Active")
    return pl.when(~missing(cell)).then(cell.str.strip_chars())


def _bare(cell: pl.Expr, field: Field) -> pl.Expr:
    if field.prefix:
        cell = cell.str.strip_prefix(field.prefix)
    return cell.str.strip_suffix(field.unit) if field.unit else cell
