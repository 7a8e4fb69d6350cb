"""Whether the GPUs of a run do each step together, so that the slowest sets the pace of all."""

from __future__ import annotations

from gpudiag.measures._steps.courses import courses
from gpudiag.measures._steps.ranks import in_lock_step
from gpudiag.run import Run


def in_step(run: Run) -> str:
    """'yes' where its ranks meet in collectives, or its logs are one of all GPUs or one of each rank; 'no' of trials,
    which do not wait for each other; '' unknown.
    """
    if len(run.trials):
        return "no"
    told = courses(run)
    return "yes" if len(run.collectives) or (told and in_lock_step(told)) else ""
