"""JSON Lines of batch tasks: one object per task with how it ended and when, as scripts write them.

    {"symbol": "TCS", "window_label": "TCS_2024Q1", "status": "success", "timestamp": "2025-10-28T10:01:02"}
    {"task": 7, "ok": true, "start": 1761645600.1, "end": 1761645609.9, "gpu": 1, "parameters": {"depth": 9}}

A nested ``date_range`` (or start_date, end_date) is the data a task worked on, not when it ran.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from gpudiag.errors import InputError
from gpudiag.readers.base import Reader, ReadOptions, Trials
from gpudiag.readers.problems import ProblemLog
from gpudiag.readers.source import Source
from gpudiag.readers.trials.pivot import column, plain
from gpudiag.readers.trials.stamps import Stamps, to_utc
from gpudiag.schema import STUDIES, TRIALS, conform, text_dtype

NAME = "task-jsonl"

_STATES = {
    "COMPLETE": "ok okay success successful succeeded complete completed done finished passed pass",
    "FAIL": "failed failure fail error errored crashed crash timeout timed_out oom killed cancelled canceled aborted",
    "RUNNING": "running started start in_progress",
    "WAITING": "waiting pending queued scheduled",
    "PRUNED": "pruned early_stopped",
}
_STATE_OF = {word: state for state, words in _STATES.items() for word in words.split()}

STATUS = (
    "status",
    "state",
    "outcome",
    "result",
    "ok",
    "success",
    "succeeded",
    "failed",
    "exit_code",
    "returncode",
    "exitcode",
)
START = (
    "start",
    "start_time",
    "started",
    "started_at",
    "start_ts",
    "time_start",
    "begin",
    "begin_time",
    "datetime_start",
    "t_start",
)
END = ("end", "end_time", "ended", "ended_at", "end_ts", "time_end", "finish", "finished", "finished_at", "finish_time")
END += ("completed_at", "completed", "completion_time", "datetime_complete", "t_end")
MOMENT = ("timestamp", "time", "ts", "datetime", "logged_at", "created_at", "date")
DURATION_S = (
    "duration_s",
    "duration_sec",
    "duration_seconds",
    "duration",
    "elapsed_s",
    "elapsed_sec",
    "elapsed_seconds",
)
DURATION_S += (
    "elapsed",
    "seconds",
    "secs",
    "runtime",
    "runtime_s",
    "run_time",
    "took",
    "took_s",
    "wall_s",
    "wall_time",
    "time_s",
)
DURATION_MS = ("duration_ms", "elapsed_ms", "runtime_ms", "took_ms")
TASK = (
    "name",
    "task",
    "task_name",
    "task_id",
    "window_label",
    "label",
    "job",
    "job_name",
    "job_id",
    "run_name",
    "run_id",
    "id",
)
DETAIL = ("error", "error_message", "exception", "message", "reason", "detail", "traceback", "stderr")
STUDY = ("batch_id", "batch", "study", "experiment", "sweep")
PARAMETERS = ("params", "parameters", "hyperparameters", "hparams", "config", "args", "kwargs", "hyperparams")
PLACES = {
    "gpu": ("gpu", "gpu_id", "gpu_index", "device", "device_id", "cuda_device", "gpu_device_id"),
    "worker": ("worker", "worker_id", "worker_name", "thread", "process_name", "rank"),
    "pid": ("pid", "process_id"),
    "host": ("host", "hostname", "node", "machine"),
}
_NOT_TASKS = ("op_code", "training_iteration", "_runtime", "level", "levelname")


def recognises(source: Source) -> bool:
    """True if the first objects say how a task ended and when it was or how long it took."""
    if source.is_binary or not source.text.lstrip().startswith("{"):
        return False
    seen = 0
    for line in source.lines[:50]:
        task = _parse(line)
        if task is None:
            continue
        if any(key in task for key in _NOT_TASKS):
            return False
        seen += (
            _state(task) is not None and _first(task, (*START, *END, *MOMENT, *DURATION_S, *DURATION_MS)) is not None
        )
    return seen >= max(1, min(3, sum(bool(line.strip()) for line in source.lines[:50])) - 1)


def _parse(line: str) -> dict[str, Any] | None:
    """The object of one line, with lower-case keys; None if it is none."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return {str(key).lower(): value for key, value in found.items()} if isinstance(found, dict) else None


def _first(task: Mapping[str, Any], keys: Iterable[str]) -> Any:
    """The first scalar under one of the keys, None if there is none."""
    return next(
        (task[key] for key in keys if task.get(key) not in (None, "") and not isinstance(task[key], dict | list)), None
    )


def _state(task: Mapping[str, Any]) -> str | None:
    """State of Optuna's kind from a word, a truth value or an exit code."""
    for key in STATUS:
        value = task.get(key)
        if isinstance(value, bool):
            return "COMPLETE" if value != (key == "failed") else "FAIL"
        if isinstance(value, int) and key in ("exit_code", "returncode", "exitcode"):
            return "COMPLETE" if value == 0 else "FAIL"
        if isinstance(value, str) and value.strip().lower().replace(" ", "_").replace("-", "_") in _STATE_OF:
            return _STATE_OF[value.strip().lower().replace(" ", "_").replace("-", "_")]
    return None


def read(source: Source, options: ReadOptions) -> Trials:
    """One trial per line, numbered in the order of the lines.

    Raises InputError if no line is a task.
    """
    problems = ProblemLog()
    tasks = _paired(_tasks(source, problems))
    if not tasks:
        raise InputError(
            f"{source.path}: no line is a task; expected JSON objects with a status and a time or duration."
        )
    study = options.study or str(
        next((_first(task, STUDY) for task in tasks if _first(task, STUDY)), source.path.name.split(".")[0])
    )
    start, end, notes = _times(tasks, options, problems)
    frame = pd.DataFrame({"study": study, "trial": np.arange(len(tasks)), "state": [_state(task) for task in tasks]})
    frame["name"] = pd.Series([_name(task) for task in tasks], dtype=text_dtype())
    frame["start"], frame["end"] = start.time, end.time
    frame["duration_s"] = np.where(start.time.isna() | end.time.isna(), [_duration_s(task) for task in tasks], np.nan)
    frame["detail"] = pd.Series([_text(_first(task, DETAIL)) for task in tasks], dtype=text_dtype())
    for name, keys in PLACES.items():
        frame[name] = _place(name, [_first(task, keys) for task in tasks])
    frame = pd.concat([frame, pd.DataFrame(_wide(tasks), index=frame.index)], axis=1)
    clocks = {start.clock, end.clock} - {"unknown"}
    clock = clocks.pop() if len(clocks) == 1 else "mixed" if clocks else "unknown"
    if clock in ("local", "mixed"):
        notes.append(f"Tasks '{study}': stamps without a zone read as local time of {options.timezone} (assumed).")
    studies = pd.DataFrame({"study": [study], "directions": [""], "source": [str(source.path)], "clock": [clock]})
    return Trials(
        trials=conform(frame, TRIALS),
        studies=conform(studies, STUDIES),
        problems=problems.all,
        notes=tuple(notes),
        reader=NAME,
    )


def _tasks(source: Source, problems: ProblemLog) -> list[dict[str, Any]]:
    """The lines that are tasks. A line that was torn while it was written is counted."""
    tasks = []
    for number, line in enumerate(source.read_text().replace("\0", "").splitlines(), start=1):
        if not line.strip():
            continue
        task = _parse(line)
        if task is None:
            problems.add("line that is not a JSON object", line=number, lost=True)
        elif _state(task) is None:
            problems.add("object without a known status", line=number, lost=True)
        else:
            tasks.append(task)
    return tasks


def _paired(tasks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A line that says a task began and a later one of the same name that says how it ended are one task."""
    open_at: dict[str, int] = {}
    out: list[dict[str, Any]] = []
    for task in tasks:
        name = _name(task)
        running = _state(task) == "RUNNING"
        if running and _first(task, START) is None:
            task = {**task, "start": _first(task, MOMENT)}
        if not running and name in open_at:
            begun = out[open_at.pop(name)]
            out[out.index(begun)] = {**begun, **task, "start": _first(task, START) or _first(begun, START)}
            continue
        if running and name is not None:
            open_at[name] = len(out)
        out.append(task)
    return out


def _times(tasks: list[dict[str, Any]], options: ReadOptions, problems: ProblemLog) -> tuple[Stamps, Stamps, list[str]]:
    """Starts and ends. A lone timestamp is when the line was written, so it is the end."""
    notes: list[str] = []
    starts = [_first(task, START) for task in tasks]
    ends = [_first(task, END) for task in tasks]
    open_ended = [
        _state(task) in ("RUNNING", "WAITING") or end is not None for task, end in zip(tasks, ends, strict=True)
    ]
    stamped = [None if skip else _first(task, MOMENT) for task, skip in zip(tasks, open_ended, strict=True)]
    ends = [end if end is not None else moment for end, moment in zip(ends, stamped, strict=True)]
    if any(begin is None and moment is not None for begin, moment in zip(starts, stamped, strict=True)):
        notes.append(
            "The task log has one stamp per task, taken as its end because a line is written when a task is done: ends can be "
            "compared with telemetry, but starts and so overlap are unknown; log a start time as well to measure concurrency."
        )
    pair = (to_utc(starts, options.timezone), to_utc(ends, options.timezone))
    for stamps in pair:
        problems.add("stamp that is no date", stamps.bad, example=stamps.example)
    return (*pair, notes)


def _duration_s(task: Mapping[str, Any]) -> float:
    """Stated duration in seconds; NaN if there is none."""
    value, unit = _first(task, DURATION_S), 1.0
    if value is None:
        value, unit = _first(task, DURATION_MS), 1e-3
    if isinstance(value, str) and ":" in value:
        value = pd.to_timedelta(value, errors="coerce").total_seconds()
    seconds = pd.to_numeric(value, errors="coerce") if not isinstance(value, bool) else np.nan
    return float(seconds) * unit if seconds is not None and seconds >= 0 else np.nan


def _name(task: Mapping[str, Any]) -> str | None:
    """The task's own name, else what it worked on: symbol and window."""
    own = _first(task, TASK)
    parts = [own] if own is not None else [task.get(key) for key in ("symbol", "window", "fold", "seed")]
    words = [_text(part) for part in parts if part not in (None, "")]
    return " ".join(word for word in words if word) or None


def _text(value: Any) -> str | None:
    return None if value is None else str(plain(value))


def _place(name: str, values: list[Any]) -> pd.Series:
    """GPU, worker, pid or host. ``cuda:1`` is GPU 1."""
    if name == "pid":
        return pd.to_numeric(pd.Series(values, dtype="object"), errors="coerce").astype("Int64")
    texts = [None if value is None else str(value) for value in values]
    if name == "gpu":
        # "gpu" or "cuda" alone says what kind of device, not which.
        last = [text.rpartition(":")[2] if text else "" for text in texts]
        texts = [
            part if part.isdigit() else text if text and text.startswith("GPU-") else None
            for part, text in zip(last, texts, strict=True)
        ]
    return pd.Series(texts, dtype=text_dtype())


def _wide(tasks: list[dict[str, Any]]) -> dict[str, pd.Series]:
    """Nested parameters as ``params.<name>``, everything else that is not spoken for as ``user_attrs.<name>``."""
    taken = {*STATUS, *START, *END, *MOMENT, *DURATION_S, *DURATION_MS, *DETAIL, *STUDY}.union(*PLACES.values())
    cells: dict[str, dict[int, Any]] = {}

    def put(name: str, row: int) -> Callable[[Any], None]:
        return lambda value: cells.setdefault(name, {}).__setitem__(row, value)

    for row, task in enumerate(tasks):
        for key, value in task.items():
            if key in PARAMETERS and isinstance(value, dict):
                for name, inner in value.items():
                    put(f"params.{name}", row)(plain(inner))
            elif isinstance(value, dict):
                for name, inner in value.items():
                    put(f"user_attrs.{key}.{name}", row)(plain(inner))
            elif key not in taken:
                put(f"user_attrs.{key}", row)(plain(value))
    return {name: _column(found, len(tasks)) for name, found in cells.items()}


def _column(found: Mapping[int, Any], rows: int) -> pd.Series:
    values = np.empty(len(found), dtype=object)
    values[:] = list(found.values())
    return column(values, np.array(list(found), dtype=int), rows)


READER: Reader[Trials] = Reader(NAME, recognises, read)
