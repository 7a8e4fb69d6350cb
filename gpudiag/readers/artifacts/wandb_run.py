"""A W&B run folder (``wandb/run-<time>-<id>``), a folder of them, or of run files that lie by themselves: each run is a
trial.

The run file tells when the run began, its configuration, what it logged and how it ended.
``files/wandb-metadata.json`` and ``wandb-summary.json`` tell the host and the last values. Its system metrics are read
by the telemetry reader.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from gpudiag.errors import InputError
from gpudiag.readers._batches.batch_tables import batch
from gpudiag.readers._io.paths import as_text, has_file, has_folder
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._io.wandb_log import EXIT, KEY, MAGIC, RUN, VALUE_JSON, records
from gpudiag.readers._io.wire_format import Message, epoch_us, inner, number, text
from gpudiag.readers._steps import metric_rows
from gpudiag.readers._steps.metric_kinds import LOGGED
from gpudiag.readers._steps.step_log import StepLog
from gpudiag.readers._steps.time_columns import TimeColumns
from gpudiag.readers._steps.wandb_history import history_rows
from gpudiag.readers.base import Reader, ReadOptions, Trials
from gpudiag.schema import STEPS, conform

NAME = "wandb-run"

_PROJECT, _CONFIG, _DISPLAY_NAME, _SWEEP, _HOST, _START_TIME = 3, 4, 8, 12, 13, 17
"""Fields of RunRecord."""
SWEEP = "user_attrs.sweep"
_UPDATE = 1
_EXIT_CODE, _RUNTIME_S = 1, 2
"""Fields of RunExitRecord."""
_METADATA, _SUMMARY = "files/wandb-metadata.json", "files/wandb-summary.json"
_RUN_FILE = ".wandb"


def recognises(source: Source) -> bool:
    """A run folder, or a folder that holds some, or run files outside of theirs."""
    return source.is_dir and any(_runs(source.path))


def _is_run(folder: Path) -> bool:
    return has_file(folder, _METADATA) or (has_folder(folder, "files") and _run_file(folder) is not None)


def _run_file(run: Path) -> Path | None:
    return run if run.suffix == _RUN_FILE else next(iter(sorted(run.glob(f"run-*{_RUN_FILE}"))), None)


def _runs(folder: Path) -> Iterator[Path]:
    """The folder itself, or run folders, without ``latest-run``, which is a link to one of them, and run files."""
    if _is_run(folder):
        yield folder
        return
    for path in sorted(folder.iterdir()):
        if not path.is_symlink() and (_is_run(path) if path.is_dir() else _is_run_file(path)):
            yield path


def _is_run_file(path: Path) -> bool:
    if path.suffix != _RUN_FILE or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def read(source: Source, options: ReadOptions) -> Trials:
    """One trial per run, in the order of the folders' names, which begin with their time.

    The runs of one sweep are a study of its name, as W&B writes it: project/sweep.
    A run without an exit record was killed or is still running: its state is RUNNING and its end unknown.
    """
    problems = ProblemLog()
    folders = list(_runs(source.path))
    if not folders:
        raise InputError(f"{source.path}: holds no W&B run (a folder with files/wandb-metadata.json).")
    found, histories = [], []
    for folder in folders:
        history: list[dict[str, float]] = []
        found.append(_run(folder, problems, history))
        histories.append(history)
    projects = {project for project, _ in found if project}
    study = projects.pop() if len(projects) == 1 else as_text(source.path.name)
    sweeps = {row.get(SWEEP) for _, row in found}
    if len(sweeps) == 1 and None not in sweeps:
        study = f"{study}/{sweeps.pop()}"
    out = batch([row for _, row in found], source, options, NAME, problems, study=study)
    return _with_steps(out, folders, histories, options)


def logged(source: Source, options: ReadOptions) -> Trials:
    """What a training logged in a run file that lies outside of its folder, as table ``steps``; no trial."""
    history: list[dict[str, float]] = []
    _from_file(
        source.path, {"name": "", "state": "", "host": None}, ProblemLog(), history
    )  # telemetry has its problems
    return _with_steps(Trials(reader=NAME), [source.path], [history], options)


def _with_steps(
    out: Trials, folders: Sequence[Path], histories: Sequence[Sequence[Mapping[str, float]]], options: ReadOptions
) -> Trials:
    """With what each run logged as table ``steps``; of several runs each is a trial."""
    frames, notes = [], list(out.notes)
    for trial, (folder, logged) in enumerate(zip(folders, histories, strict=True)):
        times = TimeColumns(logged)
        rows = [times.told(row) for row in logged]
        dated = metric_rows.is_dated(rows)
        log = StepLog(_run_file(folder) or folder, dated=dated)
        metric_rows.take(rows, times, log, LOGGED, dated=dated)
        if len(log):
            frame = log.frame(options.timezone)[0]
            frames.append(frame if len(folders) == 1 else conform(frame.assign(trial=trial), STEPS))
            name = as_text(folder.name)
            notes.append(f"{name}: {log.note()}.")
            if metric_rows.counts_only_calls(rows, frame):
                notes.append(f"{name}: {metric_rows.OF_CALLS}")
    return replace(out, steps=pd.concat(frames, ignore_index=True), notes=tuple(notes)) if frames else out


def _run(folder: Path, problems: ProblemLog, history: list[dict[str, float]]) -> tuple[str, dict[str, Any]]:
    """The project and the trial of one run; what it logged goes to ``history``."""
    metadata, summary = (_json(folder / name, problems) for name in (_METADATA, _SUMMARY))
    row: dict[str, Any] = {
        "name": as_text(folder.stem if folder.suffix == _RUN_FILE else folder.name),
        "state": "RUNNING",
        "host": metadata.get("host"),
    }
    started = metadata.get("startedAt")
    if isinstance(started, str):  # UTC, with or without saying so
        row["start"] = started if started.endswith("Z") or "+" in started else started + "Z"
    if metadata.get("gpu_count") == 1:
        row["gpu"] = "0"
    if isinstance(metadata.get("gpu"), str):
        row["user_attrs.gpu_name"] = metadata["gpu"]
    git = metadata.get("git")
    if isinstance(git, dict) and isinstance(git.get("commit"), str):
        row["user_attrs.git_commit"] = git["commit"]
    row |= {f"user_attrs.{key}": value for key, value in summary.items() if _is_value(key, value)}
    path = _run_file(folder)
    project = _from_file(path, row, problems, history) if path is not None and path.is_file() else ""
    if row["state"] == "RUNNING" and path is None:
        problems.add("W&B run without its run file: how it ended is unknown", example=folder.name)
    return project, row


def _is_value(key: str, value: object) -> bool:
    return not key.startswith("_") and isinstance(value, int | float | str | bool)


def _json(path: Path, problems: ProblemLog) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8", errors="replace")) if path.is_file() else {}
    except (ValueError, RecursionError):
        problems.add("file that is no JSON", example=path.name)
        return {}
    return found if isinstance(found, dict) else {}


def _from_file(path: Path, row: dict[str, Any], problems: ProblemLog, history: list[dict[str, float]]) -> str:
    """Fill in what the run file tells; returns the project."""
    data = path.read_bytes()
    if not data.startswith(MAGIC):
        problems.add("run file that is empty or of another kind", example=path.name)
        return ""
    project = ""
    for record in records(data, problems):
        try:
            for run in inner(record, RUN):
                project = text(run, _PROJECT) or project
                _describe(run, row)
            for ended in inner(record, EXIT):
                _end(ended, row)
            history.extend(history_rows(record))
        except ValueError:
            problems.add("record that is no message", lost=True)
    return project


def _describe(run: Message, row: dict[str, Any]) -> None:
    row["name"] = text(run, _DISPLAY_NAME) or row["name"]
    row["host"] = text(run, _HOST) or row["host"]
    if sweep := text(run, _SWEEP):
        row[SWEEP] = sweep
    began_us = epoch_us(run, _START_TIME)
    if began_us:
        row["start"] = began_us / 1e6
    for config in inner(run, _CONFIG):
        for item in inner(config, _UPDATE):
            key = text(item, KEY)
            if key and not key.startswith("_"):
                try:
                    row[f"params.{key}"] = json.loads(text(item, VALUE_JSON))
                except (ValueError, RecursionError):
                    continue


def _end(ended: Message, row: dict[str, Any]) -> None:
    """State and end from the exit record, whose runtime counts whole seconds from the start."""
    code = number(ended, _EXIT_CODE)
    row["state"] = "COMPLETE" if code == 0 else "FAIL"
    row["detail"] = f"exit code {code}" if code else None
    row["duration_s"] = float(number(ended, _RUNTIME_S))
    if isinstance(row.get("start"), float):
        row["end"] = row["start"] + row["duration_s"]


READER: Reader[Trials] = Reader(NAME, recognises, read, descends=True)
