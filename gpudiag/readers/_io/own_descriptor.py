"""Read an SQLite file that this very process has open, without opening it again.

POSIX takes all locks of a process on a file away as soon as the process closes any descriptor of it. A study
that is optimized here would lose the locks that keep other writers out, so it is read through the descriptor
that is there (sqlite.org/howtocorrupt.html, 2.2).
"""

from __future__ import annotations

import io
import os
import stat
from pathlib import Path

SQLITE_MAGIC = b"SQLite format 3\0"
_DESCRIPTORS = Path("/dev/fd")


def open_bytes(path: Path) -> io.BufferedReader:
    """The file from its beginning. Raises OSError."""
    own = own_descriptor(path)
    return path.open("rb") if own is None else io.BufferedReader(_Borrowed(own, path))


def own_descriptor(path: Path) -> int | None:
    """A descriptor through which this process has an SQLite file open for reading; None for any other file."""
    if not hasattr(os, "pread") or not _DESCRIPTORS.is_dir():  # Windows keeps locks until they are released
        return None
    wanted = path.stat()
    for name in os.listdir(_DESCRIPTORS):  # noqa: PTH208 - names only
        try:
            found = os.fstat(int(name))
            if (found.st_ino, found.st_dev) == (wanted.st_ino, wanted.st_dev) and stat.S_ISREG(found.st_mode):
                return int(name) if os.pread(int(name), len(SQLITE_MAGIC), 0) == SQLITE_MAGIC else None
        except OSError:  # closed meanwhile, or open for writing only
            continue
    return None


class _Borrowed(io.RawIOBase):
    """Reads through somebody else's descriptor and leaves its position and its life alone."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self._path = path
        self._file = os.fstat(descriptor).st_ino
        self._at = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = os.pread(self._descriptor, len(buffer), self._at)
        if os.fstat(self._descriptor).st_ino != self._file:
            raise OSError(f"{self._path} was closed while it was read")
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)
