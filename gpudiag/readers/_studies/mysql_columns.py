"""Tables of MySQL and MariaDB without turning their numbers into text, which takes the server longer than all else.

The one thing these servers hand out that holds the eight bytes of a float as they are is a point of a geometry.
So every two numbers of a row become a point, and many rows one answer; texts follow each other, and their lengths
are numbers like the others.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
from sqlalchemy import Connection

from gpudiag.readers._studies.optuna_rdb import SelectedColumn, SelectedColumns
from gpudiag.readers._studies.server_stretches import TEXTS, NotPossible, NotWhole, in_stretches, texts

ANSWER_BYTES = 1 << 30
"""What the server may join into one text; the size of its packets caps it further, which is noticed."""
_POINT = np.dtype([("system", "<u4"), ("order", "u1"), ("type", "<u4"), ("x", "<f8"), ("y", "<f8")])
"""A point as these servers keep it: its system of coordinates, then as in the OGC's well-known binary."""
_PLAIN = (0, 1, 1)
"""No system, little-endian, a point."""
_SINGLE = 4
"""The protocol's number of a float of four bytes, which old Optunas made."""


def as_points(
    connection: Connection, what: SelectedColumns, table: str, where: str, columns: frozenset[str]
) -> pd.DataFrame | None:
    """The rows of a table by stretches of its key; None where they cannot be had in this way."""
    if _single(connection, what, table):
        return None
    connection.exec_driver_sql(f"SET SESSION group_concat_max_len = {ANSWER_BYTES}")

    def ask(sql: str) -> pa.Table:
        return _table(what, *connection.exec_driver_sql(sql).one())

    return in_stretches(connection, _cells(what), table, where, columns, ask)


def _single(connection: Connection, what: SelectedColumns, table: str) -> bool:
    """True for a number of single precision: the server rounds it to six digits as text, which is what Optuna reads."""
    floats = [field.sql for field in what.values() if field.kind == "float"]
    if not floats:
        return False
    result = connection.exec_driver_sql(f"SELECT {', '.join(floats)} FROM {table} AS t WHERE 1 = 0")
    kinds = {column[1] for column in result.cursor.description} if result.cursor else {_SINGLE}
    result.close()
    return _SINGLE in kinds


def _cells(what: SelectedColumns) -> str:
    """The numbers, and one after the other the texts."""
    cells = [*(f"COALESCE({field.sql}, 0)" for field in what.values() if field.kind not in TEXTS)]
    named = [_text(field) for field in what.values() if field.kind in TEXTS]
    cells += [f"COALESCE(LENGTH({text}), 0)" for text in named]
    cells.append(" + ".join(f"({field.sql} IS NULL) * {1 << bit}" for bit, field in enumerate(what.values())))
    cells += ["0"] * (len(cells) % 2)
    points = ", ".join(f"POINT({x}, {y})" for x, y in zip(cells[::2], cells[1::2], strict=True))
    joined = [f"CONCAT({points})", *(f"COALESCE(CAST({text} AS BINARY), '')" for text in named)]
    return ", ".join(f"GROUP_CONCAT({cell} SEPARATOR '')" for cell in joined)


def _text(field: SelectedColumn) -> str:
    return f"CONVERT({field.sql} USING utf8mb4)"


def _table(what: SelectedColumns, rows: int, numbers: bytes | None, *answers: bytes | None) -> pa.Table:
    """One answer as a table. Raises NotWhole where some of it is missing, NotPossible where it is no such points."""
    names = [name for name, field in what.items() if field.kind not in TEXTS]
    named = [name for name, field in what.items() if field.kind in TEXTS]
    cells = _numbers(numbers or b"", rows, len(names) + len(named) + 1)
    flags = cells[-1].astype("int64")
    out: dict[str, pa.Array] = {}
    for bit, (name, field) in enumerate(what.items()):
        null = (flags >> bit & 1).astype(bool)
        if name in names:
            number = cells[names.index(name)]
            out[name] = pa.array(number.astype("int64") if field.kind == "int" else number, mask=null)
        else:
            at = named.index(name)
            text = texts(answers[at] or b"", cells[len(names) + at].astype("int64"), null)
            out[name] = text.dictionary_encode() if field.kind == "name" else text
    return pa.table(out)


def _numbers(data: bytes, rows: int, columns: int) -> list[np.ndarray]:
    points = (columns + 1) // 2
    if len(data) != rows * points * _POINT.itemsize:
        raise NotWhole
    found = np.frombuffer(data, _POINT).reshape(rows, points)
    for field, wanted in zip(("system", "order", "type"), _PLAIN, strict=True):
        if not (found[field] == wanted).all():
            raise NotPossible
    return [found["xy"[column % 2]][:, column // 2] for column in range(columns)]
