"""Tables that ``gpudiag export`` wrote for other tools; known in order to say what is read in their place."""

from __future__ import annotations

from gpudiag.errors import InputError
from gpudiag.readers._io.csv_records import cells_of
from gpudiag.readers._io.parquet_file import schema_of
from gpudiag.readers._io.source import Source
from gpudiag.readers._shape.exported import exported_table
from gpudiag.readers.base import Reader, ReadOptions, Trials

NAME = "gpudiag-export"


def recognises(source: Source) -> bool:
    """A CSV or a Parquet file with the columns of one of the tables; ``gpu`` as CSV is a home-made log."""
    return bool(_table(source))


def _table(source: Source) -> str:
    schema = schema_of(source)
    if schema is not None:
        is_input = any(key.startswith(b"gpudiag") for key in schema.metadata or {})  # a recording, or of convert
        return "" if is_input else exported_table(schema.names, also_gpu=True)
    if source.is_dir or source.is_binary or not source.lines:
        return ""
    return exported_table(cells_of(source.lines[0]))


def read(source: Source, options: ReadOptions) -> Trials:
    """Raise InputError that says what is read in its place."""
    raise InputError(
        f"{source.path}: is table {_table(source)} of gpudiag export, written for other tools; give what the run was "
        "read from, or telemetry that gpudiag convert wrote."
    )


READER: Reader[Trials] = Reader(NAME, recognises, read, refuses=True)
