"""``gpudiag record -o NAME.parquet``: the rows of the recorder's CSV, with the sessions' headers in the footer."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from gpudiag.errors import InputError
from gpudiag.readers.base import Reader, ReadOptions, Telemetry
from gpudiag.readers.problems import ProblemLog
from gpudiag.readers.record_format import PARQUET_KEY
from gpudiag.readers.source import Source
from gpudiag.readers.telemetry.gpudiag_csv import Session, tables

NAME = "gpudiag-record-parquet"
MAGIC = b"PAR1"


def recognises(source: Source) -> bool:
    """A Parquet file whose footer, at its end, holds the recorder's headers."""
    if not source.head.startswith(MAGIC):
        return False
    try:
        return PARQUET_KEY in (pq.read_schema(source.path).metadata or {})
    except (pa.ArrowException, OSError):
        return False


def read(source: Source, options: ReadOptions) -> Telemetry:
    """Read every session; see :func:`gpudiag.readers.telemetry.read_telemetry`."""
    try:
        table = pq.read_table(source.path)
        headers: list[dict[str, Any]] = json.loads(table.schema.metadata[PARQUET_KEY])
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{source.path}: is no readable recording in Parquet ({error}).") from error
    frame = pl.DataFrame(table)
    found = [
        Session(header["about"], header["gpus"], rows=[frame.filter(pl.col("session") == at).drop("session")])
        for at, header in enumerate(headers)
    ]
    return tables(source, NAME, options, found, ProblemLog())


READER = Reader(NAME, recognises, read)
