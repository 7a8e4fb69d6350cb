"""Open an SQLite file of somebody else for reading, without leaving a trace beside it.

rollback journal    read-only with SQLite's own locks; nothing is created
WAL, nobody has it  immutable: an ordinary reader would create -wal and -shm
WAL in use          read-only, through the -shm that is there
left by a crash     a copy in a temporary folder is repaired and read instead
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from gpudiag.readers._io.own_descriptor import open_bytes
from gpudiag.scratch import scratch

BUSY_S = 10.0
"""How long to wait for a writer that is just committing."""
COPY_BYTES = 1024 * 1024
CELL_BYTES = 64 * 1024 * 1024
"""No cell of a study is larger; one that a hostile file computes could fill the memory."""


@contextmanager
def open_readonly(path: Path, *, live: bool = False) -> Iterator[sqlite3.Connection]:
    """A connection that cannot write, inside one read transaction. Raises sqlite3.Error.

    ``live``: this process has the file open, so nothing needs recovery and only SQLite may touch it.
    """
    if not live and _needs_recovery(path):
        with (
            scratch() as folder,
            _connect(_copy(path, folder), "rw") as copy,
        ):
            yield copy
        return
    with _connect(path, "ro&immutable=1" if not live and _is_idle_wal(path) else "ro") as connection:
        yield connection


@contextmanager
def private_copy(path: Path, *, live: bool = False) -> Iterator[Path]:
    """A copy of one state of the database in a temporary folder; the original is locked while it is copied only."""
    with scratch() as folder:
        copy = folder / "copy.db"
        with open_readonly(path, live=live) as source:
            if not live and _is_whole(path, source):
                with open_bytes(path) as raw, copy.open("wb") as out:
                    shutil.copyfileobj(raw, out, COPY_BYTES)
            else:
                _back_up(source, copy)
        yield copy


def _is_whole(path: Path, source: sqlite3.Connection) -> bool:
    """True where the bytes of the file, while ``source`` keeps its lock, are one state of the database.

    Then its bytes are copied: page by page, as SQLite does it, takes three times as long.
    """
    opened = source.execute("PRAGMA database_list").fetchone()[2]
    return Path(opened) == path.resolve() and not _is_wal(path) and not _size(beside(path, "-journal"))


def _back_up(source: sqlite3.Connection, copy: Path) -> None:
    with closing(sqlite3.connect(copy)) as target:
        target.execute("PRAGMA journal_mode=OFF")
        target.execute("PRAGMA synchronous=OFF")
        source.execute("COMMIT")
        source.backup(target)


@contextmanager
def _connect(path: Path, mode: str) -> Iterator[sqlite3.Connection]:
    uri = f"{path.resolve().as_uri()}?mode={mode}"
    with closing(sqlite3.connect(uri, uri=True, timeout=BUSY_S, isolation_level=None)) as connection:
        connection.text_factory = _decode
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, CELL_BYTES)
        # Lets a file that was cut short be opened; without it SQLite refuses the whole file.
        connection.execute("PRAGMA writable_schema=ON")
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        yield connection


def _decode(raw: bytes) -> str:
    return raw.decode("utf-8", errors="replace")


def beside(path: Path, suffix: str) -> Path:
    """``optuna.db`` and ``-wal`` give ``optuna.db-wal``."""
    return path.with_name(path.name + suffix)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _is_wal(path: Path) -> bool:
    """True if the header says that the database uses a write-ahead log (file format, offset 18)."""
    with open_bytes(path) as raw:
        return raw.read(20)[18:20] == b"\x02\x02"


def _is_idle_wal(path: Path) -> bool:
    return _is_wal(path) and not _size(beside(path, "-wal"))


def _needs_recovery(path: Path) -> bool:
    """A log without its index, or a journal that holds a transaction, that nobody is working on."""
    if _is_wal(path):
        return _size(beside(path, "-wal")) > 0 and not beside(path, "-shm").exists()
    if not _size(beside(path, "-journal")):
        return False
    try:
        with _connect(path, "ro"):
            return False
    except sqlite3.OperationalError as error:
        return error.sqlite_errorname == "SQLITE_READONLY_ROLLBACK"


def _copy(path: Path, folder: Path) -> Path:
    for suffix in ("", "-wal", "-journal"):
        if beside(path, suffix).exists():
            shutil.copyfile(beside(path, suffix), folder / f"copy.db{suffix}")
    return folder / "copy.db"
