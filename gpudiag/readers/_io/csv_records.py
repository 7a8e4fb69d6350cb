"""The records of a CSV text. A quote that nobody closes costs its own line, not the rest of the file."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, count, islice
from pathlib import Path

from gpudiag.errors import InputError
from gpudiag.readers._io.problems import ProblemLog

STRAY_QUOTE = "row with a quote that nothing closes"
RECORD_LINES = 1000
"""Lines that the cells of one record hold at most."""
OPEN_COMMA = "number whose comma may be a decimal one or set thousands apart"
_POINT, _COMMA = (re.compile(rf"\s*[+-]?\d+{mark}\d+(?:[eE][+-]?\d+)?\s*") for mark in (r"\.", ","))
_THOUSANDS = re.compile(r"\s*[+-]?[1-9]\d{0,2},\d{3}\s*")
_SHOWN_RECORDS = 256
_read = partial(csv.reader, skipinitialspace=True)


def cells_of(line: str, delimiter: str = ",", holding: str = "") -> list[str]:
    """The cells of one line, without a byte order mark; none where it is no CSV or has not this text."""
    if holding not in line:
        return []
    try:
        return next(_read([line.lstrip("\ufeff")], delimiter=delimiter), [])
    except csv.Error:  # a cell of more than 131,072 characters
        return []


def number_of(cell: str) -> float:
    """Raises ValueError, also for an underscore within digits: only Python takes ``64_64`` for a number."""
    return float(cell if "_" not in cell else "")


def records(text: str, delimiter: str, problems: ProblemLog) -> Iterator[tuple[int, list[str]]]:
    """Number of the first line and cells of each record; empty lines are left out.

    A record of several lines is taken where it has as many cells as the one before it, else its first line is lost.
    """
    lines = text.replace("\0", "").lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    at, width = 0, 0
    while at < len(lines):
        size, cells = _record(lines, at, delimiter, width)
        if cells:
            yield at + 1, cells
            width = len(cells)
        elif lines[at]:
            problems.add(STRAY_QUOTE, line=at + 1, example=lines[at], lost=True)
        at += size


def header_and_rows(
    text: str, delimiter: str, problems: ProblemLog, path: Path | str, *, numbers: bool = False
) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """The column names of line 1 and the records below it, as in :func:`records`; decimal commas as points where commas
    do not part the cells, or all of these are ``numbers``.

    Raises InputError where a quote makes line 1 no header by itself: a row would be taken for the names, or for a part
    of the last one.
    """
    rows = records(text, delimiter, problems)
    number, names = next(rows, (0, []))
    if number != 1 or any("\n" in name for name in names):
        raise InputError(
            f"{path}: expected the column names in line 1, but a quote in that line is not closed there; close the "
            "quote or remove it."
        )
    return names, _with_points(rows, problems) if numbers or delimiter != "," else rows


def _with_points(rows: Iterator[tuple[int, list[str]]], problems: ProblemLog) -> Iterator[tuple[int, list[str]]]:
    first = list(islice(rows, _SHOWN_RECORDS))
    held = [(line, cell) for line, cells in first for cell in cells]
    rows = chain(first, rows)
    if has_decimal_comma(cell for _, cell in held):
        return ((line, [_with_point(cell) for cell in cells]) for line, cells in rows)
    for line, cell in held:
        if _THOUSANDS.fullmatch(cell):
            problems.add(OPEN_COMMA, line=line, example=cell)
    return rows


def has_decimal_comma(cells: Iterable[str]) -> bool:
    """Whether numbers are written with a comma: one that sets no thousands apart, and no point in another number."""
    numbers = [cell for cell in cells if _COMMA.fullmatch(cell) or _POINT.fullmatch(cell)]
    return not any(map(_POINT.fullmatch, numbers)) and not all(map(_THOUSANDS.fullmatch, numbers))


def _with_point(cell: str) -> str:
    return cell.replace(",", ".") if _COMMA.fullmatch(cell) else cell


def _record(lines: Sequence[str], at: int, delimiter: str, width: int) -> tuple[int, list[str]]:
    """How many lines the record has, and its cells; none where it is damaged or the line is empty. A blank behind a
    comma is of no cell.
    """
    if '"' not in lines[at] and f"{delimiter} " not in lines[at]:
        return 1, lines[at].split(delimiter) if lines[at] else []
    given = islice(lines, at, at + RECORD_LINES)
    taken = count()
    try:
        cells = next(_read((f"{line}\n" for line, _ in zip(given, taken, strict=False)), delimiter=delimiter))
        size = next(taken)
        if size > 1:  # strict, a quote must be closed at the end of its cell
            next(_read((f"{line}\n" for line in lines[at : at + size]), delimiter=delimiter, strict=True))
    except csv.Error:
        return 1, []
    return (1, []) if size > 1 and width and len(cells) != width else (size, cells)
