"""``sacct --parsable2`` (or ``--parsable``): Slurm's own record of jobs. Steps are folded into their job.

Where jobstats left its record in AdminComment, the job has the mean utilization of its GPUs and their fullest memory.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpudiag.errors import InputError
from gpudiag.readers._io.lines import numbered_lines
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._jobs.scheduler_jobs import header_of
from gpudiag.readers._jobs.slurm_trials import Row, trials_of
from gpudiag.readers.base import Reader, ReadOptions, Trials

NAME = "slurm-sacct"


def recognises(source: Source) -> bool:
    """The header of ``--parsable2``: names joined by ``|``, with the job, its state and a time. Its table in columns
    is known too, to say how to print it.
    """
    if _is_in_columns(source):
        return True
    names = set(header_of(source))
    return bool(names & {"JobID", "JobIDRaw"}) and "State" in names and bool(names & {"Start", "End", "Elapsed"})


def _is_in_columns(source: Source) -> bool:
    """What sacct prints when it is not asked for ``--parsable2``: a line of dashes below names, cells cut to fit."""
    if source.is_binary or len(source.lines) < 2:
        return False
    names, rule = source.lines[0].split(), source.lines[1].split()
    return "JobID" in names and "State" in names and len(rule) == len(names) and set("".join(rule)) == {"-"}


def read(source: Source, options: ReadOptions) -> Trials:
    """A trial for each time that a job with GPUs ran. Raises InputError if there is no job, or if the cells are cut."""
    if _is_in_columns(source):
        raise InputError(
            f"{source.path}: is sacct's table with cells cut to fit; print it again with: sacct --parsable2 "
            "--format=JobID,JobName,State,ExitCode,Start,End,Elapsed,AllocTRES,NodeList."
        )
    problems = ProblemLog()
    rows = _rows(source, problems)
    return trials_of(rows, source, options, NAME, problems, expected="rows as sacct --parsable2 prints them")


def _rows(source: Source, problems: ProblemLog) -> Iterator[Row]:
    names = header_of(source)
    for line, text in numbered_lines(source, problems):
        cells = text.split("|")
        if cells[: len(names)] == names or not text.strip():
            continue
        if len(cells) not in (len(names), len(names) + 1):
            problems.add("row of another width", line=line, example=text, lost=True)
            continue
        yield line, dict(zip(names, cells, strict=False))


READER: Reader[Trials] = Reader(NAME, recognises, read)
