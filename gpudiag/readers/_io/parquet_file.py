"""Parquet files, whatever they hold: their schema from the footer at the end, and their content."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from gpudiag.errors import InputError
from gpudiag.readers._io.source import Source

MAGIC = b"PAR1"


def schema_of(source: Source) -> pa.Schema | None:
    """Names, types and metadata of the columns; None for what is no whole Parquet file."""
    if not source.head.startswith(MAGIC):
        return None
    try:
        return pq.read_schema(_opened(source))
    except (pa.ArrowException, OSError, ValueError):
        return None


def table_of(source: Source) -> pa.Table:
    """The whole content. Raises InputError where it is damaged."""
    try:
        return pq.read_table(_opened(source), page_checksum_verification=True)
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise unreadable(source, error) from error


def unreadable(source: Source, error: Exception) -> InputError:
    """The error for a Parquet file that does not hold what its footer promises."""
    message = " ".join(str(error).split())
    return InputError(f"{source.path}: is no readable Parquet file ({message}); check that the copy is complete.")


def _opened(source: Source) -> object:
    return pa.BufferReader(source.read_bytes()) if source.compression else source.path
