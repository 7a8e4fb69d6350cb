"""The results folder of a Ray Tune experiment: one folder a trial with params.json, result.json and error.txt.

``experiment_state-*.json`` is read as JSON for the status of trials. Much of it is pickled objects as hexadecimal
text, which is never decoded.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gpudiag.errors import InputError
from gpudiag.readers._batches.batch_tables import batch
from gpudiag.readers._io.csv_records import number_of
from gpudiag.readers._io.json_values import json_object, read_json
from gpudiag.readers._io.paths import as_text, has_file
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers.base import Reader, ReadOptions, Trials
from gpudiag.values import is_number

NAME = "ray-tune"

_OUTPUTS = ("result.json", "progress.csv", "error.txt")
_OWN_KEYS = frozenset(
    {
        "done", "config", "pid", "hostname", "node_ip", "date", "timestamp", "time_this_iter_s", "time_total_s",
        "training_iteration", "trial_id", "experiment_id", "experiment_tag", "timesteps_total", "episodes_total",
        "time_since_restore", "timesteps_since_restore", "iterations_since_restore", "checkpoint_dir_name",
        "should_checkpoint", "warmup_time", "timesteps_this_iter",
    }
)  # fmt: skip
"""Keys that Ray writes; the others are what the training reported."""
PARAMS = "config/"
"""How a table of results names a parameter."""
_FAILED_AT = re.compile(r"occurred at (\d{4}-\d\d-\d\d)_(\d\d)-(\d\d)-(\d\d)")
NEAR_D = 30
"""Days within which experiments in one folder are taken to have run in one zone, summer time included."""
MOST_BESIDE = 20
_MADE_AT = re.compile(r"_(\d{4}-\d\d-\d\d)_(\d\d)-(\d\d)-(\d\d)")


def recognises(source: Source) -> bool:
    """A folder of trial folders, or one trial folder."""
    return source.is_dir and (_is_trial(source.path) or any(_trials(source.path)))


def _is_trial(folder: Path) -> bool:
    return has_file(folder, "params.json") and any(has_file(folder, name) for name in _OUTPUTS)


def _trials(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.iterdir()) if path.is_dir() and _is_trial(path))


def read(source: Source, options: ReadOptions) -> Trials:
    """One trial per folder, numbered by start; reports are the first metric that the training reported."""
    problems = ProblemLog()
    folder = source.path
    single = _is_trial(folder)
    states = _states(folder.parent if single else folder, problems)
    found = []
    for path in [folder] if single else _trials(folder):
        results = _results(path, problems)
        found.append((_row(path, results, states.get(path.name, {})), results))
    if not found:
        raise InputError(f"{folder}: holds no trial of Ray Tune (a folder with params.json and result.json).")
    found.sort(key=lambda item: (str(_made_at(item[0]["user_attrs.folder"])), item[0]["user_attrs.folder"]))
    return experiment(found, folder.name, source, options, problems, None if single else _beside(folder))


def experiment(
    found: list[tuple[dict[str, Any], list[dict[str, Any]]]],
    name: str,
    source: Source,
    options: ReadOptions,
    problems: ProblemLog,
    beside: Callable[[], float | None] | None = None,
) -> Trials:
    """The tables of one experiment, from the row and the results of each trial, in their order. ``beside``: the offset
    of experiments beside it, asked for where its own results do not tell.
    """
    metric = next((name for _, results in found for result in results for name in _metrics(result)), "")
    notes = [f"Ray Tune {name}: value and reports are '{metric}', the first metric reported."] if metric else []
    offset_s = _offset_s([result for _, results in found for result in results])
    if offset_s is not None:
        notes.append(f"Ray Tune {name}: its local timestamps are {offset_s / 3600:+g} h from UTC, as its results show.")
    elif beside is not None and (offset_s := beside()) is not None:
        notes.append(
            f"Ray Tune {name}: its local timestamps are {offset_s / 3600:+g} h from UTC, as the results of experiments "
            f"beside it within {NEAR_D} days show."
        )
    reports = []
    for number, (row, results) in enumerate(found):
        row["trial"] = number
        row |= {key: _as_epoch(row[key], offset_s) for key in ("start", "end") if key in row}
        counted = [result for result in results if isinstance(result.get("training_iteration"), int)]
        own = [result for result in counted if is_number(result.get(metric))]
        reports += [
            {"trial": number, "step": r["training_iteration"], "value": float(r[metric]), "time": r.get("timestamp")}
            for r in own
        ]
        if own and row["state"] in ("COMPLETE", "PRUNED"):
            row["value"] = float(own[-1][metric])
    _one_after_the_other([row for row, _ in found])
    return batch([row for row, _ in found], source, options, NAME, problems, study=name, reports=reports, notes=notes)


def _one_after_the_other(rows: list[dict[str, Any]]) -> None:
    """Timestamps are whole seconds, rounded down, so that a start that follows from one may lie up to a second before
    the end of the trial before it in the same process. That process ran one after the other.
    """
    ended: dict[tuple[Any, Any], float] = {}
    timed = [row for row in rows if row["pid"] and isinstance(row.get("start"), int | float)]
    for row in sorted(timed, key=lambda row: row["start"]):
        process = row["host"], row["pid"]
        if 0 < ended.get(process, -math.inf) - row["start"] < 1:
            row["start"] = ended[process]
        if isinstance(row.get("end"), int | float):
            ended[process] = row["end"]


def _metrics(result: Mapping[str, Any]) -> list[str]:
    return [
        name
        for name, value in result.items()
        if name not in _OWN_KEYS and not name.startswith(PARAMS) and is_number(value)
    ]


def _results(folder: Path, problems: ProblemLog) -> list[dict[str, Any]]:
    """The rows of result.json, or of progress.csv where that is empty. A torn last line is counted."""
    out = []
    path = folder / "result.json"
    text = Source.open(path).read_text() if path.is_file() else ""
    for line, content in enumerate(text.splitlines(), start=1):
        try:
            result = read_json(content)
        except (ValueError, RecursionError):
            problems.add("line of result.json that is no JSON", line=line, example=content, lost=True)
            continue
        if isinstance(result, dict):
            out.append(result)
    path = folder / "progress.csv"
    if not out and path.is_file():
        with path.open(newline="", encoding="utf-8", errors="replace") as file:
            out = [{key: typed(value) for key, value in row.items()} for row in csv.DictReader(file)]
    return out


def typed(text: str | None) -> Any:
    """A cell of Ray's CSV as truth value, number or text."""
    if text in ("True", "False"):
        return text == "True"
    try:
        number = number_of(text or "")
    except ValueError:
        return text
    return int(number) if number.is_integer() else number


def _states(folder: Path, problems: ProblemLog) -> dict[str, dict[str, Any]]:
    """The last status of each trial that the experiment's state files tell, by the name of its folder."""
    out: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.glob("experiment_state-*.json")):
        try:
            state = read_json(Source.open(path).read_text())
        except (ValueError, RecursionError):
            problems.add("experiment state that is no JSON", example=path.name)
            continue
        for trial in _listed(state):
            logdir = trial.get("logdir") or trial.get("relative_logdir")
            if isinstance(logdir, str) and logdir:
                out[re.split(r"[\\/]", logdir)[-1]] = trial
    return out


def _listed(state: Any) -> Iterator[dict[str, Any]]:
    """Trials of a state file: objects, or (Ray 2) JSON text within the JSON, alone or in pairs."""
    entries = state.get("trial_data", state.get("checkpoints", [])) if isinstance(state, dict) else []
    for entry in entries if isinstance(entries, list) else []:
        first = entry[0] if isinstance(entry, list) and entry else entry
        try:
            trial = read_json(first) if isinstance(first, str) else first
        except (ValueError, RecursionError):
            continue
        if isinstance(trial, dict):
            yield trial


def _row(folder: Path, results: list[dict[str, Any]], state: Mapping[str, Any]) -> dict[str, Any]:
    path = folder / "error.txt"
    error = path.read_text(encoding="utf-8", errors="replace").strip() if path.is_file() else ""
    params = json_object(Source.open(folder / "params.json").read_text()) or {}
    return trial_row(as_text(folder.name), params, results, state, error)


def trial_row(
    folder: str,
    params: Mapping[str, Any],
    results: list[dict[str, Any]],
    state: Mapping[str, Any],
    error: str = "",
) -> dict[str, Any]:
    """What one trial's results, its state and its error come to, in names of table ``trials``."""
    last = results[-1] if results else {}
    row: dict[str, Any] = {"state": _state(results, state, error), "user_attrs.folder": folder}
    row["name"] = str(last.get("experiment_tag") or state.get("experiment_tag") or folder)
    row |= {f"params.{key}": value for key, value in params.items()}
    row["host"] = last.get("hostname")
    row["pid"] = last.get("pid") if isinstance(last.get("pid"), int) else None
    row["start"] = _start(folder, results, state)
    if row["state"] != "RUNNING":
        row["end"] = _failed_at(error) or last.get("timestamp") or _made_at(f"_{last.get('date')}")
    if isinstance(last.get("time_total_s"), int | float):
        row["duration_s"] = float(last["time_total_s"])
    if error:
        row["detail"] = next((line for line in reversed(error.splitlines()) if line.strip()), "")[:300]
    row |= {f"user_attrs.{name}": last[name] for name in _metrics(last)}
    return row


def _state(results: list[dict[str, Any]], state: Mapping[str, Any], error: str) -> str:
    """FAIL by error.txt; PRUNED if it was stopped before the iterations asked for; open if it never was done."""
    status = state.get("status")
    if error or status == "ERROR":
        return "FAIL"
    if results and (results[-1].get("done") is True or status == "TERMINATED"):
        criterion = state.get("stopping_criterion")
        wanted = criterion.get("training_iteration") if isinstance(criterion, dict) else None
        reached = results[-1].get("training_iteration")
        early = isinstance(wanted, int | float) and isinstance(reached, int) and reached < wanted
        return "PRUNED" if early else "COMPLETE"
    return "RUNNING"  # Ray makes a trial's folder when it starts it


def _start(folder: str, results: list[dict[str, Any]], state: Mapping[str, Any]) -> Any:
    """What the state says; else the first result less the time it took; else when the folder was made (local)."""
    begun = state.get("start_time")
    if isinstance(begun, int | float) and begun > 0:
        return begun
    first = results[0] if results else {}
    timestamp, took = first.get("timestamp"), first.get("time_total_s")
    if isinstance(timestamp, int | float) and isinstance(took, int | float) and math.isfinite(took):
        return timestamp - took
    return _made_at(folder)


def _offset_s(results: list[dict[str, Any]]) -> float | None:
    """How far the folder's local timestamps are from UTC: results carry both, to the second. None without results."""
    found = [
        round((_naive_s(date) - at) / 900) * 900.0
        for result in results
        if isinstance(at := result.get("timestamp"), int | float) and math.isfinite(at)
        if (date := _made_at(f"_{result.get('date')}")) is not None
    ]
    return max(set(found), key=found.count) if found else None


def _beside(folder: Path) -> Callable[[], float | None]:
    """The offset on which the experiments beside this folder agree; None where they do not, or none tells."""

    def offset_s() -> float | None:
        when = _began(folder)
        near = (
            other
            for other in sorted(folder.parent.iterdir())[:MOST_BESIDE]
            if other.is_dir() and other != folder and when is not None and (at := _began(other)) is not None
            if abs(at - when) <= NEAR_D * 86_400
        )
        told = (_offset_s([r for trial in _trials(other) for r in _results(trial, ProblemLog())]) for other in near)
        found = {one for one in told if one is not None}
        return found.pop() if len(found) == 1 else None

    return offset_s


def _began(folder: Path) -> float | None:
    """The earliest time in the names of its trials' folders, as local seconds; None without one."""
    try:
        made = [at for trial in _trials(folder) if (at := _made_at(trial.name)) is not None]
    except OSError:
        return None
    return _naive_s(min(made)) if made else None


def _naive_s(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).replace(tzinfo=UTC).timestamp()


def _as_epoch(timestamp: Any, offset_s: float | None) -> Any:
    return timestamp if offset_s is None or not isinstance(timestamp, str) else _naive_s(timestamp) - offset_s


def _made_at(folder: str) -> str | None:
    match = _MADE_AT.search(folder)
    return f"{match[1]}T{match[2]}:{match[3]}:{match[4]}" if match else None


def _failed_at(error: str) -> str | None:
    matches = _FAILED_AT.findall(error)
    return "{}T{}:{}:{}".format(*matches[-1]) if matches else None


READER: Reader[Trials] = Reader(NAME, recognises, read)
