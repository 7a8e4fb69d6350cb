"""The short way for regular rows: numbers straight from bytes, eight digits at a time, without a text per cell.

A cell of up to eight digits is one 64-bit word; three multiplications turn it into a number (D. Lemire,
"Quickly parsing eight digits", 2018), here for a whole column at once. What is not exactly as expected is left
to :mod:`gpudiag.readers._delimited.grid`, which knows every exception and takes twice as long.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from gpudiag.readers._delimited.cell_words import WORD, CellWords
from gpudiag.readers._delimited.clock_words import to_timestamps
from gpudiag.readers._delimited.grid import Field, Layout, is_missing

_REGULAR = 0.8
"""Share of regular rows below which the long way is the shorter one."""

_MANY_ROWS = 10_000
_UNEVEN_STEPS = (3, 8, 5, 13, 7, 11)
_MOST_DECIMALS = 6
_MASK_BYTES = 18
_TIMESTAMPS = ("%Y/%m/%d %H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f")

ParsedColumn = tuple[np.ndarray | None, np.ndarray]
"""The values (None if every cell says that it is unknown), and where they are valid."""


@dataclass(frozen=True, eq=False)
class FastRows:
    """The regular rows of a block: columns by target, and their 0-based line numbers among ``size`` lines."""

    columns: dict[str, np.ndarray]
    rows: np.ndarray
    size: int
    cells: CellWords
    _kept: np.ndarray

    @property
    def bad(self) -> np.ndarray:
        """The lines that are no regular row."""
        if len(self.rows) == self.size:
            return np.empty(0, dtype=np.int64)
        other = np.ones(self.size, dtype=bool)
        other[self.rows] = False
        return np.flatnonzero(other)

    def text(self, place: int, row: int) -> str:
        """The cell in a column of a regular row."""
        return self.cells.text(place, int(self._kept[row]))

    def mostly_stays(self, place: int, first: np.ndarray, code: np.ndarray) -> bool:
        """As :meth:`stays`; of many rows told from one in eight, at uneven steps: GPUs that take turns all come up."""
        if len(code) < _MANY_ROWS:
            return self.stays(place, first, code)
        step = np.resize(_UNEVEN_STEPS, len(code) // 8 + 1)
        some = np.concatenate([first, (at := np.cumsum(step))[at < len(code)]])
        own = np.concatenate([np.arange(len(first)), code[some[len(first) :]]])
        return replace(self, _kept=self._kept[some]).stays(place, np.arange(len(first)), own)

    def stays(self, place: int, first: np.ndarray, code: np.ndarray) -> bool:
        """True if the cells of each code are the same text, that of the code's first row."""
        begin, end = self.cells.starts(place)[self._kept], self.cells.ends(place)[self._kept]
        length = end - begin
        if (length != length[first][code]).any():
            return False
        for cut in range(0, int(length.max()), WORD):
            word = self.cells.words(begin + cut)
            if cut + WORD > length.min():  # bytes beyond the cell belong to its neighbours
                gone = np.minimum(8 * np.maximum(cut + WORD - length, 0), 63).astype(np.uint64)
                word = word << gone
            if (word != word[first][code]).any():
                return False
        return True


def takes(layout: Layout) -> bool:
    """True if rows of this layout can go the short way."""
    simple = not (layout.tolerant or layout.decimal_comma or layout.timestamp.zone) and layout.separator == ", "
    timed = "time" not in layout.targets or (layout.timestamp.kind == "text" and layout.timestamp.format in _TIMESTAMPS)
    named = "index" in layout.targets or not {"uuid", "bus_id", "host"} & set(layout.targets)
    known = all(field.kind != "flag" and field.scale == 1.0 and field.target != "event" for _, field in layout.used)
    return simple and timed and named and known


def read(data: bytes, layout: Layout) -> FastRows | None:
    """The regular rows of whole lines; None if too few are regular."""
    cells = CellWords.of(data, len(layout.fields))
    if cells is None or len(cells.lines) < _REGULAR * cells.size:
        return None
    columns: dict[str, np.ndarray] = {}
    good = np.ones(len(cells.lines), dtype=bool)
    for place, field in layout.used:
        if field.kind == "text":
            continue
        column = _column(cells, place, field, layout)
        if column is None:
            return None
        values, valid = column
        good &= valid
        if values is not None:
            columns[field.target] = values
    kept = np.flatnonzero(good)
    if len(kept) < _REGULAR * cells.size:
        return None
    if len(kept) < len(good):
        columns = {name: values[kept] for name, values in columns.items()}
    return FastRows(columns, cells.lines[kept], cells.size, cells, kept)


def _column(cells: CellWords, place: int, field: Field, layout: Layout) -> ParsedColumn | None:
    """One column; None if its first cells are neither what it holds nor mostly unknown."""
    if field.kind == "time":
        return to_timestamps(cells, place, layout.timestamp.format[:9])
    shown = [cells.text(place, row) for row in range(min(20, len(cells.lines)))]
    unknown = [text for text in shown if is_missing(text)]
    if 2 * len(unknown) > len(shown):
        usual, times = Counter(unknown).most_common(1)[0]
        if 2 * times > len(shown):
            return None, cells.equal(place, usual)
    if field.kind == "mask":
        return _masks(cells, place)
    return _numbers(cells, place, field, shown)


def _numbers(cells: CellWords, place: int, field: Field, shown: list[str]) -> ParsedColumn | None:
    """Numbers with as many decimals as most of the first ones have."""
    numbers = [text.removeprefix(field.prefix).removesuffix(field.unit) for text in shown]
    counts = Counter(len(text.partition(".")[2]) for text in numbers if text.replace(".", "", 1).isdecimal())
    decimals = counts.most_common(1)[0][0] if counts else _MOST_DECIMALS + 1
    prefix, unit = field.prefix.encode(), field.unit.encode()
    if decimals > _MOST_DECIMALS or len(unit) > WORD or len(prefix) > 1:
        return None
    start = cells.starts(place)
    begin, end = start + len(prefix), cells.ends(place) - len(unit)
    valid = cells.at(end, unit) & cells.at(start, prefix)
    if not decimals:
        whole, fits = cells.digits(begin, end)
        return whole.astype(np.int32), valid & fits
    point = end - decimals - 1
    whole, fits = cells.digits(begin, point)
    part, fits_too = cells.digits(point + 1, end)
    # One division of whole numbers rounds as reading the decimal does.
    values = (whole.astype(np.float64) * 10**decimals + part) / 10**decimals
    return values, valid & fits & fits_too & cells.at(point, b".")


def _masks(cells: CellWords, place: int) -> ParsedColumn:
    """Bit masks such as ``0x0000000000000004``: the last eight hexadecimal digits, above which all are zero."""
    begin, end = cells.starts(place), cells.ends(place)
    valid = (end - begin == _MASK_BYTES) & cells.at(begin, b"0x000000") & cells.at(begin + 8, b"00")
    word = cells.words(end - WORD)
    value = np.zeros(len(word), dtype=np.uint64)
    for shift in range(0, 64, 8):
        char = (word >> np.uint64(shift)) & np.uint64(0xFF)
        letter = char | np.uint64(0x20)
        digit, is_letter = char - np.uint64(ord("0")), (letter >= ord("a")) & (letter <= ord("f"))
        valid &= (digit <= 9) | is_letter
        value = (value << np.uint64(4)) | np.where(is_letter, letter - np.uint64(ord("a") - 10), digit)
    return value.astype(np.float64), valid
