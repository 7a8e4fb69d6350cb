"""Two ways to select from an SQLite file: row by row around damage, or column by column at full speed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._studies.optuna_rdb import Database, SelectedColumns, select_sql

BATCH_ROWS = "8192"
POOL = pa.system_memory_pool()
"""Shares what is freed with numpy and pandas; with Arrow's own 200,000 parameters took 7 MiB more."""
_FIRST = {"int": "0", "float": "0.5", "name": "''", "text": "''", "timestamp": "''"}


def refuse_view(table: str, kind: str) -> None:
    """Raise ViewFound for a view: no tool makes one by such a name, and its query may run without end."""
    if kind == "view":
        raise ViewFound(f"its '{table}' is a view, not a table")


def refuse_views(connection: sqlite3.Connection, *tables: str) -> None:
    """Raise ViewFound where one of these tables is a view."""
    for table in tables:
        for (kind,) in connection.execute("SELECT type FROM sqlite_master WHERE name = ?", (table,)):
            refuse_view(table, kind)


class ViewFound(sqlite3.Error):
    """A view stands in place of a table."""


class SqliteRows:
    """Through Python's sqlite3. Rows behind a damaged page are left out and counted as a problem."""

    def __init__(self, connection: sqlite3.Connection, problems: ProblemLog) -> None:
        self._connection = connection
        self._problems = problems
        self.columns = cache(self._columns)

    def _columns(self, table: str) -> frozenset[str]:
        try:
            refuse_views(self._connection, table)
            return frozenset(row[1] for row in self._connection.execute(f'PRAGMA table_info("{table}")'))
        except sqlite3.DatabaseError:
            return frozenset()

    def select(self, what: SelectedColumns, table: str, where: str = "", *, few: bool = False) -> pd.DataFrame:
        """The rows that can be read: from the front, and from the back where a page is damaged."""
        sql = select_sql(what, table, where)
        rows: list[tuple] = []
        error = self._drain(sql, rows)
        if error:
            back: list[tuple] = []
            self._drain(sql + " ORDER BY t.rowid DESC", back)
            seen = set(rows)
            rows += [row for row in reversed(back) if row not in seen]
            self._problems.add("incomplete: part of a table cannot be read", example=f"{table}: {error}", lost=True)
        kinds = [field.kind for field in what.values()]
        typed = [tuple(_of_kind(cell, kind) for cell, kind in zip(row, kinds, strict=True)) for row in rows]
        return pd.DataFrame.from_records(typed, columns=list(what))

    def apart(self, read: Callable[[Database], pd.DataFrame]) -> Callable[[], pd.DataFrame]:
        """Nothing runs beside anything on one connection: the read happens when it is asked for."""
        return lambda: read(self)

    def _drain(self, sql: str, rows: list[tuple]) -> str:
        """Append rows until the end or an error; the error's text, empty if there was none."""
        try:
            rows.extend(self._connection.execute(sql))
        except sqlite3.DatabaseError as error:
            return str(error)
        return ""


def _of_kind(cell: object, kind: str) -> object:
    """A cell as its column has it: SQLite keeps whatever was written, also bytes in a column of text."""
    if isinstance(cell, bytes):
        cell = cell.decode("utf-8", "replace")
    if kind in ("int", "float"):
        return cell
    return cell if cell is None or isinstance(cell, str) else str(cell)


class NotColumnar(Exception):
    """The file is damaged, or a column holds values of several types: only reading row by row can help."""


class SqliteColumns:
    """Through ADBC as Arrow columns. Raises NotColumnar."""

    def __init__(self, path: Path, pool: ThreadPoolExecutor, exits: ExitStack) -> None:
        from adbc_driver_manager import AdbcConnection
        from adbc_driver_sqlite import connect

        database = exits.enter_context(connect(f"{path.as_uri()}?mode=ro&immutable=1"))
        self._connection = exits.enter_context(AdbcConnection(database))
        self._path, self._pool, self._exits = path, pool, exits
        self.columns = cache(self._columns)

    def apart(self, read: Callable[[Database], pd.DataFrame]) -> Callable[[], pd.DataFrame]:
        """Begin the read on a connection and in a thread of its own; the file never changes."""
        return self._pool.submit(read, SqliteColumns(self._path, self._pool, self._exits)).result

    def _columns(self, table: str) -> frozenset[str]:
        with self._run(f"SELECT '' AS type UNION ALL SELECT type FROM sqlite_master WHERE name = '{table}'") as batches:
            for kind in batches.read_all()["type"].to_pylist():
                refuse_view(table, kind)
        with self._run(f"SELECT '' AS name UNION ALL SELECT name FROM pragma_table_info('{table}')") as batches:
            return frozenset(batches.read_all()["name"].to_pylist()) - {""}

    def select(self, what: SelectedColumns, table: str, where: str = "", *, few: bool = False) -> pd.DataFrame:
        """All rows. Text that repeats becomes categories, batch by batch, so that it is held once."""
        # The driver takes the types of the first rows for all: a row of our own sets them.
        first = ", ".join(_FIRST[field.kind] for field in what.values())
        repeated = [index for index, field in enumerate(what.values()) if field.kind == "name"]
        with self._run(f"SELECT {first} UNION ALL {select_sql(what, table, where)}") as batches:
            whole = pa.Table.from_batches(_encoded(batch, repeated) if repeated else batch for batch in batches)
            whole = whole.unify_dictionaries(POOL).slice(1).rename_columns(list(what))
            whole.validate(full=True)  # text that is not UTF-8 would surface much later
        return whole.to_pandas(memory_pool=POOL, self_destruct=True)

    @contextmanager
    def _run(self, sql: str) -> Iterator[pa.RecordBatchReader]:
        from adbc_driver_manager import AdbcStatement, Error

        try:
            with AdbcStatement(self._connection) as statement:
                statement.set_options(**{"adbc.sqlite.query.batch_rows": BATCH_ROWS})
                statement.set_sql_query(sql)
                stream, _ = statement.execute_query()
                with pa.RecordBatchReader.from_stream(stream) as batches:
                    yield batches
        except (Error, OSError, ValueError, pa.ArrowException) as error:
            raise NotColumnar(str(error)) from error


def _encoded(batch: pa.RecordBatch, columns: list[int]) -> pa.RecordBatch:
    """The batch with the text of these columns as codes into the distinct texts.

    The others are copied: what the driver made is freed as a whole, the text with it.
    """
    cells = [
        pc.dictionary_encode(column, memory_pool=POOL) if at in columns else pa.concat_arrays([column], POOL)
        for at, column in enumerate(batch.columns)
    ]
    return pa.RecordBatch.from_arrays(cells, batch.schema.names)


@contextmanager
def open_columns(path: Path) -> Iterator[SqliteColumns]:
    """A private file through ADBC. Never a file of somebody else: ADBC brings its own SQLite, and two SQLite
    libraries in one process do not see each other's locks on a file.
    """
    with ExitStack() as exits, ThreadPoolExecutor(1) as pool:
        yield SqliteColumns(path, pool, exits)
