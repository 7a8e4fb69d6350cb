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

    ``starts`` and ``ends`` have the shape (columns, lines) and point into the buffer; ``lines`` numbers the lines
    from 0; ``size`` counts all lines.
    """

    buffer: bytes
    starts: np.ndarray
    ends: np.ndarray
    lines: np.ndarray
    size: int

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
        lines = np.flatnonzero(np.diff(feeds, prepend=-1) == columns)
        if len(lines) == len(feeds):
            at = marks.reshape(-1, columns)
        else:
            at = marks[feeds[lines, None] + np.arange(1 - columns, 1)]
        ends = np.ascontiguousarray(at.T)
        before = np.append(_PAD - 1, marks[feeds[:-1]])[lines]
        starts = np.vstack([before + 1, ends[:-1] + 2])
        return cls(buffer, starts, ends, lines, len(feeds))

    def words(self, places: np.ndarray, size: int = WORD) -> np.ndarray:
        """The unsigned numbers of 1, 2, 4 or 8 bytes that begin at these places of the buffer."""
        every = np.ndarray((len(self.buffer) - size + 1,), dtype=f"<u{size}", buffer=self.buffer, strides=(1,))
        return every[places]

    def text(self, column: int, row: int) -> str:
        """One cell; ``row`` counts the lines that have the right number of cells."""
        return self.buffer[self.starts[column][row] : self.ends[column][row]].decode("utf-8", "replace")

    def at(self, places: np.ndarray, text: bytes) -> np.ndarray:
        """True where these bytes (eight at most) stand at a place."""
        value, size = int.from_bytes(text, "little"), next(n for n in (1, 2, 4, 8) if n >= len(text))
        words = self.words(places, size)
        return words == value if size == len(text) else words & words.dtype.type((1 << 8 * len(text)) - 1) == value

    def equal(self, column: int, text: str) -> np.ndarray:
        """True where a cell is that text."""
        data = text.encode()
        same = self.ends[column] - self.starts[column] == len(data)
        for cut in range(0, len(data), WORD):
            same &= self.at(self.starts[column] + cut, data[cut : cut + WORD])
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
