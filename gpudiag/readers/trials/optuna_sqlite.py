"""Optuna studies in an SQLite file, of every schema from v0.9 on; nothing is ever written."""

from __future__ import annotations

import re
import sqlite3
from functools import cache

import pandas as pd

from gpudiag.errors import InputError
from gpudiag.readers.base import Reader, ReadOptions, Trials
from gpudiag.readers.problems import ProblemLog
from gpudiag.readers.source import HEAD_BYTES, Source
from gpudiag.readers.trials.assemble import assemble
from gpudiag.readers.trials.optuna_rdb import NEWEST, newer_revision, read_rdb
from gpudiag.readers.trials.sqlite_file import MAGIC, beside, open_readonly

NAME = "optuna-sqlite"
_CREATE = re.compile(rb'CREATE TABLE ["\'`]?(trials|studies|trial_params)["\'`]?\s*\(')


def recognises(source: Source) -> bool:
    """An SQLite file with Optuna's tables; MLflow's and Grafana's databases have others."""
    if not source.head.startswith(MAGIC):
        return False
    if _has_tables(source.head):
        return True
    # A database in WAL mode that was never checkpointed has its tables in the log.
    log = beside(source.path, "-wal")
    if not log.is_file():
        return False
    with log.open("rb") as raw:
        return _has_tables(raw.read(HEAD_BYTES))


def _has_tables(data: bytes) -> bool:
    return {b"trials", b"studies"} <= {found[1] for found in _CREATE.finditer(data)}


class SqliteDatabase:
    """The tables of one open file; rows behind a damaged page are left out and counted as a problem."""

    def __init__(self, connection: sqlite3.Connection, problems: ProblemLog) -> None:
        self._connection = connection
        self._problems = problems
        self.columns = cache(self._columns)

    def _columns(self, table: str) -> frozenset[str]:
        try:
            return frozenset(row[1] for row in self._connection.execute(f'PRAGMA table_info("{table}")'))
        except sqlite3.DatabaseError:
            return frozenset()

    def select(self, what: dict[str, str], table: str, where: str = "") -> pd.DataFrame:
        """The rows that can be read: from the front, and from the back where a page is damaged."""
        fields = ", ".join(f"{expression} AS {name}" for name, expression in what.items())
        sql = f"SELECT {fields} FROM {table} AS t" + (f" WHERE {where}" if where else "")
        rows: list[tuple] = []
        error = self._drain(sql, rows)
        if error:
            back: list[tuple] = []
            self._drain(sql + " ORDER BY t.rowid DESC", back)
            seen = set(rows)
            rows += [row for row in reversed(back) if row not in seen]
            self._problems.add("incomplete: part of a table cannot be read", example=f"{table}: {error}", lost=True)
        return pd.DataFrame.from_records(rows, columns=list(what))

    def _drain(self, sql: str, rows: list[tuple]) -> str:
        """Append rows until the end or an error; the error's text, empty if there was none."""
        try:
            for row in self._connection.execute(sql):
                rows.append(row)
        except sqlite3.DatabaseError as error:
            return str(error)
        return ""


def read(source: Source, options: ReadOptions) -> Trials:
    """Every study of the file, or the one of ``options.study``."""
    problems = ProblemLog()
    try:
        with open_readonly(source.path) as connection:
            database = SqliteDatabase(connection, problems)
            stored = read_rdb(database, options.study, str(source.path), problems)
            newer = newer_revision(database)
    except sqlite3.Error as error:
        raise InputError(
            f"{source.path}: SQLite cannot read this Optuna study ({error}); "
            "check that the copy is complete, or recover it with sqlite3's .recover."
        ) from error
    out = assemble(stored, options.timezone, str(source.path), NAME, problems)
    if newer:
        note = f"{source.path}: schema revision {newer} is none that gpudiag knows; read like {NEWEST}."
        out = Trials(out.trials, out.reports, out.studies, out.events, out.problems, (*out.notes, note), out.reader)
    return out


READER: Reader[Trials] = Reader(NAME, recognises, read)
