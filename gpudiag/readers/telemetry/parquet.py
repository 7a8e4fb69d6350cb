"""``gpudiag convert``: every table of a telemetry in one Parquet file.

A row belongs to the table named in column ``table``; the other columns are those of :mod:`gpudiag.schema`, where one
name means one kind in all tables. The metadata of the schema holds a JSON object: where the rows came from, and what
was said when they were read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from gpudiag.errors import InputError
from gpudiag.readers._io.parquet_file import schema_of, table_of, unreadable
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._shape.finish import finish
from gpudiag.readers.base import WITHOUT_DATE, Reader, ReadOptions, Telemetry
from gpudiag.schema import TABLES, ColumnKind, TableSpec, conform

NAME = "gpudiag-parquet"
KEY = b"gpudiag-telemetry"
VERSION = 1
HELD = ("gpu", "gpus", "processes", "host", "events")
_TYPES: Mapping[ColumnKind, pa.DataType] = {
    "time": pa.timestamp("us", "UTC"),
    "text": pa.string(),
    "float": pa.float64(),
    "int": pa.int64(),
    "key": pa.int64(),
}


def recognises(source: Source) -> bool:
    """A Parquet file whose schema carries our metadata."""
    schema = schema_of(source)
    return schema is not None and KEY in (schema.metadata or {})


def read(source: Source, options: ReadOptions) -> Telemetry:
    """Every table as it was written; see :func:`gpudiag.readers.telemetry.read_telemetry`."""
    content = table_of(source)
    about = _about(source, content.schema.metadata)
    log = ProblemLog()
    try:
        frames = {name: _frame(content, TABLES[name], log) for name in HELD}
        for problem in about["problems"]:
            log.add(str(problem["kind"]), int(problem["count"]), example=problem["example"], lost=bool(problem["lost"]))
        notes = tuple(map(str, about["notes"]))
    except (pa.ArrowException, KeyError, TypeError, ValueError) as error:
        raise unreadable(source, error) from error
    out = finish(source, NAME, options, log, **frames, notes=notes)
    return out if out.clock in WITHOUT_DATE else replace(out, clock="utc" if about.get("clock") == "utc" else "local")


def to_arrow(data: Telemetry, notes: tuple[str, ...]) -> pa.Table:
    """The tables as one, with what is to be known of them in the metadata; ``notes`` are added to those of ``data``."""
    tables = [_rows(getattr(data, name), TABLES[name]) for name in HELD]
    about = {
        "version": VERSION,
        "clock": data.clock,
        "notes": [*data.notes, *notes],
        "problems": [{"kind": p.kind, "count": p.count, "example": p.example, "lost": p.lost} for p in data.problems],
    }
    whole = pa.concat_tables(tables, promote_options="default")
    return whole.replace_schema_metadata({KEY: json.dumps(about).encode()})


def _rows(frame: pd.DataFrame, table: TableSpec) -> pa.Table:
    schema = pa.schema([(name, _TYPES[table[name].kind]) for name in frame.columns])
    rows = pa.Table.from_pandas(frame, schema=schema, preserve_index=False).replace_schema_metadata(None)
    return rows.add_column(0, "table", pa.repeat(table.name, len(frame)))


def _frame(content: pa.Table, table: TableSpec, log: ProblemLog) -> pd.DataFrame:
    """The rows of one table; such without a GPU, process id, ... that every row must have are dropped."""
    rows = content.filter(pc.equal(content["table"], table.name))
    names = [name for name in table.names if name in rows.column_names]
    rows = rows.select(names).cast(pa.schema([(name, _TYPES[table[name].kind]) for name in names]))
    frame = conform(rows.to_pandas(), table)
    whole = frame.dropna(subset=[name for name in table.required if name != "time"])
    log.add(f"row of table {table.name} without its key", len(frame) - len(whole), lost=True)
    return whole


def _about(source: Source, metadata: Mapping[bytes, bytes]) -> dict[str, Any]:
    try:
        about = json.loads(metadata[KEY])
        version = int(about["version"])
    except (KeyError, TypeError, ValueError) as error:
        raise unreadable(source, error) from error
    if version > VERSION:
        raise InputError(
            f"{source.path}: written in version {version} of the format; this gpudiag reads version {VERSION}. "
            "Install a newer gpudiag."
        )
    return {"notes": (), "problems": (), **about}


READER = Reader(NAME, recognises, read)
