"""Bytes of a journal, looked at in many places at once: eight bytes at a time, as whole columns of numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

_EACH = np.uint64(0x0101010101010101)
_HIGH = np.uint64(0x8080808080808080)
_ZEROS = np.uint64(0x3030303030303030)
"""Eight times the digit 0."""
_PAIRS = np.uint64(0x000000FF000000FF)
_INLINE = 12
"""Bytes that a string view holds itself."""
MARGIN = 80
"""A look from any place of a line reaches less far than this."""
ANY = b"\0"
"""Stands for any byte in what is looked for."""
SCAN_BYTES = 512 * 1024
"""So much is searched for line ends at a time, to stay in the processor's cache."""

Positions = np.ndarray
"""Positions in the text, int64."""


class Text:
    """Whole lines. All places asked about must lie in the first ``lines`` lines or at their ends.

    ``data`` is not copied: it must stay as it is.
    """

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._words = self._windows("<u8")
        flat = np.frombuffer(data, np.uint8)
        parts = range(0, len(flat), SCAN_BYTES)
        ends = [(flat[at : at + SCAN_BYTES] == ord("\n")).nonzero()[0] + at for at in parts]
        self.ends: Positions = np.concatenate(ends) if ends else np.empty(0, "int64")
        self.starts: Positions = np.concatenate(([0], self.ends[:-1] + 1))[: len(self.ends)]
        self.lines = int(np.searchsorted(self.ends, len(data) - MARGIN))

    def _windows(self, dtype: str) -> np.ndarray:
        """What lies at each place, as many bytes as ``dtype`` has."""
        kind = np.dtype(dtype)
        return np.ndarray(max(len(self._data) - kind.itemsize + 1, 0), kind, self._data, strides=(1,))

    def find(self, what: bytes, begin: int, end: int) -> int:
        """Where ``what`` begins for the first time in one stretch, counted from its begin; -1 if it is not there."""
        return self._data[begin:end].tobytes().find(what)

    def byte_at(self, at: Positions) -> np.ndarray:
        """The byte at each place."""
        return np.frombuffer(self._data, np.uint8)[at]

    def digit_or_minus(self, at: Positions) -> np.ndarray:
        """True where a JSON number may begin."""
        byte = self.byte_at(at)
        return (byte - np.uint8(ord("0")) < 10) | (byte == ord("-"))  # below the digits it wraps around

    def holds(self, at: Positions, what: bytes) -> np.ndarray:
        """True where the text goes on with ``what``, of at most 64 bytes."""
        if len(what) == 1:
            return self.byte_at(at) == what[0]
        return _begins(self._eights(at, _padded(len(what))), what)

    def lacks(self, at: Positions, byte: bytes, size: int) -> np.ndarray:
        """True where the next ``size`` bytes hold no ``byte``."""
        seen = self._eights(at, _padded(size))
        out = np.ones(len(at), dtype=bool)
        for column in range(seen.shape[1]):
            found = _zero_bytes(seen[:, column] ^ (_EACH * np.uint64(byte[0])))
            rest = size - 8 * column
            out &= (found if rest >= 8 else found & np.uint64((1 << 8 * rest) - 1)) == 0
        return out

    def _eights(self, at: Positions, size: int) -> np.ndarray:
        """The next ``size`` bytes of each place as a row of numbers. Copied at once they cost little more than one."""
        if size == 8:
            return self._words[at].reshape(-1, 1)
        return self._windows(f"V{size}")[at].view("<u8").reshape(len(at), size // 8)

    def search(self, at: Positions, byte: bytes, limit: Positions) -> Positions:
        """The nearest place at or behind ``at`` that holds ``byte``, at most ``limit``."""
        out, left = np.minimum(at, limit), np.arange(len(at))
        while len(left):
            near = _first_byte(_zero_bytes(self._words[out[left]] ^ (_EACH * np.uint64(byte[0]))))
            out[left] += near
            left = left[(near == 8) & (out[left] < limit[left])]
        return np.minimum(out, limit)

    def whole(self, at: Positions, what: bytes) -> tuple[np.ndarray, Positions, np.ndarray]:
        """Whole numbers behind ``what``, where each ends, and whether both are there.

        The number has up to eight digits and is spelt as in JSON.
        """
        seen = self._eights(at, _padded(len(what) + 8))
        column, shift = len(what) // 8, len(what) % 8 * 8
        digit = seen[:, column]
        if shift:
            digit = digit >> np.uint64(shift) | seen[:, column + 1] << np.uint64(64 - shift)
        digit = digit ^ _ZEROS
        size = _first_byte(((digit + np.uint64(0x7676767676767676)) | digit) & _HIGH)
        good = (size == 1) | ((size > 0) & ((digit & np.uint64(0xFF)) != 0))
        # Digits move to the end of the word, then neighbours are added by pairs, fours and eights.
        number = digit << ((8 - np.maximum(size, 1)) * 8).astype("uint64")
        number = number * np.uint64(10) + (number >> np.uint64(8))
        low, high = number & _PAIRS, (number >> np.uint64(16)) & _PAIRS
        number = (low * np.uint64(0x000F424000000064) + high * np.uint64(0x0000271000000001)) >> np.uint64(32)
        return number.astype("int32"), at + (size + len(what)), good & _begins(seen, what)

    def strings(self, begin: Positions, end: Positions) -> pa.Array:
        """The stretches as string views: the text is not copied."""
        size = np.maximum(end - begin, 0)
        first = self._words[begin]
        views = np.empty((len(begin), 2), dtype="<u8")
        views[:, 0] = size.astype("uint64") | (first << np.uint64(32))
        views[:, 1] = begin.astype("uint64") << np.uint64(32)
        short = np.flatnonzero(size <= _INLINE)
        if len(short):
            length = size[short]
            views[short, 0] = length.astype("uint64") | (first[short] & _low_bytes(np.minimum(length, 4))) << np.uint64(
                32
            )
            views[short, 1] = self._words[begin[short] + 4] & _low_bytes(np.maximum(length - 4, 0))
        buffers = [None, pa.py_buffer(views), pa.py_buffer(self._data)]
        return pa.Array.from_buffers(pa.string_view(), len(begin), buffers)


_ALL = np.uint64(2**64 - 1)


def _padded(size: int) -> int:
    """The next multiple of eight."""
    return size + -size % 8


def _begins(seen: np.ndarray, what: bytes) -> np.ndarray:
    """Where rows of words begin with ``what``."""
    padded = what.ljust(_padded(len(what)), ANY)
    mask = np.frombuffer(bytes(0 if byte == ANY[0] else 255 for byte in padded), "<u8")
    out = np.ones(len(seen), dtype=bool)
    for column, wanted in enumerate(np.frombuffer(padded, "<u8")):
        word = seen[:, column]
        out &= (word if mask[column] == _ALL else word & mask[column]) == wanted
    return out


def _low_bytes(count: np.ndarray) -> np.ndarray:
    """A mask of so many bytes, at most eight."""
    bits = (count * 8).astype("uint64")
    return np.where(bits >= 64, _ALL, (np.uint64(1) << np.minimum(bits, 63).astype("uint64")) - np.uint64(1))


def _zero_bytes(words: np.ndarray) -> np.ndarray:
    """The highest bit of the first byte that is 0, and perhaps bits behind it."""
    return (words - _EACH) & ~words & _HIGH


def _first_byte(marked: np.ndarray) -> np.ndarray:
    """Which byte holds the lowest bit; 8 if there is none."""
    below = (marked & (~marked + np.uint64(1))) - np.uint64(1)
    return (np.bitwise_count(below) >> 3).astype("int64")
