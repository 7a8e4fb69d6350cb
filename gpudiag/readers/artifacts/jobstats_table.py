"""A dump of jobstats' own table of records; recognized in order to say what it lacks."""

from __future__ import annotations

from gpudiag.errors import InputError
from gpudiag.readers._io.csv_records import cells_of
from gpudiag.readers._io.lines import delimiter_of
from gpudiag.readers._io.source import Source
from gpudiag.readers._jobs.scheduler_jobs import ADVICE
from gpudiag.readers.base import Reader, ReadOptions, Trials

NAME = "jobstats-table"
COLUMNS = frozenset({"jobid", "admin_comment"})
"""Beside ``cluster`` and the times of writing what its table in MariaDB holds (PrincetonUniversity/jobstats)."""


def recognises(source: Source) -> bool:
    """The names of its columns, without the state of a job."""
    if source.is_binary or not source.lines:
        return False
    names = {name.strip().lower() for name in cells_of(source.lines[0], delimiter_of(source.lines[0]))}
    return names >= COLUMNS and "state" not in names


def read(source: Source, options: ReadOptions) -> Trials:
    """Raise InputError: of no job does it say when it ran, nor how it ended."""
    raise InputError(
        f"{source.path}: is the table of jobstats, which tells neither when a job ran nor how it ended. Give sacct's "
        f"table, with these records as its AdminComment: {ADVICE}."
    )


READER: Reader[Trials] = Reader(NAME, recognises, read, refuses=True)
