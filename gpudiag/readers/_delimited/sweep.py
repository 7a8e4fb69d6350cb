"""One pass over a delimited log: blocks are parsed in parallel, and only lines that failed are looked at one by one.

A line that is no good row is a header (the same again, or one with other columns, from which on those hold), a
line that states the time, a row of a second writer with other columns, a row torn or run together, or prose.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import pairwise

import numpy as np
import polars as pl

from gpudiag.readers._delimited import fast_rows
from gpudiag.readers._delimited.grid import Layout, parse, split_lines
from gpudiag.readers._delimited.pieces import BlockRows, between, by_gpu, join, piece_of, piece_of_fast_rows
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import LineBlock
from gpudiag.readers._shape.moments import Moment, read_moment
from gpudiag.units import FIRST_YEAR, LAST_YEAR

HeaderTest = Callable[[str, Callable[[], list[str]]], Layout | None]
"""The layout that a line announces, told from the line and (if asked for) those below; None if it is no header."""

TORN = "torn row"
FAR = f"row with a date before {FIRST_YEAR} or after {LAST_YEAR - 1}"
OTHER = "line that is no sample"
REPEATED = "repeated header"
NEW_HEADER = "header with other columns"
NULS = "run of NUL bytes"

_SAMPLE_LINES = 40
_MANY_LINES = 4000
_ENOUGH = 3
"""Rows without units among rows with units are a second writer from this many on; fewer are torn."""

_TIMESTAMP_RE = r"\d{4}[-/]\d\d[-/]\d\d[ T_]\d\d:\d\d:\d\d"
_RUN_TOGETHER = rf"^.+({_TIMESTAMP_RE}.*)$"
_YEAR = re.compile(r"\s*\"?(\d{4})[-/]\d\d[-/]\d\d[ T]")
_ROW_LIKE = re.compile(rf"{_TIMESTAMP_RE}|\d (?:%|MiB|W|MHz)(?:,|$)|\d,.*\d")


@dataclass(frozen=True, eq=False)
class _Left:
    """Lines of a block that are no good rows so far: their numbers and texts, and where its good rows are.

    ``breaks`` are the numbers of its lines that are no row, headers among them; ``piece`` is a place in ``pieces``.
    """

    piece: int
    breaks: np.ndarray
    lines: np.ndarray
    texts: list[str | None]


@dataclass
class Sweep:
    """What a pass finds: good rows in the order of the file, and the lines between them.

    ``layout`` is the one that holds at the start. ``breaks`` are the numbers of all lines that are no row;
    ``moments`` and ``others`` the lines that state a time and the lines of prose, by number. ``levels``: the header
    that was found is of so many lines.
    """

    layout: Layout
    announces: HeaderTest
    log: ProblemLog
    levels: int = 1
    pieces: list[BlockRows] = field(default_factory=list)
    breaks: list[np.ndarray] = field(default_factory=list)
    moments: list[tuple[int, Moment]] = field(default_factory=list)
    others: list[tuple[int, str]] = field(default_factory=list)
    marks: list[tuple[int, str, str]] = field(default_factory=list)
    _headers: dict[str, Layout] = field(default_factory=dict)
    _layouts: dict[Layout, Layout] = field(default_factory=dict)
    """Layouts met, by what is read under them."""
    _left: list[_Left] = field(default_factory=list)

    def run(self, blocks: Iterator[LineBlock], header: int = 0) -> None:
        """Read all blocks of a log; its header is its ``header``-th line, 0 for a log without one."""
        for work in _worked(blocks, header, lambda: self.layout):
            if work.block.nul_bytes:
                self.log.add(NULS, line=work.block.first_line)
            if work.top:
                self._begin(work.top)
            if work.layout is not self.layout:  # it changed while the block was on its way
                work = _parse(work.block, header, self.layout)
            if len(work.bad):
                self._settle(work)
            else:
                self.pieces.append(work.piece)
        self._look_again()

    def _begin(self, top: Sequence[str]) -> None:
        """Take note of the header that was found, and of the lines above it."""
        self._headers[top[-1]] = self.layout
        self.breaks.append(np.arange(1, len(top) + 1))
        above = top[: len(top) - self.levels]
        self._count(np.arange(1, len(above) + 1), above)

    def _settle(self, work: _ParsedBlock) -> None:
        """Sort out a block in which some lines are no good rows."""
        first_line, bad, texts = work.first_line, work.bad, work.texts
        at, layouts = self._headers_in(work)
        if changes := any(layout is not self.layout for layout in layouts):
            self._look_again()
            found, rest = [], []
            for layout, places in _regimes(len(work.lines), at, [self.layout, *layouts]):
                part = parse(work.lines.gather(places), layout)
                found.append(piece_of(part, layout, (first_line + places).astype(np.int32)))
                rest.append(places[_positions(part.bad)])
            left = np.setdiff1d(np.concatenate(rest), at)
            texts = work.lines.gather(left).to_list()
            breaks = np.setdiff1d(first_line + np.union1d(bad, left), np.concatenate([rows.lines for rows in found]))
            self.layout = layouts[-1]
        else:
            found, left, breaks = [work.piece], bad, first_line + bad
            if len(at):
                left = np.setdiff1d(bad, at, assume_unique=True)
                texts = [text for text in texts if text not in self._headers]
        self.pieces.append(join(found))
        self._left.append(_Left(len(self.pieces) - 1, breaks, first_line + left, texts))
        if changes or sum(len(left.lines) for left in self._left) > _MANY_LINES:
            self._look_again()

    def _headers_in(self, work: _ParsedBlock) -> tuple[np.ndarray, list[Layout]]:
        """Places of header lines and the layout that each announces."""
        bad = work.bad.tolist()
        self._layouts.setdefault(self.layout.nameless, self.layout)
        for text, place in _firsts(work.texts, bad).items():
            if text not in self._headers and not text[0].isdigit():
                below = partial(_lines_below, work, place)
                if layout := self.announces(text, below):
                    self._headers[text] = self._layouts.setdefault(layout.nameless, layout)
        at = [(place, text) for place, text in zip(bad, work.texts, strict=True) if text in self._headers]
        layouts = [self._headers[text] for _, text in at]
        met: dict[str, list[tuple[int, str]]] = {REPEATED: [], NEW_HEADER: []}
        for header, (old, new) in zip(at, pairwise([self.layout, *layouts]), strict=True):
            met[REPEATED if old is new else NEW_HEADER].append(header)
        for kind, headers in met.items():
            if headers:
                self.log.add(kind, len(headers), line=work.first_line + headers[0][0], example=headers[0][1])
        return np.array([place for place, _ in at], dtype=np.int64), layouts

    def _look_again(self) -> None:
        """Find rows among the lines left over, of several blocks at once; what is none is counted."""
        blocks, self._left = self._left, []
        if not blocks:
            return
        lines = np.concatenate([block.lines for block in blocks])
        texts = pl.Series([text for block in blocks for text in block.texts], dtype=pl.String)
        found = self._second_look(lines, texts)
        taken = np.concatenate([lines[:0], *(piece.lines for piece in found)])
        for block in blocks:
            self.breaks.append(block.breaks[~np.isin(block.breaks, taken)])
            if len(block.lines):
                parts = [between(piece, int(block.lines[0]), int(block.lines[-1])) for piece in found]
                more = [part for part in parts if len(part) or part.marks]
                self.pieces[block.piece] = join([self.pieces[block.piece], *more])

    def _second_look(self, numbers: np.ndarray, lines: pl.Series) -> list[BlockRows]:
        """Rows among lines with these numbers."""
        found: list[BlockRows] = []
        left = np.flatnonzero(lines.is_not_null().to_numpy())
        for layout in self._others():
            cells = lines.gather(left).str.count_matches(layout.separator, literal=True)
            some = left[(cells >= len(layout.fields) - 1).to_numpy()]  # with fewer a row is bad
            part = parse(lines.gather(some), layout) if len(some) else None
            good = np.ones(len(some), dtype=bool) if part is None or part.bad is None else ~part.bad.to_numpy()
            if (
                part is None
                or not good.any()
                or (layout.writes_units != self.layout.writes_units and good.sum() < _ENOUGH)
            ):
                continue
            found.append(piece_of(part, layout, numbers[some].astype(np.int32)))
            left = np.setdiff1d(left, some[good], assume_unique=True)
        rows_in_one = lines.gather(left).str.extract(_RUN_TOGETHER)
        if self.layout.starts_with_timestamp and rows_in_one.is_not_null().any():
            at = np.flatnonzero(rows_in_one.is_not_null().to_numpy())
            part = parse(rows_in_one.gather(at), self.layout.relaxed())
            found.append(piece_of(part, self.layout, numbers[left[at]].astype(np.int32)))
        self._count(numbers[left], lines.gather(left).to_list())
        return found

    def _others(self) -> list[Layout]:
        """Every other way in which a row of this file may be written."""
        known = list({id(layout): layout for layout in (self.layout, *self._headers.values())}.values())
        return [layout.relaxed() for layout in known] + [layout.bare() for layout in known if layout.writes_units]

    def _count(self, numbers: np.ndarray, texts: Sequence[str]) -> None:
        met: dict[str, list[tuple[int, str]]] = {}
        for place, text in zip(numbers.tolist(), texts, strict=True):
            if moment := self._moment(text):
                self.moments.append((place, moment))
            elif not text.strip():
                continue
            elif mark := self._mark(text):
                self.marks.append((place, *mark))
            elif _ROW_LIKE.search(text):
                year = _YEAR.match(text)
                far = year is not None and not FIRST_YEAR <= int(year[1]) < LAST_YEAR
                met.setdefault(FAR if far else TORN, []).append((place, text))
            else:
                self.others.append((place, text))
                met.setdefault(OTHER, []).append((place, text))
        for kind, lines in met.items():
            self.log.add(kind, len(lines), line=min(lines)[0], example=lines[0][1], lost=kind != OTHER)

    def _moment(self, text: str) -> Moment | None:
        """The time a line states; a line of several cells is a torn row where rows have a time of their own."""
        cells = "time" in self.layout.targets and self.layout.separator.strip() in text
        return None if cells else read_moment(text)

    def _mark(self, text: str) -> tuple[str, str] | None:
        """Timestamp and text of a row whose numbers are all blank but for one cell of text."""
        if self.layout.fields[0].kind != "time":
            return None
        timestamp, *rest = text.split(self.layout.separator.strip() or " ")
        if len(rest) < 2 or (rest[0].strip() and rest[1].strip()):
            return None
        filled = [cell for cell in map(str.strip, rest) if cell]
        if len(filled) != 1 or not re.match("[^\\W\\d]", filled[0]):
            return None
        timestamp = timestamp.strip()
        known = self.layout.timestamp.read(pl.Series([timestamp])).is_not_null().all()
        return (timestamp, filled[0]) if known else None


def _positions(bad: pl.Series | None) -> np.ndarray:
    return np.empty(0, dtype=np.int64) if bad is None else bad.arg_true().to_numpy().astype(np.int64)


def _firsts(texts: Sequence[str | None], places: Sequence[int]) -> dict[str, int]:
    """The place of the first line with each text; blank lines are left out."""
    firsts: dict[str, int] = {}
    for text, place in zip(texts, places, strict=True):
        if text:
            firsts.setdefault(text, place)
    return firsts


def _lines_below(work: _ParsedBlock, place: int) -> list[str]:
    return work.lines.slice(place + 1, _SAMPLE_LINES).drop_nulls().to_list()


def _regimes(size: int, at: np.ndarray, layouts: Sequence[Layout]) -> Iterator[tuple[Layout, np.ndarray]]:
    """Each layout in force in a block, with the places of the lines it holds for; the first holds from the top."""
    distinct = list({id(layout): layout for layout in layouts}.values())
    numbers = {id(layout): number for number, layout in enumerate(distinct)}
    of_header = np.array([numbers[id(layout)] for layout in layouts])
    of_line = of_header[np.searchsorted(at, np.arange(size), side="right")]
    order = np.argsort(of_line, kind="stable")
    ends = np.cumsum(np.bincount(of_line, minlength=len(distinct)))
    yield from zip(distinct, np.split(order, ends[:-1]), strict=True)


@dataclass(frozen=True, eq=False)
class _ParsedBlock:
    """A block under a layout: its good rows, and the other lines with their 0-based numbers.

    ``top`` holds the lines to the header, ``data`` what is below it; ``first_line`` is the number of its first line.
    """

    block: LineBlock
    layout: Layout
    top: list[str]
    data: bytes
    first_line: int
    piece: BlockRows
    bad: np.ndarray
    texts: list[str | None]

    @cached_property
    def lines(self) -> pl.Series:
        """All lines, split where somebody asks: hardly ever."""
        return split_lines(self.data)


def _parse(block: LineBlock, header: int, layout: Layout) -> _ParsedBlock:
    data, top = _below(block.data, header) if block.first_line == 1 else (block.data, [])
    first_line = block.first_line + len(top)
    piece, bad, texts = _rows(data, layout, first_line)
    return _ParsedBlock(block, layout, top, data, first_line, by_gpu(piece), bad, texts)


def _below(data: bytes, header: int) -> tuple[bytes, list[str]]:
    """The data below the header line, and the lines to it."""
    cut = 0
    for _ in range(header):
        cut = data.find(b"\n", cut) + 1 or len(data)
    return data[cut:], data[:cut].decode().split("\n")[:header]


def _rows(data: bytes, layout: Layout, first_line: int) -> tuple[BlockRows, np.ndarray, list[str | None]]:
    """The good rows, the places of other lines, and these (None if blank): the short way if it goes."""
    short = fast_rows.read(data, layout) if fast_rows.takes(layout) else None
    if short is not None:
        piece = piece_of_fast_rows(short, layout, (short.rows + first_line).astype(np.int32))
        if piece is not None:
            bad = short.bad
            return piece, bad, [short.cells.line(place) or None for place in bad.tolist()]
    lines = split_lines(data)
    parsed = parse(lines, layout)
    bad = _positions(parsed.bad)
    return piece_of(parsed, layout, _numbers(first_line, len(lines))), bad, lines.gather(bad).to_list()


def _numbers(first: int, size: int) -> np.ndarray:
    return np.arange(first, first + size, dtype=np.int32)


def _worked(blocks: Iterator[LineBlock], header: int, layout_now: Callable[[], Layout]) -> Iterator[_ParsedBlock]:
    """Work on blocks in order, each parsed under the layout that held when it was handed out."""
    first = next(blocks, None)
    if first is None:
        return
    yield _parse(first, header, layout_now())
    second = next(blocks, None)
    if second is None:
        return
    workers = min(4, os.cpu_count() or 1)
    with ThreadPoolExecutor(workers) as pool:
        waiting = deque([pool.submit(_parse, second, header, layout_now())])
        for block in blocks:
            waiting.append(pool.submit(_parse, block, header, layout_now()))
            if len(waiting) > workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
