"""Columns of timestamps such as ``2026/02/15 06:12:48.455`` read as words."""

from __future__ import annotations

from datetime import datetime

import numpy as np

from gpudiag.readers._delimited.cell_words import CellWords, are_digits
from gpudiag.units import FIRST_YEAR, LAST_YEAR, SECOND_US

_BYTES = 23
_DAY_BYTES = 11
_MOST_DAYS = 400
_COLONS = np.uint64(int.from_bytes(b"00:00:00", "little"))
_POINT_DIGITS = np.uint32(int.from_bytes(b".000", "little"))


def to_timestamps(cells: CellWords, column: int, day_format: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Timestamps in microseconds, and where they are valid; None if days change all the time.

    ``day_format`` is that of the first eleven characters, the mark between day and clock included.
    """
    begin = cells.starts(column)
    days = _days(cells, begin, day_format)
    if days is None:
        return None
    day, valid = days
    clock = cells.words(begin + _DAY_BYTES) ^ _COLONS
    milli = cells.words(begin + _BYTES - 4, 4) ^ _POINT_DIGITS
    valid = valid & (cells.ends(column) - begin == _BYTES) & are_digits(clock) & are_digits(milli)
    # A colon or point elsewhere is no zero after the difference.
    valid &= (clock & np.uint64(0x0000FF0000FF0000) == 0) & (milli & np.uint32(0xFF) == 0)
    hour, minute, second = (_digit(clock, at) * 10 + _digit(clock, at + 1) for at in (0, 3, 6))
    valid &= (hour < 24) & (minute < 60) & (second < 60)
    fraction = (_digit(milli, 1) * 10 + _digit(milli, 2)) * 10 + _digit(milli, 3)
    timestamps = day + ((hour * 60 + minute) * 60 + second) * SECOND_US + fraction * 1000
    return timestamps.view("datetime64[us]"), valid


def _digit(word: np.ndarray, at: int) -> np.ndarray:
    kind = word.dtype.type
    return ((word >> kind(8 * at)) & kind(0xFF)).astype(np.int64)


def _days(cells: CellWords, begin: np.ndarray, day_format: str) -> tuple[np.ndarray, np.ndarray] | None:
    """The day of each timestamp in µs since 1970, and where it is one: read once for each run of equal days."""
    first, rest = cells.words(begin), cells.words(begin + _DAY_BYTES - 8)
    turns = np.flatnonzero((first[1:] != first[:-1]) | (rest[1:] != rest[:-1])) + 1
    if len(turns) > _MOST_DAYS:
        return None
    edges = np.array([0, *turns.tolist(), len(begin)])
    days = [_day(cells.buffer[at : at + _DAY_BYTES], day_format) for at in begin[edges[:-1]].tolist()]
    lengths = np.diff(edges)
    known = np.repeat(np.array([day is not None for day in days]), lengths)
    return np.repeat(np.array([day or 0 for day in days], dtype=np.int64), lengths), known


def _day(text: bytes, day_format: str) -> int | None:
    try:
        day = datetime.strptime(text.decode("ascii"), day_format)
    except ValueError:
        return None
    return int((day - datetime(1970, 1, 1)).total_seconds()) * SECOND_US if FIRST_YEAR <= day.year < LAST_YEAR else None
