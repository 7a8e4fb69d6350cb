"""``gpudiag record -o NAME.parquet``: the rows of the recorder's CSV, with the sessions' headers in the footer."""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from gpudiag.readers._io.parquet_file import schema_of, table_of, unreadable
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.record_format import PARQUET_KEY
from gpudiag.readers._io.source import Source
from gpudiag.readers.base import Reader, ReadOptions, Telemetry
from gpudiag.readers.telemetry.gpudiag_csv import Session, tables

NAME = "gpudiag-record-parquet"


def recognises(source: Source) -> bool:
    """A Parquet file whose footer, at its end, holds the recorder's headers."""
    schema = schema_of(source)
    return schema is not None and PARQUET_KEY in (schema.metadata or {})


def read(source: Source, options: ReadOptions) -> Telemetry:
    """Read every session; see :func:`gpudiag.readers.telemetry.read_telemetry`."""
    table = table_of(source)
    try:
        headers: list[dict[str, Any]] = json.loads(table.schema.metadata[PARQUET_KEY])
        frame = pl.DataFrame(table)
        found = [
            Session(header["about"], header["gpus"], rows=[frame.filter(pl.col("session") == at).drop("session")])
            for at, header in enumerate(headers)
        ]
    except (pl.exceptions.PolarsError, KeyError, TypeError, ValueError) as error:
        raise unreadable(source, error) from error
    return tables(source, NAME, options, found, ProblemLog())


READER = Reader(NAME, recognises, read)
