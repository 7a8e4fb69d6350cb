"""How many inputs there were, and which of them could not be read."""

from __future__ import annotations

import re

import pandas as pd

from gpudiag.errors import NotMeasurable
from gpudiag.facts import Column, Fact, Row, Rows, column, fact, table_of
from gpudiag.measures.base import Profile
from gpudiag.memo import memoized
from gpudiag.readers._io.problems import INCOMPLETE
from gpudiag.readers._shape.tidy import SET_BACK
from gpudiag.run import InputRecord, Run

LOG_NAMES = re.compile(
    r"(?i)\.(?:log|out|err|stdout|stderr|jsonl)(?:\.\d+)?$|(?:^|/)trainer_state\.json$"
    r"|(?:^|[/_.-])(?:log|output|console|stdout|stderr)(?:\.txt)?$"
)
METRIC_NAMES = re.compile(
    r"(?i)(?:^|[/_.-])(?:log|loss(?:es)?|metrics?|history|progress|results?|scalars)\.(?:csv|tsv|json|parquet)$"
)
MOST_NAMED = 3


class UnreadInput(Row):
    """An input that a reader recognised and could not read, or only in part."""

    path: Column[str] = column("where it lies, as the run names it", label="path")
    error: Column[str] = column("why it could not be read")


class InputsProfile(Profile, topic="inputs"):
    """What the run was read from."""

    unread: Rows = table_of(UnreadInput)
    n_inputs: Fact[int] = fact("inputs that a reader recognized", label="inputs")
    n_unread: Fact[int] = fact("inputs that could not be read, or only in part", label="not read whole")
    n_unknown: Fact[int] = fact("logs and tables of metrics in the folder that no reader knows")
    unknown: Fact[str] = fact("the first three of them, logs before others, '' for none")


@memoized
def measure_inputs(run: Run) -> InputsProfile:
    """The inputs by their records. Needs a run that was loaded."""
    if not run.info.inputs:
        raise NotMeasurable("The run was built in memory, without inputs.", "Load it with gpudiag.load_run.")
    unread = [(record.path, why) for record in run.info.inputs if (why := _why_unread(record))]
    unknown = [*_unknown(run, LOG_NAMES), *_unknown(run, METRIC_NAMES)]
    return InputsProfile(
        unread=pd.DataFrame(unread, columns=["path", "error"]),
        n_inputs=len(run.info.inputs),
        n_unread=len(unread),
        n_unknown=len(unknown),
        unknown=", ".join(unknown[:MOST_NAMED]),
    )


def unknown_logs(run: Run) -> list[str]:
    """Files of the folder that are called logs, and of which no reader knows the content; three at most."""
    return _unknown(run, LOG_NAMES)[:MOST_NAMED]


def _unknown(run: Run, names: re.Pattern[str]) -> list[str]:
    return [name for name in run.info.not_recognized if names.search(name)]


def _why_unread(record: InputRecord) -> str:
    """The error, the first damage of an input of which no row is left, that it is cut, or that its time goes back;
    '' where it was read.
    """
    lost = [problem for problem in record.problems if problem.lost]
    cut = [problem for problem in lost if problem.kind.startswith(INCOMPLETE)]
    part = next(iter((*cut, *(problem for problem in record.problems if problem.kind == SET_BACK))), None)
    if part and record.rows and not record.error:
        example = f" ({part.example})" if part.example else ""
        return f"{record.path}: {part.kind.removeprefix(INCOMPLETE).strip()}{example}"
    if record.error or record.rows or not lost:
        return record.error or ""
    return f"{record.path}: nothing of it could be read ({lost[0].kind}: {lost[0].example})"
