"""How many inputs there were, and which of them could not be read."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from gpudiag.errors import NotMeasurable
from gpudiag.measures.base import Profile
from gpudiag.run import InputRecord, Run


@dataclass(frozen=True, eq=False, repr=False)
class InputsProfile(Profile):
    """``unread``: path and error of each input that a reader recognised and could not read. ``n_inputs``: all that were
    recognised. ``n_unread``: of these, those that could not be read.
    """

    unread: pd.DataFrame
    n_inputs: int
    n_unread: int


def measure_inputs(run: Run) -> InputsProfile:
    """The inputs by their records. Needs a run that was loaded."""
    if not run.info.inputs:
        raise NotMeasurable("The run was built in memory, without inputs.", "Load it with gpudiag.load_run.")
    unread = [(record.path, why) for record in run.info.inputs if (why := _why_unread(record))]
    return InputsProfile(pd.DataFrame(unread, columns=["path", "error"]), len(run.info.inputs), len(unread))


def _why_unread(record: InputRecord) -> str:
    """The error, or the first damage of an input of which no row is left; '' where it was read."""
    lost = [problem for problem in record.problems if problem.lost]
    if record.error or record.rows or not lost:
        return record.error or ""
    return f"{record.path}: nothing of it could be read ({lost[0].kind}: {lost[0].example})"
