"""``study.trials_dataframe()``, or a table of trials that somebody wrote, saved as Parquet."""

from __future__ import annotations

import pyarrow as pa

from gpudiag.readers._io.parquet_file import first_rows_of, schema_of, table_of, unreadable
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._studies.flat import from_columns
from gpudiag.readers._studies.trial_columns import LOOKED_AT, is_own_header, is_own_table, is_trials_header
from gpudiag.readers.base import Reader, ReadOptions, Trials
from gpudiag.readers.trials.trials_csv import plain_names

NAME = "optuna-trials-parquet"


def recognises(source: Source) -> bool:
    """A Parquet file with the columns of a trials_dataframe, which its footer names, or with such that are trials."""
    schema = schema_of(source)
    if schema is None:
        return False
    names = plain_names(schema.names)
    return is_trials_header(names) or (is_own_header(names) and is_own_table(first_rows_of(source, LOOKED_AT)))


def read(source: Source, options: ReadOptions) -> Trials:
    """One trial per row; the study is called as the options say, else like the file."""
    table = table_of(source)
    try:
        columns = {name: _cells(table.column(at)) for at, name in enumerate(plain_names(table.column_names))}
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise unreadable(source, error) from error
    return from_columns(columns, source, options, NAME, ProblemLog())


def _cells(values: pa.ChunkedArray) -> list[object]:
    if pa.types.is_timestamp(values.type) or pa.types.is_duration(values.type):
        # To microseconds: Python's datetime knows no nanoseconds.
        kind = pa.timestamp("us", values.type.tz) if pa.types.is_timestamp(values.type) else pa.duration("us")
        return values.cast(kind, safe=False).to_pylist()
    return values.to_pylist()


READER: Reader[Trials] = Reader(NAME, recognises, read)
