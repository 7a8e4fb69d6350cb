"""Tables that ``gpudiag export`` wrote for other tools; known in order to say what is read in their place."""

from __future__ import annotations

from gpudiag.errors import InputError
from gpudiag.readers._io.source import Source
from gpudiag.readers._shape.exported import exported_in
from gpudiag.readers.base import Reader, ReadOptions, Trials

NAME = "gpudiag-export"


def recognises(source: Source) -> bool:
    """A CSV or a Parquet file with the columns of one of the tables; ``gpu`` as CSV is a home-made log."""
    return bool(exported_in(source))


def read(source: Source, options: ReadOptions) -> Trials:
    """Raise InputError that says what is read in its place."""
    raise InputError(
        f"{source.path}: is table {exported_in(source)} of gpudiag export, written for other tools; give what the "
        "run was read from, or telemetry that gpudiag convert wrote."
    )


READER: Reader[Trials] = Reader(NAME, recognises, read, refuses=True)
