"""Tables of a database server as a few long texts: a Python object per cell would cost most of the time."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
from pyarrow import csv
from sqlalchemy import Connection

from gpudiag.readers._studies.optuna_rdb import Field, Fields

GROUP_CONCAT_BYTES = 1 << 30
"""What MySQL may join into one text; the size of its packets caps it further, which is noticed."""
TRIALS_A_TEXT = 64
"""So many trials make one text: large enough to cost nothing each, small enough for a packet in most studies."""
DIALECTS = ("postgresql", "mysql", "mariadb")
_TYPES = {
    "int": pa.int64(),
    "float": pa.float64(),
    "name": pa.dictionary(pa.int32(), pa.string()),
    "text": pa.string(),
    "stamp": pa.string(),
}


def joined(connection: Connection, what: Fields, table: str, where: str) -> pd.DataFrame | None:
    """The rows of a table that has ``trial_id``, joined to CSV by the server; None where it could not."""
    for trials in (TRIALS_A_TEXT, 1):
        sql = _sql(connection.dialect.name, what, table, where, trials)
        if connection.dialect.name != "postgresql":
            connection.exec_driver_sql(f"SET SESSION group_concat_max_len = {GROUP_CONCAT_BYTES}")
        found = connection.exec_driver_sql(sql).fetchall()
        if any(text is None for _, text in found):
            continue
        try:
            frame = _frame("\n".join(text for _, text in found).encode(), what)
        except pa.ArrowInvalid:  # a text that was cut
            continue
        if len(frame) == sum(count for count, _ in found):
            return frame
    return None


def _sql(dialect: str, what: Fields, table: str, where: str, trials: int) -> str:
    """SELECT number of rows, the rows as CSV: for each ``trials`` trials, in their order."""
    if dialect == "postgresql":
        cells = ", ".join(_text(field, f"({field.sql})::text", "'\"' || {} || '\"'") for field in what.values())
        text, group = f"string_agg(concat_ws(',', {cells}), chr(10))", f"t.trial_id / {trials}"
    else:
        cells = ", ".join(_text(field, field.sql, "CONCAT('\"', {}, '\"')") for field in what.values())
        text, group = f"GROUP_CONCAT(CONCAT_WS(',', {cells}) SEPARATOR 0x0A)", f"t.trial_id DIV {trials}"
    rows = f"FROM {table} AS t" + (f" WHERE {where}" if where else "")
    return f"SELECT COUNT(*), {text} {rows} GROUP BY {group} ORDER BY {group}"


def _text(field: Field, sql: str, quoted: str) -> str:
    """A cell as CSV has it; NULL is empty and without quotes."""
    cell = quoted.format(f"REPLACE({sql}, '\"', '\"\"')") if field.kind in ("name", "text") else sql
    return f"COALESCE({cell}, '')"


def _frame(data: bytes, what: Fields) -> pd.DataFrame:
    """CSV without a header as the columns asked for."""
    if not data:
        return pd.DataFrame({name: [] for name in what})
    texts = any(field.kind in ("name", "text") for field in what.values())
    table = csv.read_csv(
        pa.BufferReader(data),
        read_options=csv.ReadOptions(column_names=list(what)),
        parse_options=csv.ParseOptions(newlines_in_values=texts),
        convert_options=csv.ConvertOptions(
            column_types={name: _TYPES[field.kind] for name, field in what.items()},
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    return table.unify_dictionaries().to_pandas(self_destruct=True)
