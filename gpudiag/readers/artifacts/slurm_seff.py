"""What ``seff`` and ``reportseff`` print of a job: shares of its time; recognized in order to say what holds more."""

from __future__ import annotations

from gpudiag.readers._io.lines import plain
from gpudiag.readers._io.paths import as_text
from gpudiag.readers._io.source import Source
from gpudiag.readers.base import Reader, ReadOptions, Trials

NAME = "slurm-seff"
_LINES = 20
_OF_SEFF = ("Job ID: ", "Cluster: ", "User/Group: ", "State: ")
_OF_TABLE = {"JobID", "State", "Elapsed", "CPUEff", "MemEff"}


def recognises(source: Source) -> bool:
    """The lines with which seff begins, or the names above reportseff's table."""
    if source.is_binary:
        return False
    lines = [plain(line).strip() for line in source.lines[:_LINES] if line.strip()]
    if not lines:
        return False
    return set(lines[0].split()) >= _OF_TABLE or all(any(line.startswith(name) for line in lines) for name in _OF_SEFF)


def read(source: Source, options: ReadOptions) -> Trials:
    """No row: it says neither when a job began nor which GPUs it had."""
    note = (
        f"{as_text(source.path.name)}: states shares of the time of a job and not when it ran, and is not used; give "
        "what sacct --json prints of it."
    )
    return Trials(notes=(note,), reader=NAME)


READER: Reader[Trials] = Reader(NAME, recognises, read, refuses=True)
