"""Reports of Nsight Systems in SQLite: where the time of each GPU went in the profiled steps."""

from __future__ import annotations

from gpudiag.readers._io.source import Source
from gpudiag.readers._traces.profiled import profiled
from gpudiag.readers.base import Reader, ReadOptions, Trials

NAME = "nsight-systems"


def recognises(source: Source) -> bool:
    """True if the head of an SQLite file creates the tables of ``nsys export``."""
    return source.is_sqlite and b"CUPTI_ACTIVITY_KIND_" in source.head and b"StringIds" in source.head


def read(source: Source, options: ReadOptions) -> Trials:
    """Table ``profiled``: a row a GPU. Raises InputError for a report that holds no work of a GPU."""
    return profiled(source, NAME)


READER = Reader(NAME, recognises, read)
