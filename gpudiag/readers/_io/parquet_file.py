"""Parquet files, whatever they hold: their schema from the footer at the end, and their content."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpudiag.errors import InputError
from gpudiag.readers._io.source import Source

if TYPE_CHECKING:
    import pyarrow as pa

MAGIC = b"PAR1"


def schema_of(source: Source) -> pa.Schema | None:
    """Names, types and metadata of the columns; None for what is no whole Parquet file."""
    if not source.head.startswith(MAGIC):
        return None
    import pyarrow as pa
    import pyarrow.parquet as pq  # with the file systems of Arrow, which most files do not need

    try:
        return pq.read_schema(_opened(source))
    except (pa.ArrowException, OSError, ValueError):
        return None


def first_rows_of(source: Source, count: int) -> list[dict[str, object]]:
    """So many rows at most, by column; none where they cannot be read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        batch = next(pq.ParquetFile(_opened(source)).iter_batches(count), None)
        return batch.to_pylist() if batch is not None else []
    except (pa.ArrowException, OSError, ValueError, OverflowError):
        return []


def table_of(source: Source) -> pa.Table:
    """The whole content. Raises InputError where it is damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_table(_opened(source), page_checksum_verification=True)
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise unreadable(source, error) from error


def unreadable(source: Source, error: Exception) -> InputError:
    """The error for a Parquet file that does not hold what its footer promises."""
    message = " ".join(str(error).split())
    return InputError(f"{source.path}: is no readable Parquet file ({message}); check that the copy is complete.")


def _opened(source: Source) -> object:
    if not source.compression:
        return source.path
    import pyarrow as pa

    return pa.BufferReader(source.read_bytes())
