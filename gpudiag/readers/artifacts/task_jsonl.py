"""JSON Lines of batch tasks: one object per task with how it ended and when, as scripts write them.

    {"symbol": "TCS", "window_label": "TCS_2024Q1", "status": "success", "timestamp": "2025-10-28T10:01:02"}
    {"task": 7, "ok": true, "start": 1761645600.1, "end": 1761645609.9, "gpu": 1, "parameters": {"depth": 9}}

A nested ``date_range`` (or start_date, end_date) is the data a task worked on, not when it ran.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from gpudiag.errors import InputError
from gpudiag.readers._batches.task_words import (
    DETAIL,
    DURATIONS,
    END,
    EXIT_CODE,
    MOMENT,
    NOT_TASKS,
    PARAMETERS,
    PLACES,
    REASONS,
    START,
    STATE_OF,
    STATUS,
    STUDY,
    TAKEN,
    TASK,
    TASK_PARTS,
    TIMES,
    word_of,
)
from gpudiag.readers._io.json_values import json_object
from gpudiag.readers._io.paths import as_text, without_kind
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._steps.written_numbers import duration_s
from gpudiag.readers._studies.end_order import checked_ends
from gpudiag.readers._studies.fold import settle_rows
from gpudiag.readers._studies.other_dates import in_iso
from gpudiag.readers._studies.pivot import column, plain
from gpudiag.readers._studies.timestamps import EPOCH_S, Timestamps, moments_of
from gpudiag.readers._studies.trial_columns import NUMBER, VALUE, are_lines_of_trials
from gpudiag.readers._studies.trial_lengths import WITH_SECONDS
from gpudiag.readers.base import Reader, ReadOptions, Trials
from gpudiag.schema import MOST_STEPS, STUDIES, TRIALS, conform, text_dtype
from gpudiag.values import is_number

NAME = "task-jsonl"
_TO_THE_SECOND = re.compile(r"(?:_s|_ms|_sec|secs|seconds)$")


def recognises(source: Source) -> bool:
    """True if the first objects say how a task ended and when it was or how long it took."""
    if source.is_binary or not source.text.lstrip().startswith("{") or are_lines_of_trials(source.lines):
        return False
    seen = 0
    for line in source.lines[:50]:
        task = _parse(line)
        if task is None:
            continue
        if any(key in task for key in NOT_TASKS):
            return False
        seen += state_of(task) is not None and _first(task, TIMES) is not None
    return seen >= max(1, min(3, sum(bool(line.strip()) for line in source.lines[:50])) - 1)


def _parse(line: str) -> dict[str, Any] | None:
    """The object of one line, with lower-case keys; None if it is none."""
    found = json_object(line)
    return None if found is None else {str(key).lower(): value for key, value in found.items()}


def _first(task: Mapping[str, Any], keys: Iterable[str]) -> Any:
    """The first scalar under one of the keys, None if there is none."""
    return next(
        (task[key] for key in keys if task.get(key) not in (None, "") and not isinstance(task[key], dict | list)), None
    )


def state_of(task: Mapping[str, Any]) -> str | None:
    """State of Optuna's kind from a word, a truth value or an exit code."""
    for key in STATUS:
        value = task.get(key)
        if isinstance(value, bool):
            return "COMPLETE" if value != (key == "failed") else "FAIL"
        if isinstance(value, int) and key in EXIT_CODE:
            return "COMPLETE" if value == 0 else "FAIL"
        word = _word(value)
        if word in STATE_OF:
            return STATE_OF[word]
    return None


def _word(value: Any) -> str:
    return word_of(value) if isinstance(value, str) else ""


def read(source: Source, options: ReadOptions) -> Trials:
    """One trial per line, numbered in the order of the lines.

    Raises InputError if no line is a task.
    """
    problems = ProblemLog()
    found = _tasks(source, problems)
    if not found:
        raise InputError(
            f"{source.path}: no line is a task; expected JSON objects with a status and a time or duration."
        )
    return tables(found, source, options, problems, NAME)


def tables(
    found: list[tuple[int, dict[str, Any]]], source: Source, options: ReadOptions, problems: ProblemLog, reader: str
) -> Trials:
    """The tables of tasks given as line number and mapping with lower-case keys, in the order of the lines."""
    numbered = _paired(found)
    lines, tasks = [line for line, _ in numbered], [task for _, task in numbered]
    start, end, notes = _times(tasks, options, problems)
    frame = _frame(tasks, options.study or without_kind(source.path), options.study)
    clocks = {start.clock, end.clock} - {"unknown"}
    clock = clocks.pop() if len(clocks) == 1 else "mixed" if clocks else "unknown"
    local = settle_rows(start.time, end.time, options.timezone) if clock == "local" else None
    frame["start"], ends = (local.start, local.end) if local else (start.time, end.time)
    stated_s = pd.Series([_duration_s(task) for task in tasks])
    sure = ~frame["state"].isin(["RUNNING", "WAITING"]) & pd.Series(map(_is_to_the_second, tasks), dtype=bool)
    reached = frame["start"] + pd.to_timedelta(stated_s.where(sure), unit="s")
    frame["end"] = checked_ends(frame["start"], ends.fillna(reached), source.path, problems, lines)
    open_ended = frame["start"].isna() | frame["end"].isna()
    frame["duration_s"] = stated_s.where(open_ended)
    if clock in ("local", "mixed"):
        read_as = f"read as local time of {options.timezone}{local.said if local else ''}"
        notes.append(f"Tasks of {source.path.name}: timestamps without a zone {read_as}.")
    studies = frame[["study"]].drop_duplicates().assign(directions="", source=as_text(source.path), clock=clock)
    return Trials(
        trials=conform(frame.sort_values(["study", "trial"], kind="stable"), TRIALS),
        studies=conform(studies, STUDIES),
        problems=problems.all,
        notes=tuple(notes),
        reader=reader,
    )


def _frame(tasks: list[dict[str, Any]], default: str, wanted: str | None) -> pd.DataFrame:
    """Everything but the times. A task belongs to the batch it names, unless the caller names one for all, or each of
    several names another: that is its own name.
    """
    text = text_dtype()
    named = [_text(_first(task, STUDY)) for task in tasks]
    own = len(named) > 2 and len({*filter(None, named)}) == len(named) and not any(map(_name, tasks))
    batches = [wanted or (None if own else name) or default for name in named]
    frame = pd.DataFrame({"study": pd.Series(batches, dtype=text), "state": [state_of(task) for task in tasks]})
    spoken_for = _as_trials(frame, tasks)
    frame["name"] = pd.Series(named if own else [_name(task) for task in tasks], dtype=text)
    frame["detail"] = pd.Series([_why(task) for task in tasks], dtype=text)
    for name, keys in PLACES.items():
        frame[name] = _place(name, [_first(task, keys) for task in tasks])
    return pd.concat([frame, pd.DataFrame(_wide(tasks, spoken_for), index=frame.index)], axis=1)


def _as_trials(frame: pd.DataFrame, tasks: list[dict[str, Any]]) -> list[str]:
    """The numbers of tasks, those in their order where they have none of their own, and the values of numbered ones.
    Returns the keys that say them.
    """
    frame["trial"] = frame.groupby("study", sort=False).cumcount()
    key = next((key for key in NUMBER if all(_is_count(task.get(key)) for task in tasks)), "")
    numbered = frame[["study"]].assign(trial=[task.get(key) for task in tasks])
    if not key or numbered.duplicated().any():
        return []
    frame["trial"] = numbered["trial"].astype("int64")
    value = next((name for name in VALUE if any(name in task for task in tasks)), "")
    values = [task.get(value) for task in tasks]
    if not value or not all(one is None or is_number(one) for one in values):
        return [key]
    frame["value"] = pd.Series(values, dtype="float64")
    return [key, value]


def _is_count(value: Any) -> bool:
    return is_number(value) and 0 <= value < MOST_STEPS and float(value).is_integer()


def _why(task: Mapping[str, Any]) -> str | None:
    """The error that a task states, else the word of its state that says why it ended, such as cancelled or oom."""
    if stated := _text(_first(task, DETAIL)):
        return stated
    return next((word for key in STATUS if (word := _word(task.get(key))) in REASONS), None)


def _tasks(source: Source, problems: ProblemLog) -> list[tuple[int, dict[str, Any]]]:
    """The lines that are tasks, with their numbers. A line that was torn while it was written is counted."""
    tasks = []
    for number, line in enumerate(source.read_text().replace("\0", "").splitlines(), start=1):
        if not line.strip():
            continue
        task = _parse(line)
        if task is None:
            problems.add("line that is not a JSON object", line=number, lost=True)
        elif state_of(task) is None:
            problems.add("object without a known status", line=number, lost=True)
        else:
            tasks.append((number, task))
    return tasks


def _paired(tasks: list[tuple[int, dict[str, Any]]]) -> list[tuple[int, dict[str, Any]]]:
    """A line that says a task began and a later one of its name, or number, that says how it ended are one task."""
    open_at: dict[str | None, int] = {}
    out: list[tuple[int, dict[str, Any]]] = []
    for line, task in tasks:
        name = _name(task) or _text(_first(task, NUMBER))
        running = state_of(task) == "RUNNING"
        if running and _first(task, START) is None:
            task = {**task, "start": _first(task, MOMENT)}
        if not running and name in open_at:
            place = open_at.pop(name)
            first_line, opened = out[place]
            begun = _first(task, START) or _first(opened, START)
            out[place] = (first_line, {**opened, **task, "start": begun})
            continue
        if running and name is not None:
            open_at[name] = len(out)
        out.append((line, task))
    return out


def _times(
    tasks: list[dict[str, Any]], options: ReadOptions, problems: ProblemLog
) -> tuple[Timestamps, Timestamps, list[str]]:
    """Starts and ends. A lone timestamp is when the line was written, so it is the end."""
    notes: list[str] = []
    starts = [_moment(task, START) for task in tasks]
    ends = [_moment(task, END) for task in tasks]
    open_ended = [
        state_of(task) in ("RUNNING", "WAITING") or end is not None for task, end in zip(tasks, ends, strict=True)
    ]
    stamped = [None if skip else _moment(task, MOMENT) for task, skip in zip(tasks, open_ended, strict=True)]
    ends = [end if end is not None else moment for end, moment in zip(ends, stamped, strict=True)]
    if any(begin is None and moment is not None for begin, moment in zip(starts, stamped, strict=True)):
        notes.append(
            "The task log has one timestamp per task, taken as its end because a line is written when a task is done. "
            "Ends can be compared with telemetry; starts, and so overlap, are unknown: log a start time to measure it."
        )
    given, dates = in_iso([starts, ends])
    begun, ended = (moments_of(cells, options.timezone, problems) for cells in given)
    return begun, ended, notes + dates


def _moment(task: Mapping[str, Any], keys: Iterable[str]) -> Any:
    """The timestamp under one of the keys; a number too small for a date is none."""
    value = _first(task, keys)
    return None if isinstance(value, int | float) and value < EPOCH_S else value


def _duration_s(task: Mapping[str, Any]) -> float:
    """Stated duration in seconds; NaN if there is none."""
    for keys, unit_s in DURATIONS.items():
        value = _first(task, keys)
        if value is not None:
            return _seconds(value, unit_s)
    # Numbers too small for a date count from the start of the batch.
    span = _seconds(_first(task, END)) - _seconds(_first(task, START))
    return span if span >= 0 else _seconds(_first(task, ("time",)))


def _is_to_the_second(task: Mapping[str, Any]) -> bool:
    """Whether a duration is in seconds or less by its name or its text: one of minutes may be rounded, and what has no
    unit may be of any.
    """
    key = next((key for keys in DURATIONS for key in keys if _first(task, (key,)) is not None), "")
    return bool(_TO_THE_SECOND.search(key) or WITH_SECONDS.search(str(task.get(key, ""))))


def _seconds(value: Any, unit_s: float = 1.0) -> float:
    """A number of a unit, or a text that has its own (``0:03:12``, ``1.5min``), in seconds; NaN from three years on."""
    try:
        seconds = float("nan" if value is None or isinstance(value, bool) else value) * unit_s
    except (TypeError, ValueError, OverflowError):
        seconds = duration_s(value) if isinstance(value, str) else np.nan
    return seconds if 0 <= seconds < EPOCH_S else np.nan


def _name(task: Mapping[str, Any]) -> str | None:
    """The task's own name, else what it worked on: symbol and window."""
    own = _first(task, TASK)
    parts = [own] if own is not None else [task.get(key) for key in TASK_PARTS]
    words = [_text(part) for part in parts if part not in (None, "")]
    return " ".join(word for word in words if word) or None


def _text(value: Any) -> str | None:
    return None if value is None else str(plain(value))


def _place(name: str, values: list[Any]) -> pd.Series:
    """GPU, worker, pid or host. ``cuda:1`` is GPU 1."""
    if name == "pid":
        numbers = pd.to_numeric(pd.Series(values, dtype="object"), errors="coerce")
        return pd.Series([number if _is_count(number) else None for number in numbers], dtype="Int64")
    texts = [None if value is None else str(value) for value in values]
    if name == "gpu":
        # "gpu" or "cuda" alone says what kind of device, not which.
        last = [text.rpartition(":")[2] if text else "" for text in texts]
        texts = [
            part if part.isdigit() else text if text and text.startswith("GPU-") else None
            for part, text in zip(last, texts, strict=True)
        ]
    return pd.Series(texts, dtype=text_dtype())


def _wide(tasks: list[dict[str, Any]], spoken_for: Sequence[str]) -> dict[str, pd.Series]:
    """Parameters as ``params.<name>``, everything else that is not spoken for as ``user_attrs.<name>``."""
    cells: dict[str, dict[int, Any]] = {}
    for row, task in enumerate(tasks):
        for key, value in task.items():
            if isinstance(value, dict):
                prefix = "params." if key in PARAMETERS else f"user_attrs.{key}."
                for name, inner in value.items():
                    cells.setdefault(f"{prefix}{name}", {})[row] = plain(inner)
            elif key not in TAKEN and key not in spoken_for:
                name = key.removeprefix("params_")
                cells.setdefault(f"{'user_attrs' if name == key else 'params'}.{name}", {})[row] = plain(value)
    return {name: _column(found, len(tasks)) for name, found in cells.items()}


def _column(found: Mapping[int, Any], rows: int) -> pd.Series:
    values = np.empty(len(found), dtype=object)
    values[:] = list(found.values())
    return column(values, np.array(list(found), dtype=int), rows)


READER: Reader[Trials] = Reader(NAME, recognises, read)
