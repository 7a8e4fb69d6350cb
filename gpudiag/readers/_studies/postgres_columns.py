"""Tables of PostgreSQL as arrays in its own binary form; texts follow each other, and their lengths are an array."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from sqlalchemy import Connection
from sqlalchemy.exc import ProgrammingError, SQLAlchemyError

from gpudiag.readers._studies.optuna_rdb import SelectedColumn, SelectedColumns
from gpudiag.readers._studies.server_stretches import TEXTS, NotPossible, NotWhole, in_stretches, texts

_HEADER = np.dtype([("dimensions", ">i4"), ("nulls", ">i4"), ("kind", ">i4"), ("size", ">i4"), ("first", ">i4")])
_KINDS = {("int", 21): ">i2", ("int", 23): ">i4", ("int", 20): ">i8", ("float", 701): ">f8"}
"""By kind of field and number of PostgreSQL's type. Single precision is left to text, as Optuna reads it."""
_LENGTH = SelectedColumn("", "int")
_NULL = -1
"""Length of a text that is NULL."""
_SAVED = "before_arrays"


def as_arrays(
    connection: Connection, what: SelectedColumns, table: str, where: str, columns: frozenset[str]
) -> pd.DataFrame | None:
    """The rows of a table by stretches of its key; None where they cannot be had in this way."""
    encoding = connection.exec_driver_sql("SELECT current_setting('server_encoding')").scalar()
    if encoding != "UTF8":  # lengths are those of the server's own encoding
        return None
    connection.exec_driver_sql(f"SAVEPOINT {_SAVED}")

    def ask(sql: str) -> pa.Table:
        return _table(what, *_answer(connection, sql))

    frame = in_stretches(connection, _cells(what), table, where, columns, ask)
    if frame is None:  # perhaps because the server refused something; others may go on in this transaction
        connection.exec_driver_sql(f"ROLLBACK TO SAVEPOINT {_SAVED}")
    return frame


def _cells(what: SelectedColumns) -> str:
    """Each number as an array, and of each text an array of lengths and all in one."""
    return ", ".join(_text(field) if field.kind in TEXTS else _array_of(_number(field)) for field in what.values())


def _array_of(sql: str) -> str:
    return f"array_send(array_agg({sql}))"


def _number(field: SelectedColumn) -> str:
    """NULL is NaN, as everywhere."""
    return f"COALESCE({field.sql}, 'NaN')" if field.kind == "float" else field.sql


def _text(field: SelectedColumn) -> str:
    text = f"({field.sql})::text"
    length = _array_of(f"COALESCE(octet_length({text}), {_NULL})")
    return f"{length}, COALESCE(convert_to(string_agg({text}, ''), 'UTF8'), '')"


def _answer(connection: Connection, sql: str) -> Any:
    """The one row of an answer. The transaction goes on where the server refuses.

    Raises NotPossible for a function it does not know or a right that is missing, else NotWhole.
    """
    driver = connection.dialect.loaded_dbapi
    try:
        if connection.dialect.driver != "psycopg":
            return connection.exec_driver_sql(sql).one()
        # psycopg asks for bytes as they are only when told to, else as hexadecimal text.
        with connection.connection.driver_connection.cursor(binary=True) as cursor:  # type: ignore[union-attr]
            return cursor.execute(sql).fetchone()
    except (SQLAlchemyError, driver.Error) as error:
        connection.exec_driver_sql(f"ROLLBACK TO SAVEPOINT {_SAVED}")
        never = isinstance(error, ProgrammingError | driver.ProgrammingError)
        raise (NotPossible if never else NotWhole) from error


def _table(what: SelectedColumns, rows: int, *answers: Any) -> pa.Table:
    """One answer as a table. Raises NotPossible where a column is no array of numbers without NULL."""
    left = iter(answers)
    out: dict[str, pa.Array] = {}
    for name, field in what.items():
        if field.kind not in TEXTS:
            out[name] = pa.array(_array(next(left), field, rows))
            continue
        lengths = _array(next(left), _LENGTH, rows)
        text = texts(bytes(next(left)), np.maximum(lengths, 0), lengths == _NULL)
        out[name] = text.dictionary_encode() if field.kind == "name" else text
    return pa.table(out)


def _array(data: Any, field: SelectedColumn, rows: int) -> np.ndarray:
    """The numbers of one array as int64 or float64. Raises NotPossible where it holds something else, or a NULL."""
    kind = "float64" if field.kind == "float" else "int64"
    if not rows:
        return np.empty(0, kind)
    held = bytes(data)
    header = np.frombuffer(held, _HEADER, 1)[0]
    number = _KINDS.get((field.kind, int(header["kind"])))
    if number is None or (header["dimensions"], header["nulls"], header["size"]) != (1, 0, rows):
        raise NotPossible
    return np.frombuffer(held, [("bytes", ">i4"), ("number", number)], rows, _HEADER.itemsize)["number"].astype(kind)
