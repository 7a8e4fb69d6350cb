"""``sacct --json``, ``squeue --json`` and ``scontrol show job --json``: jobs of Slurm as JSON.

sacct's list holds jobs that have ended; what squeue and scontrol print says which GPUs of its node a job has.
"""

from __future__ import annotations

from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._jobs.slurm_json import document, is_slurm_json, rows_of
from gpudiag.readers._jobs.slurm_trials import trials_of
from gpudiag.readers.base import Reader, ReadOptions, Trials

NAME = "slurm-json"


def read(source: Source, options: ReadOptions) -> Trials:
    """A trial for each time that a job with GPUs ran; lines are the numbers of the entries. Raises InputError if it is
    not whole, or holds no job.
    """
    problems = ProblemLog()
    rows = rows_of(document(source), problems)
    return trials_of(rows, source, options, NAME, problems, expected="jobs as sacct --json prints them")


READER: Reader[Trials] = Reader(NAME, is_slurm_json, read)
