"""Cells of delimited lines as 64-bit words of a padded buffer, for reading whole columns without cutting texts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

WORD = 8
_PAD = 32
_COMMA, _LINE_FEED, _BLANK = (ord(char) for char in ",\n ")


@dataclass(frozen=True, eq=False)
class CellWords:
    """Where the cells of those lines lie that have the right number of cells.

    ``edges`` has the shape (columns + 1, lines) and points into the buffer: two bytes before each cell, and to where
    the last one ends. ``line_ends`` is of all lines; ``lines`` numbers the right ones from 0.
    """

    buffer: bytes
    edges: np.ndarray
    lines: np.ndarray
    line_ends: np.ndarray

    @property
    def size(self) -> int:
        """The number of all lines."""
        return len(self.line_ends)

    @classmethod
    def of(cls, data: bytes, columns: int) -> CellWords | None:
        """The cells of whole lines, separated by a comma and a blank; None if there is no line."""
        if not data:
            return None
        buffer = b"".join((b"\0" * _PAD, data, b"" if data.endswith(b"\n") else b"\n", b"\0" * _PAD))
        text = np.frombuffer(buffer, np.uint8)
        mark = text[:-1] == _COMMA
        mark &= text[1:] == _BLANK
        mark |= text[:-1] == _LINE_FEED
        marks = np.flatnonzero(mark)
        feeds = np.flatnonzero(text[marks] == _LINE_FEED)
        line_ends = marks[feeds]
        lines = np.flatnonzero(np.diff(feeds, prepend=-1) == columns)
        edges = np.empty((columns + 1, len(lines)), dtype=np.int64)
        edges[0] = np.append(_PAD - 1, line_ends[:-1])[lines] - 1
        if len(lines) == len(feeds):
            edges[1:] = marks.reshape(-1, columns).T
        else:
            for column in range(columns):
                edges[column + 1] = marks[feeds[lines] + (column + 1 - columns)]
        return cls(buffer, edges, lines, line_ends)

    def starts(self, column: int) -> np.ndarray:
        """Where the cells of a column begin."""
        return self.edges[column] + 2

    def ends(self, column: int) -> np.ndarray:
        """Where they end."""
        return self.edges[column + 1]

    def words(self, places: np.ndarray, size: int = WORD) -> np.ndarray:
        """The unsigned numbers of 1, 2, 4 or 8 bytes that begin at these places of the buffer."""
        every = np.ndarray((len(self.buffer) - size + 1,), dtype=f"<u{size}", buffer=self.buffer, strides=(1,))
        return every[places]

    def text(self, column: int, row: int) -> str:
        """One cell; ``row`` counts the lines that have the right number of cells."""
        begin, end = self.edges[column : column + 2, row].tolist()
        return self.buffer[begin + 2 : end].decode("utf-8", "replace")

    def line(self, number: int) -> str:
        """One of all lines, counted from 0."""
        begin = self.line_ends[number - 1] + 1 if number else _PAD
        return self.buffer[begin : self.line_ends[number]].decode("utf-8", "replace")

    def at(self, places: np.ndarray, text: bytes) -> np.ndarray:
        """True where these bytes (eight at most) stand at a place."""
        if not text:
            return np.ones(len(places), dtype=bool)
        value, size = int.from_bytes(text, "little"), next(n for n in (1, 2, 4, 8) if n >= len(text))
        words = self.words(places, size)
        return words == value if size == len(text) else words & words.dtype.type((1 << 8 * len(text)) - 1) == value

    def equal(self, column: int, text: str) -> np.ndarray:
        """True where a cell is that text."""
        data = text.encode()
        begin = self.starts(column)
        same = self.ends(column) - begin == len(data)
        for cut in range(0, len(data), WORD):
            same &= self.at(begin + cut, data[cut : cut + WORD])
        return same

    def digits(self, begin: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The number in each span of one to eight digits, and where the span is that."""
        length = end - begin
        shortest, longest = int(length.min()), int(length.max())
        valid = np.ones(len(length), dtype=bool)
        if shortest < 1 or longest > WORD:
            valid = (length >= 1) & (length <= WORD)
            length = np.clip(length, 1, WORD)
            longest = WORD
        size = 4 if longest <= 4 else WORD
        word = self.words(end - size, size)
        kind = word.dtype.type
        drop = (8 * (size - length)).astype(word.dtype)
        # What stands before the span gives way to zeros.
        word = ((word >> drop) << drop) | (kind(_each(size, ord("0"))) & ~(~kind(0) << drop))
        word ^= kind(_each(size, ord("0")))
        valid &= are_digits(word)
        word = (word * kind(10) + (word >> kind(8))) & kind(_each(size, 0xFF, every=2))
        word = (word * kind(100) + (word >> kind(16))) & kind(_each(size, 0xFFFF, every=4))
        if size == WORD:
            word = (word * kind(10_000) + (word >> kind(32))) & kind(0xFFFFFFFF)
        return word, valid


def are_digits(word: np.ndarray) -> np.ndarray:
    """True where each byte of a word, less the character 0, is a digit."""
    kind, size = word.dtype.type, word.dtype.itemsize
    return ((word + kind(_each(size, 0x76))) | word) & kind(_each(size, 0x80)) == 0


def _each(size: int, value: int, every: int = 1) -> int:
    """A word of ``size`` bytes that repeats a value in each ``every``-th byte."""
    return sum(value << 8 * at for at in range(0, size, every))
