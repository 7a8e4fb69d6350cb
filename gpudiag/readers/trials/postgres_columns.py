"""Tables of numbers of PostgreSQL as arrays in its own binary form, which takes half the time of text."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from gpudiag.readers.trials.optuna_rdb import Field, Fields

TRIALS_AN_ANSWER = 64
_HEADER = np.dtype([("dimensions", ">i4"), ("nulls", ">i4"), ("kind", ">i4"), ("size", ">i4"), ("first", ">i4")])
_KINDS = {("int", 21): ">i2", ("int", 23): ">i4", ("int", 20): ">i8", ("float", 701): ">f8"}
"""By kind of field and number of PostgreSQL's type. Single precision is left to text, as Optuna reads it."""


def as_arrays(connection: Connection, what: Fields, table: str, where: str) -> pd.DataFrame | None:
    """The rows of a table that has ``trial_id``; None where not all of it is numbers, or the server cannot do this."""
    if any(field.kind not in ("int", "float") for field in what.values()):
        return None
    connection.exec_driver_sql("SAVEPOINT before_arrays")
    try:
        answers = connection.exec_driver_sql(_sql(what, table, where)).fetchall()
        connection.exec_driver_sql("RELEASE SAVEPOINT before_arrays")
    except SQLAlchemyError:
        connection.exec_driver_sql("ROLLBACK TO SAVEPOINT before_arrays")
        return None
    out: dict[str, list[np.ndarray]] = {name: [] for name in what}
    for rows, *arrays in answers:
        for (name, field), data in zip(what.items(), arrays, strict=True):
            column = _array(bytes(data), field, rows)
            if column is None:
                return None
            out[name].append(column)
    return pd.DataFrame({name: np.concatenate(parts) if parts else [] for name, parts in out.items()})


def _sql(what: Fields, table: str, where: str) -> str:
    """SELECT number of rows and each column, for each ``TRIALS_AN_ANSWER`` trials in their order."""
    group = f"t.trial_id / {TRIALS_AN_ANSWER}"
    arrays = ", ".join(f"array_send(array_agg({_cell(field)}))" for field in what.values())
    rows = f"FROM {table} AS t" + (f" WHERE {where}" if where else "")
    return f"SELECT COUNT(*), {arrays} {rows} GROUP BY {group} ORDER BY {group}"


def _cell(field: Field) -> str:
    """NULL is NaN, as everywhere."""
    return f"COALESCE({field.sql}, 'NaN')" if field.kind == "float" else field.sql


def _array(data: bytes, field: Field, rows: int) -> np.ndarray | None:
    """The numbers of one array; None where it holds something else, or a NULL."""
    if len(data) < _HEADER.itemsize:
        return None
    header = np.frombuffer(data, _HEADER, 1)[0]
    number = _KINDS.get((field.kind, int(header["kind"])))
    if number is None or (header["dimensions"], header["nulls"], header["size"]) != (1, 0, rows):
        return None
    cells = np.frombuffer(data, [("bytes", ">i4"), ("number", number)], offset=_HEADER.itemsize)["number"]
    return cells.astype("float64" if field.kind == "float" else "int64") if len(cells) == rows else None
