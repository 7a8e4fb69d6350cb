"""``scontrol show job``: what Slurm keeps in memory of jobs that wait, run or ended minutes ago, one or several.

With ``--details`` it says which GPUs of its nodes a job has.
"""

from __future__ import annotations

from gpudiag.readers._io.lines import numbered_lines
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._jobs.scontrol_text import is_scontrol_text, rows_of
from gpudiag.readers._jobs.slurm_trials import trials_of
from gpudiag.readers.base import Reader, ReadOptions, Trials

NAME = "slurm-scontrol"


def read(source: Source, options: ReadOptions) -> Trials:
    """A trial for each job with GPUs. Raises InputError if there is no job."""
    problems = ProblemLog()
    rows = rows_of(numbered_lines(source, problems), problems)
    return trials_of(rows, source, options, NAME, problems, expected="jobs as scontrol show job prints them")


READER: Reader[Trials] = Reader(NAME, is_scontrol_text, read)
