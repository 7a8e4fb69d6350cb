"""``study.trials_dataframe()`` saved as Parquet."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from gpudiag.errors import InputError
from gpudiag.readers.base import Reader, ReadOptions, Trials
from gpudiag.readers.problems import ProblemLog
from gpudiag.readers.source import Source
from gpudiag.readers.trials.flat import from_columns, is_trials_header
from gpudiag.readers.trials.trials_csv import plain_names

NAME = "optuna-trials-parquet"
MAGIC = b"PAR1"


def recognises(source: Source) -> bool:
    """A Parquet file with the columns of a trials_dataframe; its footer, which names them, lies at the end."""
    if not source.head.startswith(MAGIC):
        return False
    try:
        return is_trials_header(plain_names(pq.read_schema(source.path).names))
    except (pa.ArrowException, OSError, ValueError):
        return False


def read(source: Source, options: ReadOptions) -> Trials:
    """One trial per row; the study is called as the options say, else like the file."""
    try:
        table = pq.read_table(source.path)
        columns = {name: _cells(table.column(at)) for at, name in enumerate(plain_names(table.column_names))}
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        said = " ".join(str(error).split())
        raise InputError(
            f"{source.path}: is no readable Parquet file ({said}); check that the copy is complete."
        ) from error
    return from_columns(columns, source, options, NAME, ProblemLog())


def _cells(values: pa.ChunkedArray) -> list[object]:
    if pa.types.is_timestamp(values.type) or pa.types.is_duration(values.type):
        # To microseconds: Python's datetime knows no nanoseconds.
        kind = pa.timestamp("us", values.type.tz) if pa.types.is_timestamp(values.type) else pa.duration("us")
        return values.cast(kind, safe=False).to_pylist()
    return values.to_pylist()


READER: Reader[Trials] = Reader(NAME, recognises, read)
