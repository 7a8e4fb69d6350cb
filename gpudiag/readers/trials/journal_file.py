"""Optuna's JournalStorage in a file, whatever its name; it may be written to while it is read."""

from __future__ import annotations

import json
from collections.abc import Iterator

from gpudiag.readers.base import Reader, ReadOptions, Trials
from gpudiag.readers.problems import ProblemLog
from gpudiag.readers.source import Source
from gpudiag.readers.trials.assemble import assemble
from gpudiag.readers.trials.journal import Operation, replay, to_stored
from gpudiag.readers.trials.stored import pick_study

NAME = "optuna-journal"


def recognises(source: Source) -> bool:
    """True if the first line is an operation of a journal."""
    first = source.head.lstrip()[:65536].partition(b"\n")[0]
    if not first.startswith(b"{") or b'"op_code"' not in first:
        return False
    try:
        operation = json.loads(first)
    except (ValueError, RecursionError):
        return False
    return isinstance(operation.get("op_code"), int) and "worker_id" in operation


def _operations(source: Source, problems: ProblemLog) -> Iterator[Operation]:
    """The complete lines. The last one has no newline while it is being written."""
    with source.stream() as stream:
        for number, line in enumerate(stream, start=1):
            if not line.endswith(b"\n"):
                problems.add("last line without its end, still being written or cut", line=number)
                return
            try:
                operation = json.loads(line)
            except (ValueError, RecursionError):
                operation = None
            if isinstance(operation, dict):
                yield operation
            elif line.strip():
                problems.add("line that is not a JSON object", line=number, lost=True)


def read(source: Source, options: ReadOptions) -> Trials:
    """Every study of the journal, or the one of ``options.study``."""
    problems = ProblemLog()
    state = replay(_operations(source, problems), problems)
    pick_study(options.study, (name for name, _ in state.studies.values()), source.path)
    stored = to_stored(state, options.timezone, options.study, problems)
    return assemble(stored, options.timezone, str(source.path), NAME, problems)


READER: Reader[Trials] = Reader(NAME, recognises, read)
