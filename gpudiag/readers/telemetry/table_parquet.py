"""Home-made tables of GPU metrics as Parquet, read as the same table in CSV is."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import polars.selectors as cs

from gpudiag.readers._delimited.table_layout import UNNAMED, names_columns
from gpudiag.readers._io.held_file import held_file
from gpudiag.readers._io.parquet_file import schema_of, table_of, unreadable
from gpudiag.readers._io.source import Source
from gpudiag.readers._shape.exported import exported_in
from gpudiag.readers.base import Reader, ReadOptions, Telemetry
from gpudiag.readers.telemetry import table_csv

NAME = "table-parquet"


def recognises(source: Source) -> bool:
    """Columns whose names are understood, and that are not those of a table of ``gpudiag export``."""
    schema = schema_of(source)
    if schema is None or exported_in(source):
        return False
    timed = next((place for place, kind in enumerate(schema.types) if str(kind).startswith("timestamp")), None)
    return names_columns(schema.names, timed=timed)


def read(source: Source, options: ReadOptions) -> Telemetry:
    """Read every row; see :func:`gpudiag.readers.telemetry.read_telemetry`."""
    with held_file(source.path, _plain(source).write_csv) as text:
        return replace(table_csv.read(text, options), reader=NAME)


def _plain(source: Source) -> pl.DataFrame:
    """The columns that a CSV can hold: times in ISO 8601, durations in seconds."""
    try:
        frame = pl.DataFrame(table_of(source))
    except pl.exceptions.PolarsError as error:
        raise unreadable(source, error) from error
    plain = frame.select(~(cs.nested() | cs.binary()))
    since = [name for name in plain.select(cs.duration()).columns if UNNAMED.fullmatch(name)]  # an index of durations
    times = cs.datetime().dt.to_string("iso:strict"), cs.duration().dt.total_microseconds() / 1e6
    return plain.with_columns(*times).rename({since[0]: "elapsed_s"} if len(since) == 1 else {})


READER = Reader(NAME, recognises, read)
