"""A Hydra multirun folder: one numbered folder a job, with its overrides and the log it wrote.

Hydra keeps neither times nor outcomes: a job's first and last stamped log lines stand for its start and end.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gpudiag.errors import InputError
from gpudiag.readers._batches.batch_tables import batch
from gpudiag.readers._batches.line_timestamps import line_timestamp
from gpudiag.readers._batches.log_lines import FAILURES, kind_of
from gpudiag.readers._io import plain_yaml
from gpudiag.readers._io.lines import numbered_lines
from gpudiag.readers._io.paths import as_text, has_file
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers.base import Reader, ReadOptions, Trials

NAME = "hydra-multirun"

_OVERRIDES = ".hydra/overrides.yaml"


def recognises(source: Source) -> bool:
    """A folder of numbered folders with Hydra's overrides."""
    return source.is_dir and any(_jobs(source.path))


def _jobs(folder: Path) -> Iterator[Path]:
    numbered = (path for path in folder.iterdir() if path.name.isdecimal() and has_file(path, _OVERRIDES))
    return iter(sorted(numbered, key=lambda path: int(path.name)))


def read(source: Source, options: ReadOptions) -> Trials:
    """One trial per job, numbered as its folder.

    A job whose log tells of a failure or holds a traceback is FAIL; one without a stamped line is WAITING.
    """
    problems = ProblemLog()
    rows = [_row(folder, problems) for folder in _jobs(source.path)]
    if not rows:
        raise InputError(f"{source.path}: holds no job of Hydra (a numbered folder with {_OVERRIDES}).")
    note = (
        f"Hydra {source.path.name}: starts and ends are the first and last times in each job's log; Hydra does not "
        "say how a job ended, so one whose log shows no failure is shown as COMPLETE."
    )
    return batch(rows, source, options, NAME, problems, study=as_text(source.path.name), notes=[note])


def _row(folder: Path, problems: ProblemLog) -> dict[str, Any]:
    row: dict[str, Any] = {"trial": int(folder.name), "name": folder.name, "state": "WAITING"}
    row |= {f"params.{key}": value for key, value in _overrides(folder / _OVERRIDES, problems).items()}
    timestamps: list[str] = []
    failed = ""
    for path in sorted(folder.glob("*.log")):
        for _, line in numbered_lines(Source.open(path), problems):
            timestamp = line_timestamp(line)
            if timestamp:
                timestamps.append(timestamp)
            if kind_of(line) in FAILURES or line.startswith("Traceback (most recent call last)"):
                failed = failed or line.strip()[:300]
    if timestamps:
        row |= {"state": "COMPLETE", "start": timestamps[0], "end": timestamps[-1]}
    if failed:
        row |= {"state": "FAIL", "detail": failed}
    return row


def _overrides(path: Path, problems: ProblemLog) -> dict[str, Any]:
    """``- +model.depth=3`` as ``model.depth`` and 3."""
    import yaml

    try:
        found = plain_yaml.load(path.read_text(encoding="utf-8", errors="replace"))
    except (yaml.YAMLError, ValueError, RecursionError):
        problems.add("overrides.yaml that is no plain YAML", example=path.parent.parent.name)
        return {}
    out = {}
    for text in found if isinstance(found, list) else []:
        name, equals, value = str(text).partition("=")
        if equals:
            try:
                out[name.lstrip("+~")] = plain_yaml.load(value)
            except (yaml.YAMLError, ValueError, RecursionError):
                out[name.lstrip("+~")] = value
    return out


READER: Reader[Trials] = Reader(NAME, recognises, read, descends=True)
