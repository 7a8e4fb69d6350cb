"""A file to be read: its first bytes, its encoding and its compression, without judging its name.

Sniffing looks at ``Source.head`` only, so it never reads more than 256 KB of any file.
"""

from __future__ import annotations

import gzip
import hashlib
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from gpudiag.errors import InputError, InputNotFound

HEAD_BYTES = 256 * 1024
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_BOMS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


@dataclass(frozen=True, eq=False)
class Source:
    """One input path. ``head`` holds the first 256 KB after decompression; empty for a folder."""

    path: Path
    head: bytes
    compression: str = ""
    is_dir: bool = False

    @classmethod
    def open(cls, path: str | Path) -> Source:
        """Look at a path. Raises InputNotFound, or InputError where it cannot be opened."""
        path = Path(path)
        if not path.exists():
            raise InputNotFound(f"{path}: no such file or folder; check the path.")
        if path.is_dir():
            return cls(path, b"", is_dir=True)
        try:
            with path.open("rb") as raw:
                magic = raw.read(4)
            compression = "gzip" if magic[:2] == _GZIP else "zstd" if magic == _ZSTD else ""
            source = cls(path, b"", compression)
            with source.stream() as stream:
                head = stream.read(HEAD_BYTES)
        except (OSError, EOFError) as error:
            if isinstance(error, gzip.BadGzipFile | EOFError):
                raise InputError(f"{path}: the gzip data is damaged ({error}).") from error
            raise InputError(f"{path}: cannot be opened ({error.strerror or error}).") from error
        return cls(path, head, compression)

    @contextmanager
    def stream(self) -> Iterator[BinaryIO]:
        """The decompressed bytes from the beginning. A torn compressed tail ends the stream early."""
        with self.path.open("rb") as raw:
            if self.compression == "gzip":
                yield io.BufferedReader(_Tolerant(gzip.GzipFile(fileobj=raw)))
            elif self.compression == "zstd":
                import zstandard

                reader = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
                yield io.BufferedReader(_Tolerant(reader))
            else:
                yield raw

    def read_bytes(self) -> bytes:
        """The whole content, decompressed."""
        with self.stream() as stream:
            return stream.read()

    def read_text(self) -> str:
        """The whole content as text; bytes that do not fit the encoding become U+FFFD."""
        return self.read_bytes().decode(self.encoding, errors="replace")

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
            # A head cut in the middle of a character is not a reason to doubt UTF-8.
            self.head.decode("utf-8") if len(self.head) < HEAD_BYTES else self.head[:-4].decode("utf-8", "strict")
        except UnicodeDecodeError as error:
            if error.start < len(self.head) - 8:
                return "cp1252"
        return "utf-8"

    @cached_property
    def text(self) -> str:
        """The head as text, with NUL bytes removed."""
        return self.head.decode(self.encoding, errors="replace").replace("\0", "")

    @cached_property
    def lines(self) -> list[str]:
        """The complete lines of the head (the last one may be cut if the head is full)."""
        lines = self.text.splitlines()
        return lines[:-1] if len(self.head) >= HEAD_BYTES and len(lines) > 1 else lines

    @cached_property
    def is_binary(self) -> bool:
        """True if the head does not look like text in any encoding we know."""
        if self.encoding.startswith("utf-16"):
            return False
        sample = self.head[:8192].replace(b"\0", b"") if self.head.count(0) < 0.3 * len(self.head) else self.head[:8192]
        odd = sum(byte < 32 and byte not in (7, 8, 9, 10, 12, 13, 27) for byte in sample)
        return odd > 0.02 * max(len(sample), 1)

    def sha256(self) -> str:
        """Hash of the file as it lies on disk; empty for a folder."""
        if self.is_dir:
            return ""
        with self.path.open("rb") as raw:
            return hashlib.file_digest(raw, "sha256").hexdigest()


class _Tolerant(io.RawIOBase):
    """Ends at the first damage of a compressed stream instead of raising: a torn log keeps its good part."""

    def __init__(self, inner: BinaryIO) -> None:
        self._inner = inner

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        import zlib

        try:
            data = self._inner.read(len(buffer))
        except (EOFError, OSError, zlib.error, ValueError):
            return 0
        except Exception as error:
            if type(error).__name__ == "ZstdError":
                return 0
            raise
        buffer[: len(data)] = data
        return len(data)
