"""A file to be read: its first bytes, its encoding and its compression, without judging its name.

Sniffing looks at ``Source.head`` only, so it never reads more than 256 KB of any file; what looks at every word of a
line looks at ``Source.top`` only, so that no file takes long.
"""

from __future__ import annotations

import codecs
import hashlib
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import BinaryIO

import numpy as np

from gpudiag.errors import STANDARD_INPUT, InputError, InputNotFound, expected
from gpudiag.readers._io.freed_memory import keep_freed_memory
from gpudiag.readers._io.own_descriptor import SQLITE_MAGIC, open_bytes
from gpudiag.readers._io.unpacked import compression_of, too_large, unpacked
from gpudiag.readers._io.url import shown

HEAD_BYTES = 256 * 1024
HEAD_LINES = 4096
WHOLE_BYTES = 512 * 1024**2
"""What a compressed file that is read as a whole may unpack to."""
TOP_CHARACTERS = 32 * 1024
BLOCK_BYTES = 4 * 1024 * 1024
_LF = 10
_HOLE = re.compile(rb"(?:\A|(?<=\n))\0{64,}")
"""What a log that was emptied while its writer went on, or a crash of the machine, leaves within a text."""
_TEXT_BYTES = bytes(byte for byte in range(256) if byte >= 32 or byte in (7, 8, 9, 10, 12, 13, 27))
_PICKLES = tuple(bytes((0x80, protocol)) for protocol in range(2, 6))
_ARCHIVES = {
    "a ZIP archive": (0, (b"PK\x03\x04", b"PK\x05\x06")),
    "a tar archive": (257, (b"ustar",)),
    "a 7z archive": (0, (b"7z\xbc\xaf\x27\x1c",)),
    "a RAR archive": (0, (b"Rar!\x1a\x07",)),
    "compressed by lz4": (0, (b"\x04\x22\x4d\x18",)),
    "compressed by compress": (0, (b"\x1f\x9d",)),
}
"""What holds files that must be unpacked first: where in the head which bytes stand."""
_BOMS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


Listener = Callable[[str, float], None]
"""Called with a path and the share of it that has been read."""

_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """While it lasts, tell the listener how far a large log is read; the end of a compressed one is unknown."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


@dataclass(frozen=True)
class LineBlock:
    """Whole lines as UTF-8, ended by LF; ``first_line`` is the 1-based number of the first."""

    data: bytes
    first_line: int
    nul_bytes: int = 0


@dataclass(frozen=True, eq=False)
class Source:
    """One input path. ``head`` holds the first 256 KB after decompression; empty for a folder. ``damage`` gets what is
    wrong with the compressed data once that is met, in the head or in a stream.
    """

    path: Path
    head: bytes
    compression: str = ""
    is_dir: bool = False
    damage: list[str] = field(default_factory=list)

    @classmethod
    def open(cls, path: str | Path) -> Source:
        """Look at a path. Raises InputNotFound, or InputError where it cannot be opened."""
        if not isinstance(path, str | Path):
            raise expected("a path", path)
        path = Path(path)
        try:
            mode = path.stat().st_mode
        except (OSError, ValueError):  # too long, or with characters that no name has
            if str(path) == "-":
                raise InputNotFound(STANDARD_INPUT) from None
            raise InputNotFound(f"{shown(path)}: no such file or folder; check the path.") from None
        if stat.S_ISDIR(mode):
            return cls(path, b"", is_dir=True)
        if not stat.S_ISREG(mode):
            raise InputError(f"{path}: is a pipe or a device, which can be read only once; save it to a file first.")
        keep_freed_memory()
        try:
            with open_bytes(path) as raw:
                head = raw.read(HEAD_BYTES)
                compression = compression_of(head, raw)
            damage: list[str] = []
            if compression:
                with cls(path, b"", compression, damage=damage).stream() as stream:
                    head = stream.read(HEAD_BYTES)
        except OSError as error:
            raise InputError.unopened(path, error) from error
        if compression and not head:
            raise InputError(f"{path}: the {compression} data in it is empty or damaged; compress the log again.")
        return cls(path, head, compression, damage=damage)

    @contextmanager
    def stream(self) -> Iterator[BinaryIO]:
        """The decompressed bytes from the beginning. It ends early where compressed data are cut or damaged."""
        with open_bytes(self.path) as raw:
            yield unpacked(raw, self.compression, self.path, self.damage) if self.compression else raw

    def read_bytes(self) -> bytes:
        """The whole content, decompressed."""
        with self.stream() as stream:
            data = stream.read(WHOLE_BYTES + 1) if self.compression else stream.read()
        if self.compression and len(data) > WHOLE_BYTES:
            raise too_large(self.path, WHOLE_BYTES)
        return data

    def read_text(self) -> str:
        """The whole content as text; bytes that do not fit the encoding become U+FFFD."""
        return self.read_bytes().decode(self.encoding, errors="replace")

    def blocks(self, size: int = BLOCK_BYTES) -> Iterator[LineBlock]:
        """The content in blocks of about ``size`` bytes of whole lines, whatever its encoding and line ends.

        Of a line that is longer than BLOCK_BYTES, parts of the middle are left out: it is no row of any log. Byte order
        marks and NUL bytes are dropped (NULs are counted); bytes that do not fit the encoding
        become U+FFFD.
        """
        line = 1
        for data in self._whole_lines(size):
            nul_bytes = data.count(0) if 0 in data else 0
            data = _plain(data.replace(b"\0", b"") if nul_bytes else data)
            if data:
                yield LineBlock(data, line, nul_bytes)
                line += int(np.count_nonzero(np.frombuffer(data, np.uint8) == _LF))  # 4 x faster than bytes.count

    def _whole_lines(self, size: int) -> Iterator[bytes]:
        """Pieces of UTF-8 that end at a line end, save the last."""
        rest = b""
        for data in self._utf8(size):
            cut = data.rfind(b"\n") + 1
            if cut:
                yield b"".join((rest, memoryview(data)[:cut]))
                rest = data[cut:]
            else:
                rest = (rest + data)[:BLOCK_BYTES]
        if rest:
            yield rest

    def _utf8(self, size: int) -> Iterator[bytes]:
        """Pieces of the content in UTF-8 where the encoding is another; they may end in mid-line."""
        decoder = None if self.encoding.startswith("utf-8") else codecs.getincrementaldecoder(self.encoding)("replace")
        if self._holds_all:
            yield decoder.decode(self.head, True).encode() if decoder else self.head
            return
        listener, total = _LISTENER.get(), max(self.path.stat().st_size, 1)
        with self.stream() as stream:
            while data := stream.read(size):
                if listener and not self.compression:
                    listener(str(self.path), stream.tell() / total)
                yield decoder.decode(data).encode() if decoder else data

    @property
    def _holds_all(self) -> bool:
        """True where the head is all there is, so that no second look at the file is needed."""
        return len(self.head) < HEAD_BYTES

    @cached_property
    def encoding(self) -> str:
        """utf-8, utf-8-sig, utf-16 or cp1252, told from the head."""
        for bom, name in _BOMS:
            if self.head.startswith(bom):
                return name
        pairs = self.head[:4096]
        if len(pairs) > 32 and pairs[1::2].count(0) > 0.8 * len(pairs[1::2]):
            return "utf-16-le"
        try:
            self.head.decode("utf-8")
        except UnicodeDecodeError as error:
            # A head cut in the middle of a character is no reason to doubt UTF-8.
            return "utf-8" if error.reason == "unexpected end of data" else "cp1252"
        return "utf-8"

    @cached_property
    def text(self) -> str:
        """The head as text, with NUL bytes removed."""
        return self.head.decode(self.encoding, errors="replace").replace("\0", "")

    @cached_property
    def lines(self) -> list[str]:
        """The complete lines of the head, 4,096 at most (the last one may be cut if the head is full)."""
        lines = self.text.replace("\r\n", "\n").replace("\r", "\n").split("\n", HEAD_LINES)
        if len(lines) > HEAD_LINES:
            return lines[:HEAD_LINES]
        return lines[:-1] if len(lines) > 1 and (len(self.head) >= HEAD_BYTES or not lines[-1]) else lines

    @cached_property
    def top(self) -> list[str]:
        """Those of the first 32 KB: no line at all where the first is longer."""
        ends = accumulate(len(line) + 1 for line in self.lines)
        return [line for line, end in zip(self.lines, ends, strict=True) if end <= TOP_CHARACTERS]

    @property
    def is_sqlite(self) -> bool:
        """True for an SQLite file, whatever its tables."""
        return self.head.startswith(SQLITE_MAGIC)

    @property
    def archive(self) -> str:
        """What holds the data and is not unpacked here, such as ``a ZIP archive``; empty for a file of its own. No
        reader gets one: where nothing in it is compressed, it holds whole lines of its files.
        """
        return next((what for what, (at, magics) in _ARCHIVES.items() if self.head.startswith(magics, at)), "")

    @property
    def is_pickle(self) -> bool:
        """True for Python's pickle in protocol 2 to 5: gpudiag opens none, since one can run code."""
        return self.head.startswith(_PICKLES)

    @cached_property
    def is_binary(self) -> bool:
        """True if the head does not look like text in any encoding we know."""
        if self.encoding.startswith("utf-16"):
            return False
        sample = self.head[:8192]
        if 0 in sample:
            sample = _HOLE.sub(b"", sample) or sample
            if sample.count(0) < 0.3 * len(sample):
                sample = sample.replace(b"\0", b"")
        odd = len(sample.translate(None, _TEXT_BYTES))
        return odd > 0.02 * max(len(sample), 1)

    def sha256(self) -> str:
        """Hash of the file as it lies on disk; empty for a folder."""
        if self.is_dir:
            return ""
        if self._holds_all and not self.compression:
            return hashlib.sha256(self.head).hexdigest()
        with open_bytes(self.path) as raw:
            return hashlib.file_digest(raw, "sha256").hexdigest()


def _plain(data: bytes) -> bytes:
    """Valid UTF-8 with LF line ends and without byte order marks."""
    if not data.isascii():
        data = data.replace(b"\xef\xbb\xbf", b"").decode("utf-8", "replace").encode()
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return data
