"""Nextflow's trace file (``-with-trace``): a row a task, in human units or raw ones, tab-separated.

By default it holds when a task was submitted, how long it took from there (``duration``) and how long it ran
(``realtime``): it ended a duration after it was submitted, and began a realtime before that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import tzinfo
from typing import Any

import pandas as pd

from gpudiag.errors import InputError
from gpudiag.readers._batches import nextflow_cells
from gpudiag.readers._batches.batch_tables import batch
from gpudiag.readers._batches.nextflow_cells import NOTHING
from gpudiag.readers._io.lines import delimiter_of, numbered_lines
from gpudiag.readers._io.paths import without_kind
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._studies.timestamps import to_utc
from gpudiag.readers.base import Reader, ReadOptions, Trials
from gpudiag.report.format import plural

NAME = "nextflow-trace"

_STATES = {
    "COMPLETED": "COMPLETE", "FAILED": "FAIL", "ABORTED": "FAIL", "RUNNING": "RUNNING",
    "SUBMITTED": "WAITING", "NEW": "WAITING",
}  # fmt: skip
_CACHED = "CACHED"
_KEPT = ("hash", "native_id", "process", "tag", "queue", "exit", "status")
"""Columns kept as attributes; ``script``, ``env`` and ``workdir`` may hold secrets and are not."""
_SIZES = ("peak_rss", "peak_vmem", "rss", "vmem", "rchar", "wchar", "read_bytes", "write_bytes", "memory")


def recognises(source: Source) -> bool:
    """True for a header of nothing but Nextflow's columns."""
    return bool(_header(source))


def _header(source: Source) -> list[str]:
    if source.is_binary or not source.top:
        return []
    names = source.top[0].strip().split(delimiter_of(source.top[0]))
    return names if nextflow_cells.is_trace_header(names) else []


def read(source: Source, options: ReadOptions) -> Trials:
    """One trial a task, numbered in the order of the lines. A task from the cache did not run, and is none.

    Raises InputError if there is no task.
    """
    problems = ProblemLog()
    found = list(_rows(source, problems))
    if not found:
        raise InputError(f"{source.path}: holds no task; expected rows as nextflow run -with-trace writes them.")
    numbered = [(line, task) for line, task in found if task["status"] != _CACHED]
    lines, tasks = [line for line, _ in numbered], [task for _, task in numbered]
    starts, ends, clock = _times(tasks, lines, options.timezone, problems)
    rows = [
        _trial(task, line, problems) | {"start": start, "end": end}
        for task, line, start, end in zip(tasks, lines, starts, ends, strict=True)
    ]
    study = without_kind(source.path)
    out = batch(
        rows, source, options, NAME, problems, study=study, notes=_notes(tasks, len(found) - len(tasks)), lines=lines
    )
    if clock == "utc":
        return out
    read_as = f"{NAME}: timestamps without a zone read as local time of {options.timezone}."
    shown = read_as if clock in ("local", "mixed") else ""
    return replace(out, studies=out.studies.assign(clock=clock), notes=(*out.notes, *([shown] if shown else [])))


def _rows(source: Source, problems: ProblemLog) -> Iterator[tuple[int, dict[str, str]]]:
    """Cells are never quoted, so that a quote in a name is a quote."""
    names, delimiter = _header(source), delimiter_of(source.top[0])
    for line, text in numbered_lines(source, problems):
        cells = [cell.strip() for cell in text.split(delimiter)]
        if cells == names or not text.strip():
            continue
        if len(cells) != len(names):
            problems.add("row of another width", line=line, example=text, lost=True)
            continue
        task = {name: cell for name, cell in zip(names, cells, strict=True) if cell not in NOTHING}
        if task.get("status") in (*_STATES, _CACHED):
            yield line, task
        else:
            problems.add("row without a known status", line=line, example=text, lost=True)


def _times(
    tasks: Sequence[Mapping[str, str]], lines: Sequence[int], zone: tzinfo, problems: ProblemLog
) -> tuple[list[Any], list[Any], str]:
    """Starts and ends, as datetimes in UTC, and the clock of what was written. Durations are added in UTC, since a
    change of clocks may lie between.
    """
    written = {name: to_utc([task.get(name) for task in tasks], zone) for name in ("submit", "start", "complete")}
    for found in written.values():
        problems.add("timestamp that is no date", found.bad, example=found.example)
    clocks = {found.clock for found in written.values()} - {"unknown"}
    lasted, ran = (
        pd.to_timedelta(
            pd.Series([_length_s(*row, name, problems) for row in zip(tasks, lines, strict=True)]), unit="s"
        )
        for name in ("duration", "realtime")
    )
    submit = written["submit"].time
    end = written["complete"].time.fillna(submit + lasted)
    began = end - ran
    start = written["start"].time.fillna(began.where(~(began < submit), submit))
    clock = clocks.pop() if len(clocks) == 1 else "mixed" if clocks else "unknown"
    return _cells(start), _cells(end), clock


def _cells(times: pd.Series) -> list[Any]:
    return [None if pd.isna(time) else time.to_pydatetime() for time in times.dt.round("us")]


def _trial(task: Mapping[str, str], line: int, problems: ProblemLog) -> dict[str, Any]:
    status = task["status"]
    row: dict[str, Any] = {"name": task.get("name") or task.get("process"), "state": _STATES[status]}
    counted = ProblemLog()  # what is wrong with it was counted where the times were made
    row["duration_s"] = _length_s(task, line, "realtime", counted)
    if row["state"] == "FAIL":
        exit_code = task.get("exit", "0")
        row["detail"] = status if exit_code == "0" else f"{status}, exit code {exit_code}"
    row["host"] = task.get("hostname")
    row |= {f"user_attrs.{name}": task[name] for name in _KEPT if name in task}
    numbers = {f"{name}_mib": _number(task, line, name, nextflow_cells.mib, problems) for name in _SIZES}
    numbers |= {name: _number(task, line, name, nextflow_cells.count, problems) for name in ("cpus", "attempt")}
    numbers["cpu_pct"] = _number(task, line, "%cpu", nextflow_cells.percent, problems)
    return row | {f"user_attrs.{name}": number for name, number in numbers.items() if not math.isnan(number)}


def _length_s(task: Mapping[str, str], line: int, name: str, problems: ProblemLog) -> float:
    return _number(task, line, name, nextflow_cells.seconds, problems)


def _number(
    task: Mapping[str, str], line: int, name: str, parse: Callable[[str], float], problems: ProblemLog
) -> float:
    """A cell as a number; NaN where there is none, and where it is no number that can be, which is counted."""
    cell = task.get(name)
    number = math.nan if cell is None else parse(cell)
    if cell is not None and math.isnan(number):
        problems.add(f"cell of {name} that is none", line=line, example=cell)
    return number


def _notes(tasks: Sequence[Mapping[str, str]], n_cached: int) -> list[str]:
    notes = []
    if any("start" not in task and "realtime" in task for task in tasks):
        notes.append(
            "Nextflow wrote no start: a task ended its duration after it was submitted and began its realtime before "
            "that, to about a second. For more, set trace.fields to hold start and complete, and trace.raw to true."
        )
    if n_cached:
        notes.append(f"{plural(n_cached, 'task')} came from the cache of an earlier run and did not run in this one.")
    return notes


READER: Reader[Trials] = Reader(NAME, recognises, read)
