"""``metrics.csv`` of Lightning's CSVLogger: training and validation on rows of their own, no times."""

from __future__ import annotations

from typing import Any

import pandas as pd

from gpudiag.errors import InputError
from gpudiag.readers._batches.batch_tables import batch
from gpudiag.readers._io import plain_yaml
from gpudiag.readers._io.csv_records import cells_of, records
from gpudiag.readers._io.paths import as_text, without_kind
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._steps.time_names import time_name
from gpudiag.readers._steps.written_numbers import number
from gpudiag.readers.base import Reader, ReadOptions, Trials

NAME = "lightning-csv"
_MOST = 2**53
"""A count from here on is none: a float does not hold it exactly."""

_NOT_METRICS = ("epoch", "step", "created_at", "")
_TIMES = ("timestamp", "date", "created_at")


def recognises(source: Source) -> bool:
    """A header with epoch, step and at least one metric, and no time."""
    names = _header(source)
    timed = any(name.lower() in _TIMES or time_name(name) for name in names)
    return {"epoch", "step"} <= set(names) and bool(_metrics(names)) and not timed


def _header(source: Source) -> list[str]:
    return [] if source.is_binary or not source.lines else cells_of(source.lines[0], holding="epoch")


def _metrics(names: list[str]) -> list[str]:
    return [name for name in names if name not in _NOT_METRICS]


def monitored(names: list[str]) -> str:
    """The metric that is taken as the trial's value: a validation loss, any validation metric, a loss, the first."""
    for wanted in (("val", "loss"), ("val",), ("loss",), ()):
        for name in names:
            if all(word in name.lower() for word in wanted):
                return name
    raise ValueError("no metric")


def read(source: Source, options: ReadOptions) -> Trials:
    """One trial per file; its reports are the monitored metric by step, its attributes the last of every other.

    Raises InputError if no row holds a number of the header's metrics.
    """
    problems = ProblemLog()
    table = _table(source, problems)
    names = [name for name in _metrics(list(table)) if table[name].notna().any()]
    counts = [name for name in ("step", "epoch") if name in table]
    table[counts] = table[counts].where(table[counts].abs() < _MOST)
    steps = table["step"].notna() if names else pd.Series(dtype=bool)
    if not steps.any():
        raise InputError(f"{source.path}: holds no metric; expected rows of CSVLogger (a step and metrics).")
    metric = monitored(names)
    own = table[steps & table[metric].notna()]
    reports = [
        {"trial": 0, "step": int(step), "value": value} for step, value in zip(own["step"], own[metric], strict=True)
    ]
    # The file does not say how the training ended; that it was written is all there is.
    row: dict[str, Any] = {"trial": 0, "state": "COMPLETE", "name": _name(source), "value": own[metric].iloc[-1]}
    row |= {f"user_attrs.{name}": float(table[name].dropna().iloc[-1]) for name in names if name != metric}
    if table["epoch"].notna().any():
        row["user_attrs.epochs"] = int(table["epoch"].max()) + 1
    row |= _hparams(source, problems)
    note = (
        f"{source.path.name}: value and reports are '{metric}'; the file has no times and does not say whether the "
        "training ended well, so it is shown as COMPLETE."
    )
    return batch([row], source, options, NAME, problems, study=_name(source), reports=reports, notes=[note])


def _table(source: Source, problems: ProblemLog) -> pd.DataFrame:
    """The numbers of all rows; CSVLogger writes the header anew when a metric joins."""
    header: list[str] = []
    rows: list[dict[str, float]] = []
    for line, cells in records(source.read_text(), ",", problems):
        if {"epoch", "step"} <= set(cells):
            header = cells
        elif len(cells) == len(header):
            rows.append({name: number(cell) for name, cell in zip(header, cells, strict=True)})
        else:
            problems.add("row of another width", line=line, example=",".join(cells), lost=True)
    return pd.DataFrame(rows)


def _name(source: Source) -> str:
    """``version_3`` for the logger's own layout, else the file's name."""
    path = source.path
    return as_text(path.parent.name) if path.name.startswith("metrics.") else without_kind(path)


def _hparams(source: Source, problems: ProblemLog) -> dict[str, Any]:
    """Hyper-parameters of the file that the logger writes beside."""
    import yaml

    path = source.path.with_name("hparams.yaml")
    if not path.is_file():
        return {}
    try:
        found = plain_yaml.load(path.read_text(encoding="utf-8", errors="replace"))
    # A Python object is written with a tag that only running code could read.
    except (yaml.YAMLError, ValueError, RecursionError):
        problems.add("hparams.yaml that is no plain YAML")
        return {}
    return {f"params.{key}": value for key, value in found.items()} if isinstance(found, dict) else {}


READER: Reader[Trials] = Reader(NAME, recognises, read)
