"""A CSV of batch tasks: a header that names a status and a time or a duration, one task a row.

The spellings are those of the JSON Lines form; ``Start Time`` and ``start-time`` are ``start_time``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gpudiag.errors import InputError
from gpudiag.readers._batches.nextflow_cells import is_trace_header
from gpudiag.readers._batches.task_words import DURATIONS, END, NOT_TASKS, OF_GPUS, START, STATUS
from gpudiag.readers._io.csv_records import cells_of, header_and_rows
from gpudiag.readers._io.lines import delimiter_of
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._shape.exported import exported_table
from gpudiag.readers._studies.flat import typed
from gpudiag.readers._studies.trial_columns import is_own_header, is_trials_header, plain_name
from gpudiag.readers.artifacts import task_jsonl
from gpudiag.readers.base import Reader, ReadOptions, Trials

NAME = "task-csv"

_SPENT = (*START, *END, *(key for keys in DURATIONS for key in keys))
_OF_WANDB = {"created": "start_time", "runtime": "runtime_s"}
_LOOKED_AT = 20
_MOST_COLUMNS = 4096


def recognises(source: Source) -> bool:
    """True if the header names how a task ended and when, and the first rows' status is a known word.

    One timestamp alone is not enough: a log of samples has that too.
    """
    if source.is_binary or not source.lines:
        return False
    delimiter = delimiter_of(source.lines[0])
    own = cells_of(source.lines[0], delimiter)
    if len(own) > _MOST_COLUMNS:
        return False
    names = _names(own)
    known = set(names)
    if len(names) < 2 or not known & set(STATUS) or not known & set(_SPENT) or known & set(NOT_TASKS):
        return False
    if (
        is_trials_header(own)
        or is_own_header(own)
        or is_trace_header(own)
        or exported_table(own)
        or any(OF_GPUS.search(name) for name in names)
    ):
        return False
    rows = (cells_of(line, delimiter) for line in source.lines[1:_LOOKED_AT])
    tasks = [dict(zip(names, typed_row(row), strict=False)) for row in rows if len(row) == len(names)]
    states = [task_jsonl.state_of(task) for task in tasks]
    return bool(states) and 2 * sum(state is not None for state in states) > len(states)


def _names(header: Sequence[str]) -> list[str]:
    """The names as the JSON Lines form has them, and those of a table of runs of W&B as it means them."""
    names = [plain_name(name) for name in header]
    # A line of a log is created as its task ends; a record in a table may be as it begins, so that neither is known.
    meant = _OF_WANDB if {*_OF_WANDB, "state", "user", "tags"} <= {*names} else {"created_at": "created"}
    return [meant.get(name, name) for name in names]


def typed_row(cells: list[str]) -> list[Any]:
    """Each cell as number, truth value or text; None if it is empty."""
    return [typed([cell.strip()])[0] for cell in cells]


def read(source: Source, options: ReadOptions) -> Trials:
    """One trial per row, numbered in the order of the rows.

    Raises InputError if no row is a task.
    """
    problems = ProblemLog()
    tasks = list(_tasks(source, problems))
    if not tasks:
        raise InputError(f"{source.path}: no row is a task; expected a status and a time or duration in each.")
    return task_jsonl.tables(tasks, source, options, problems, NAME)


def _tasks(source: Source, problems: ProblemLog) -> Iterator[tuple[int, dict[str, Any]]]:
    header, rows = header_and_rows(source.read_text(), delimiter_of(source.lines[0]), problems, source.path)
    names = _names(header)
    for number, row in rows:
        if _names(row) == names:
            continue
        task = dict(zip(names, typed_row(row), strict=False))
        if len(row) != len(names):
            problems.add("row of another width", line=number, example=",".join(row), lost=True)
        elif task_jsonl.state_of(task) is None:
            problems.add("row without a known status", line=number, example=",".join(row), lost=True)
        else:
            yield number, {name: value for name, value in task.items() if value is not None}


READER: Reader[Trials] = Reader(NAME, recognises, read)
