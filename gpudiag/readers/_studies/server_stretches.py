"""A table of a database server as columns, a stretch of its primary key at a time.

Rows lie nearly in the order of their key, so that a stretch costs the server neither sorting nor much memory. How it
hands out numbers as they are, without turning each into text, is what PostgreSQL and MySQL each have a module for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
import pyarrow as pa
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

KEYS = {
    "trials": "trial_id",
    "trial_params": "param_id",
    "trial_values": "trial_value_id",
    "trial_intermediate_values": "trial_intermediate_value_id",
    "trial_user_attributes": "trial_user_attribute_id",
    "trial_system_attributes": "trial_system_attribute_id",
    "trial_heartbeats": "trial_heartbeat_id",
}
"""The primary key of each table."""
STRETCH = 16384
"""So many keys are asked for at once."""
SPARSE = 4
"""Rows that are wanted of a table are read in another way where more than so many keys would be looked at for each."""
TEXTS = ("name", "text", "timestamp")
"""Kinds of field that are text."""

Ask = Callable[[str], pa.Table]
"""The rows that a SELECT of their number and their cells answers with. Raises NotWhole or NotPossible."""


class NotWhole(Exception):
    """An answer was cut or refused; fewer keys at once may help."""


class NotPossible(Exception):
    """What the server hands out cannot be read in this way."""


def in_stretches(
    connection: Connection, cells: str, table: str, where: str, columns: frozenset[str], ask: Ask
) -> pd.DataFrame | None:
    """The rows of a table by stretches of its key; None where there is none or they cannot be had in this way.

    Args:
        connection: in a transaction.
        cells: what to select of many rows at once, in the server's SQL, from the table as ``t``.
        table: to be read.
        where: a condition on the rows; empty for all.
        columns: what the table has.
        ask: for the rows of one stretch.
    """
    key = KEYS.get(table)
    if key is None or key not in columns:
        return None
    wanted = f" AND {where}" if where else ""

    def between(first: int, last: int) -> pa.Table:
        return ask(f"SELECT COUNT(*), {cells} FROM {table} AS t WHERE t.{key} BETWEEN {first} AND {last}{wanted}")

    try:
        stretches = _stretches(connection, table, key, *_bounds(connection, table, key, where))
        parts = [part for stretch in stretches for part in _whole(between, *stretch)]
    except (NotWhole, NotPossible, SQLAlchemyError, pa.ArrowInvalid):
        return None
    return pa.concat_tables(parts).unify_dictionaries().to_pandas() if parts else None


def _bounds(connection: Connection, table: str, key: str, where: str) -> tuple[int, int]:
    """First and last key of the rows wanted. Raises NotPossible where there is none, or too few among others."""
    ends = f"MIN(t.{key}), MAX(t.{key})"
    if where:
        count, first, last = connection.exec_driver_sql(
            f"SELECT COUNT(*), {ends} FROM {table} AS t WHERE {where}"
        ).one()
    else:  # without looking at each row
        count, (first, last) = None, connection.exec_driver_sql(f"SELECT {ends} FROM {table} AS t").one()
    if first is None or (count is not None and last - first > SPARSE * count):
        raise NotPossible
    return first, last


def _stretches(connection: Connection, table: str, key: str, begin: int | None, last: int) -> Iterator[tuple[int, int]]:
    """First and last key of each stretch. Those without a key are passed over."""
    while begin is not None and begin <= last:
        yield begin, min(begin + STRETCH - 1, last)
        begin = connection.exec_driver_sql(f"SELECT MIN({key}) FROM {table} WHERE {key} >= {begin + STRETCH}").scalar()


def _whole(between: Callable[[int, int], pa.Table], first: int, last: int) -> Iterator[pa.Table]:
    """The rows between two keys, both included; in halves where they are too much for one answer."""
    try:
        yield between(first, last)
    except NotWhole:
        if first == last:
            raise
        middle = (first + last) // 2
        yield from _whole(between, first, middle)
        yield from _whole(between, middle + 1, last)


def texts(data: bytes, lengths: np.ndarray, null: np.ndarray) -> pa.Array:
    """Texts that follow each other in UTF-8, cut by their lengths in bytes. Raises NotWhole, or pa.ArrowInvalid."""
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    if offsets[-1] != len(data):
        raise NotWhole
    valid = pa.py_buffer(np.packbits(~null, bitorder="little")) if null.any() else None
    out = pa.Array.from_buffers(pa.large_string(), len(lengths), [valid, pa.py_buffer(offsets), pa.py_buffer(data)])
    out.validate(full=True)
    return out
