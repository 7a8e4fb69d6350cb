"""``sacct --json``, ``squeue --json`` and ``scontrol show job --json``: jobs of Slurm as JSON.

sacct's list holds jobs that have ended; what squeue and scontrol print says which GPUs of its node a job has.
"""

from __future__ import annotations

import re

from gpudiag.errors import InputError
from gpudiag.readers._io.json_values import read_json
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._jobs.slurm_json import rows_of
from gpudiag.readers._jobs.slurm_trials import trials_of
from gpudiag.readers.base import Reader, ReadOptions, Trials

NAME = "slurm-json"
_JOBS = re.compile(r'"jobs"\s*:\s*\[')
_OF_SLURM = re.compile(r'"(?:data_parser|Slurm|slurm)"\s*:')
_BEGINNING = 8192
"""Characters: only what Slurm says of itself stands before the jobs."""


def recognises(source: Source) -> bool:
    """A JSON object with a list of jobs that have a number and nodes, or an empty one of Slurm."""
    text = source.text
    if source.is_binary or not text.lstrip().startswith("{"):
        return False
    found = _JOBS.search(text[:_BEGINNING])
    if found is None:
        return False
    if text[found.end() :].lstrip().startswith("]"):
        return _OF_SLURM.search(text) is not None
    return '"job_id"' in text and '"nodes"' in text


def read(source: Source, options: ReadOptions) -> Trials:
    """A trial for each time that a job with GPUs ran; lines are the numbers of the entries. Raises InputError if it is
    not whole, or holds no job.
    """
    try:
        found = read_json(source.read_text())
    except (ValueError, RecursionError) as error:
        raise InputError(f"{source.path}: is no whole JSON document; print it again with: sacct --json.") from error
    problems = ProblemLog()
    rows = rows_of(found, problems)
    return trials_of(rows, source, options, NAME, problems, expected="jobs as sacct --json prints them")


READER: Reader[Trials] = Reader(NAME, recognises, read)
