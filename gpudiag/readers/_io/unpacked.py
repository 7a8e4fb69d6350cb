"""Compressed bytes as they were: all that can be had before damage, and never more than a limit."""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from gpudiag.errors import InputError

UNPACKED_BYTES = 2 * 1024**3
"""What a compressed file that is read line by line may unpack to."""
UNPACKED_AT_ONCE = 8 * 1024
"""Bytes: so much is lost before damage. More is hardly faster."""
XZ_MEMORY_BYTES = 256 * 1024**2
"""What unpacking may take; ``xz -9`` asks for a quarter of it."""
_READ_AT_ONCE = 64 * 1024
_MAGICS = {
    "gzip": (b"\x1f\x8b",),
    "zstd": (b"\x28\xb5\x2f\xfd",),
    "xz": (b"\xfd7zXZ\0",),
    "bzip2": tuple(b"BZh%d1AY&SY" % level for level in range(1, 10)),
}
_ZIP_MAGIC = b"PK\x03\x04"
_GZIP_HEAD = b"\x1f\x8b\x08" + bytes(7)
_ENCRYPTED, _DEFLATED = 1, 8


def compression_of(head: bytes, raw: BinaryIO) -> str:
    """By what a file is compressed that is unpacked here, empty for none. It may leave ``raw`` anywhere."""
    if head.startswith(_ZIP_MAGIC):
        return "zip" if _only_file(raw) else ""
    return next((name for name, magics in _MAGICS.items() if head.startswith(magics)), "")


def unpacked(raw: BinaryIO, compression: str, path: Path, damage: list[str]) -> BinaryIO:
    """The bytes in a compressed file; ``damage`` gets what is wrong with it, once that is met."""
    if compression == "zstd":
        import pyarrow as pa

        return io.BufferedReader(_Unzstd(pa.CompressedInputStream(pa.PythonFile(raw, "r"), "zstd"), path, damage))
    return io.BufferedReader(_Unpacked(raw, compression, path, damage))


def too_large(path: Path, most: int) -> InputError:
    """The error for a compressed file that grows beyond what its size lets expect."""
    return InputError(f"{path}: unpacks to more than {most // 2**20:,} MiB; unpack it yourself and give the result.")


def _only_file(raw: BinaryIO) -> tuple[int, int, bytes] | None:
    """Where the data of the one file in a ZIP archive begin, how many bytes they are, and how gzip would end them.

    None for an archive of several, with a password, with a remark at its end, or packed by anything but deflate.
    """
    try:
        end_at = raw.seek(-22, os.SEEK_END)
        mark, n_files, listed_at = struct.unpack("<4s6xH4xI2x", raw.read(22))
        if mark != b"PK\x05\x06" or n_files != 1 or listed_at > end_at:
            return None
        raw.seek(listed_at)
        flags, method, checksum, n_packed, n_bytes = struct.unpack("<8xHH4xIII18x", raw.read(46))
        raw.seek(26)
        before = struct.unpack("<HH", raw.read(4))
    except (OSError, struct.error):  # shorter than that
        return None
    if flags & _ENCRYPTED or method != _DEFLATED:
        return None
    return 30 + sum(before), n_packed, struct.pack("<II", checksum, n_bytes)


def _pieces(raw: BinaryIO, compression: str) -> Iterator[bytes]:
    """The compressed bytes; those of a ZIP archive as gzip has them, which packs alike."""
    only = _only_file(raw) if compression == "zip" else None
    if only is None:
        yield from iter(partial(raw.read, _READ_AT_ONCE), b"")
        return
    begins_at, left, end = only
    raw.seek(begins_at)
    yield _GZIP_HEAD
    while data := raw.read(min(left, _READ_AT_ONCE)):
        left -= len(data)
        yield data
    yield end


def _unpacker(compression: str, path: Path) -> tuple[Callable[[], Any], type[Exception]]:
    """What makes an unpacker of Python's library, and what that raises at damage."""
    try:
        if compression == "xz":
            import lzma

            return partial(lzma.LZMADecompressor, lzma.FORMAT_XZ, XZ_MEMORY_BYTES), lzma.LZMAError
        if compression == "bzip2":
            import bz2

            return bz2.BZ2Decompressor, OSError
    except ImportError:
        raise InputError(f"{path}: is compressed by {compression}, which this Python lacks; unpack it first.") from None
    return partial(zlib.decompressobj, wbits=31), zlib.error


class _Limited(io.RawIOBase):
    """Raises where more comes than the limit; a subclass has ``more``, which gives at most so many bytes, none at the
    end.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._n_bytes = path, 0

    def readable(self) -> bool:
        return True

    def more(self, most: int) -> bytes:
        raise NotImplementedError

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self.more(min(len(buffer), UNPACKED_AT_ONCE))
        buffer[: len(data)] = data
        self._n_bytes += len(data)
        if self._n_bytes > UNPACKED_BYTES:
            raise too_large(self._path, UNPACKED_BYTES)
        return len(data)


class _Unpacked(_Limited):
    """Every byte that can be had of gzip, xz, bzip2 or ZIP: a torn or damaged log keeps its good part."""

    def __init__(self, raw: BinaryIO, compression: str, path: Path, damage: list[str]) -> None:
        super().__init__(path)
        self._pieces = _pieces(raw, compression)
        self._compression, self._damage = compression, damage
        self._new, self._error = _unpacker(compression, path)
        self._unpack = self._new()
        self._pending = b""
        self._within = True
        self._ended = False

    def more(self, most: int) -> bytes:
        while not self._ended:
            holds_more = not getattr(self._unpack, "needs_input", True)  # xz and bzip2 keep what was not asked for
            data = self._pending or (b"" if holds_more else next(self._pieces, b""))
            try:
                out: bytes = self._unpack.decompress(data, most)
            except self._error:
                if self._within or data.strip(b"\0"):  # archives and tapes fill up with NUL bytes
                    self._damage.append(f"the {self._compression} data in it are damaged")
                break
            if not (data or out or holds_more):
                if self._within:
                    self._damage.append(f"the {self._compression} data in it end too early")
                break
            self._pending = getattr(self._unpack, "unconsumed_tail", b"")
            self._within = not self._unpack.eof
            if self._unpack.eof:  # another member may follow: logs are appended to
                self._pending = self._unpack.unused_data
                self._unpack = self._new()
            if out:
                return out
        self._ended = True
        return b""


class _Unzstd(_Limited):
    """Ends at the first damage of a zstd stream instead of raising."""

    def __init__(self, inner: Any, path: Path, damage: list[str]) -> None:
        super().__init__(path)
        self._inner, self._damage = inner, damage

    def more(self, most: int) -> bytes:
        try:
            data: bytes = self._inner.read(most)
        except (OSError, ValueError):
            self._damage.append("the zstd data in it end too early, or are damaged")
            return b""
        return data
