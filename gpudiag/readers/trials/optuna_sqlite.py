"""Optuna studies in an SQLite file, of every schema from v0.9 on; nothing is ever written."""

from __future__ import annotations

import re
import sqlite3
from dataclasses import replace
from pathlib import Path

from gpudiag.errors import InputError
from gpudiag.readers._io.own_descriptor import own_descriptor
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import HEAD_BYTES, Source
from gpudiag.readers._io.sqlite_database import NotColumnar, SqliteRows, open_columns
from gpudiag.readers._io.sqlite_file import BUSY_S, beside, open_readonly, private_copy
from gpudiag.readers._studies.assemble import assemble
from gpudiag.readers._studies.optuna_rdb import NEWEST, newer_revision, read_rdb
from gpudiag.readers._studies.stored import Stored
from gpudiag.readers.base import Reader, ReadOptions, Trials

NAME = "optuna-sqlite"
LARGE_BYTES = 16 * 1024 * 1024
"""Above this size reading in place would lock a writer out for more than about half a second."""
_CREATE = re.compile(rb'CREATE TABLE ["\'`]?(trials|studies|trial_params)["\'`]?\s*\(')


def recognises(source: Source) -> bool:
    """An SQLite file with Optuna's tables; MLflow's and Grafana's databases have others."""
    if not source.is_sqlite:
        return False
    if _has_tables(source.head) or _is_cut(source):
        return True
    # A database in WAL mode that was never checkpointed has its tables in the log.
    log = beside(source.path, "-wal")
    if not log.is_file():
        return False
    with log.open("rb") as raw:
        return _has_tables(raw.read(HEAD_BYTES))


def _is_cut(source: Source) -> bool:
    """A database shorter than its header says, which tells of no table: nobody can say that it was no study.

    The header holds the size of a page at byte 16, and the number of pages at byte 28 where bytes 24 and 92 agree
    (sqlite.org/fileformat2.html, 1.3).
    """
    head = source.head
    if len(head) < 100 or head[24:28] != head[92:96] or b"CREATE TABLE" in head:
        return False
    page, pages = int.from_bytes(head[16:18], "big"), int.from_bytes(head[28:32], "big")
    return source.path.stat().st_size < (65536 if page == 1 else page) * pages


def _has_tables(data: bytes) -> bool:
    return {b"trials", b"studies"} <= {found[1] for found in _CREATE.finditer(data)}


def read(source: Source, options: ReadOptions) -> Trials:
    """Every study of the file, or the one of ``options.study``."""
    if source.compression:
        raise InputError(f"{source.path}: is an Optuna study packed with {source.compression}; unpack it first.")
    return _read(source.path, options, live=own_descriptor(source.path) is not None)


def read_live(path: Path, options: ReadOptions) -> Trials:
    """Like :func:`read`, for a file that this very process has open through a Study.

    The file is touched through SQLite only: opening and closing it in any other way would drop the
    locks that the process holds on it.
    """
    return _read(path, options, live=True)


def _read(path: Path, options: ReadOptions, *, live: bool) -> Trials:
    problems = ProblemLog()
    try:
        stored, newer = _stored(path, options, problems, live=live)
    except sqlite3.Error as error:
        if _is_busy(error):
            raise InputError(
                f"{path}: another process has kept it locked for {BUSY_S:.0f} s; try again later."
            ) from error
        raise InputError(
            f"{path}: SQLite cannot read this Optuna study ({error}); "
            "check that the copy is complete, or recover it with sqlite3's .recover."
        ) from error
    out = assemble(stored, options.timezone, str(path), NAME, problems)
    if newer:
        note = f"{path}: schema revision {newer} is none that gpudiag knows; read like {NEWEST}."
        out = replace(out, notes=(*out.notes, note))
    return out


def _is_busy(error: Exception) -> bool:
    return getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY")


def _stored(path: Path, options: ReadOptions, problems: ProblemLog, *, live: bool) -> tuple[Stored, str]:
    """The long tables and the schema revision if it is unknown.

    A large file is copied first, so that a writer waits for the copy only and not for the reading.
    """
    if path.stat().st_size > LARGE_BYTES:
        met = ProblemLog()
        try:
            with private_copy(path, live=live) as copy, open_columns(copy) as columns:
                found = read_rdb(columns, options, str(path), met), newer_revision(columns)
            problems.extend(met.all)
            return found
        except (sqlite3.Error, OSError, NotColumnar) as error:
            if _is_busy(error):
                raise
            # Damaged, or no room for a copy: row by row keeps what can be read.
    with open_readonly(path, live=live) as connection:
        rows = SqliteRows(connection, problems)
        return read_rdb(rows, options, str(path), problems), newer_revision(rows)


READER: Reader[Trials] = Reader(NAME, recognises, read)
