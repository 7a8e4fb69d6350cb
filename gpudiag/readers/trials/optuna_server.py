"""Optuna studies on a database server, in one read-only transaction on one snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from importlib.util import find_spec

import pandas as pd
from sqlalchemy import URL, Connection, Engine, create_engine, inspect, make_url
from sqlalchemy.exc import SQLAlchemyError

from gpudiag.errors import InputError
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.url import scheme_of, show_url, without_secrets
from gpudiag.readers._studies.assemble import assemble
from gpudiag.readers._studies.mysql_columns import as_points
from gpudiag.readers._studies.optuna_rdb import Database, SelectedColumns, read_rdb, select_sql
from gpudiag.readers._studies.postgres_columns import as_arrays
from gpudiag.readers.base import ReadOptions, Trials

NAME = "optuna-server"
CONNECT_TIMEOUT_S = 10
_DRIVERS = {"postgresql": ("psycopg", "psycopg2"), "mysql": ("MySQLdb", "pymysql"), "mariadb": ("MySQLdb", "pymysql")}
_EXTRAS = {"postgresql": "postgres", "mysql": "mysql", "mariadb": "mysql"}
_SNAPSHOT = {
    # Whatever the database or the user has set, timestamps are to come as ISO 8601, and floats with all their digits.
    "postgresql": (
        "SET datestyle TO 'ISO'",
        "SET extra_float_digits TO 3",
        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    ),
    "mysql": ("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",),
    "mariadb": ("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",),
}
_CONNECT = {"postgresql": {"client_encoding": "utf8"}}
"""A database without an encoding would hand out all texts as bytes."""


def read_server(url: str, options: ReadOptions) -> Trials:
    """Every study of the database at a URL, or the one of ``options.study``.

    Raises StudyNotFound, or InputError with the password taken out of whatever the driver says.
    """
    shown = show_url(url)
    problems = ProblemLog()
    try:
        with _connect(with_driver(url)) as connection:
            database = ServerDatabase(connection)
            if not {"trials", "studies"} <= database.tables:
                raise InputError(f"{shown}: the database has no Optuna tables (trials, studies); check its name.")
            stored = read_rdb(database, options, shown, problems)
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get(scheme_of(url), "")
        hint = f'pip install "gpudiag[{extra}]"' if extra else f"pip install {error.name}"
        raise InputError(f"{shown}: needs the package {error.name}; run {hint}.") from None
    except (SQLAlchemyError, OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        message = without_secrets(str(getattr(error, "orig", None) or error), url)[:300]
        # Not chained: the driver's own exception may hold the password.
        raise InputError(f"{shown}: cannot be read ({message}); check address, user and rights.") from None
    # The server timestamps heartbeats in a zone of its own, so they tell nothing.
    stored = replace(stored, heartbeats=stored.heartbeats.iloc[:0])
    out = assemble(stored, options.timezone, shown, NAME, problems)
    if scheme_of(url) in ("mysql", "mariadb"):
        note = f"{shown}: MySQL keeps whole seconds in Optuna's columns, so starts and ends are known to a second."
        out = replace(out, notes=(*out.notes, note))
    return out


def with_driver(url: str) -> URL:
    """The URL with a driver that is installed, where it names none, or one that is not, or that only waits in an event
    loop: the server is the same.
    """
    parsed = make_url(url.replace("postgres://", "postgresql://", 1) if url.startswith("postgres://") else url)
    server = parsed.get_backend_name()
    if server not in _DRIVERS or ("+" in parsed.drivername and _usable(parsed)):
        return parsed
    driver = next((name for name in _DRIVERS[server] if find_spec(name)), None)
    return parsed.set(drivername=f"{server}+{driver.lower()}") if driver else parsed


def _usable(url: URL) -> bool:
    try:
        dialect = url.get_dialect()
        dialect.import_dbapi()
    except ImportError:
        return False
    return not dialect.is_async


@contextmanager
def _connect(url: URL) -> Iterator[Connection]:
    """A connection inside one read-only transaction that sees one state of the database."""
    server = url.get_backend_name()
    given = {"connect_timeout": CONNECT_TIMEOUT_S} | _CONNECT.get(server, {}) if server in _SNAPSHOT else {}
    engine = create_engine(url, connect_args=given, hide_parameters=True, isolation_level="AUTOCOMMIT")
    try:
        with _opened(engine) as connection:
            begin = _SNAPSHOT.get(server, ())
            for sql in begin:
                connection.exec_driver_sql(sql)
            yield connection
            if begin:
                connection.exec_driver_sql("ROLLBACK")
    finally:
        engine.dispose()


def _opened(engine: Engine) -> Connection:
    """A connection. Some drivers say by a TypeError that they lack an option of the URL."""
    try:
        return engine.connect()
    except TypeError as error:
        raise ValueError(str(error)) from None


class ServerDatabase:
    """The tables seen by one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.tables = frozenset(inspect(connection).get_table_names())
        self.columns = cache(self._columns)

    def _columns(self, table: str) -> frozenset[str]:
        if table not in self.tables:
            return frozenset()
        # No row, only its names: reflection would ask for keys, types and comments as well.
        return frozenset(self._connection.exec_driver_sql(f"SELECT * FROM {table} WHERE 1 = 0").keys())

    def select(self, what: SelectedColumns, table: str, where: str = "", *, few: bool = False) -> pd.DataFrame:
        dialect = self._connection.dialect.name
        if "trial_id" in what and dialect in _SNAPSHOT and not few:
            read = as_arrays if dialect == "postgresql" else as_points
            frame = read(self._connection, what, table, where, self.columns(table))
            if frame is not None:
                return frame
        result = self._connection.exec_driver_sql(select_sql(what, table, where))
        rows = result.cursor.fetchall() if result.cursor else []  # without a row object of SQLAlchemy for each
        result.close()
        return pd.DataFrame.from_records([tuple(row) for row in rows], columns=list(what))

    def apart(self, read: Callable[[Database], pd.DataFrame]) -> Callable[[], pd.DataFrame]:
        """A transaction is one connection: the read happens when it is asked for."""
        return lambda: read(self)
