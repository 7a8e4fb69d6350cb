"""One input, read and described: what `gpudiag inspect` prints and what a run keeps as provenance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from gpudiag.errors import InputError
from gpudiag.readers import trials as trial_readers
from gpudiag.readers.base import ReadOptions, Telemetry, Trials, refuse
from gpudiag.readers.identify import EXPECTED, identify
from gpudiag.readers.source import Source
from gpudiag.run import InputRecord


@dataclass(frozen=True, eq=False)
class Intake:
    """One input: its tables (None where it could not be read) and the record of how it was read."""

    record: InputRecord
    data: Telemetry | Trials | None


def take(path: str | Path, options: ReadOptions, *, shown_as: str | None = None) -> Intake:
    """Read one file, folder-shaped input or storage URL with the reader that recognises it.

    Raises InputError (UnknownInput if no reader recognises it) with one sentence.
    """
    if trial_readers.is_url(path):
        data = trial_readers.read_url(str(path), options)
        return Intake(_describe_trials(data, trial_readers.show_url(str(path)), "trials", ""), data)
    source = Source.open(path)
    found = identify(source)
    if found is None:
        raise refuse(source, EXPECTED)
    kind, reader = found
    data = reader.read(source, options)
    name = shown_as or str(path)
    if isinstance(data, Telemetry):
        return Intake(_describe_telemetry(data, name, source.sha256()), data)
    return Intake(_describe_trials(data, name, kind, source.sha256()), data)


def take_trials(trials: object, options: ReadOptions) -> Intake:
    """Read trials from a file, a storage URL, or an Optuna study held in memory."""
    if isinstance(trials, str | Path):
        return take(trials, options)
    data = trial_readers.read_trials(trials, study=options.study, timezone=options.timezone)
    return Intake(_describe_trials(data, f"<{type(trials).__name__}>", "trials", ""), data)


def try_take(path: str | Path, options: ReadOptions, *, shown_as: str | None = None) -> Intake:
    """Like :func:`take`, with the error kept in the record instead of raised."""
    try:
        return take(path, options, shown_as=shown_as)
    except InputError as error:
        return Intake(InputRecord(shown_as or str(path), "unknown", error=str(error)), None)


def _describe_telemetry(data: Telemetry, path: str, sha256: str) -> InputRecord:
    main = next((t for t in (data.gpu, data.processes, data.host, data.events) if len(t)), data.gpu)
    return InputRecord(
        path=path,
        kind="telemetry",
        reader=data.reader,
        sha256=sha256,
        rows=data.rows,
        gpus=tuple(data.gpus["gpu"]) if len(data.gpus) else tuple(sorted(set(main.get("gpu", pd.Series()).dropna()))),
        columns=tuple(main.columns),
        start=_iso(main["time"].min()),
        end=_iso(main["time"].max()),
        median_period_s=_median_period_s(main),
        problems=data.problems,
        notes=data.notes,
        clock=data.clock,
    )


def _describe_trials(data: Trials, path: str, kind: str, sha256: str) -> InputRecord:
    trials = data.trials
    stamps = pd.concat([trials["start"], trials["end"]])
    main = trials if len(trials) else data.events
    return InputRecord(
        path=path,
        kind=kind,
        reader=data.reader,
        sha256=sha256,
        rows=data.rows,
        columns=tuple(main.columns),
        start=_iso(stamps.min()),
        end=_iso(stamps.max()),
        studies=tuple(_study(row, data) for row in data.studies.to_dict("records")),
        problems=data.problems,
        notes=data.notes,
    )


def _study(row: Mapping[Any, Any], data: Trials) -> dict[str, Any]:
    name = row["study"]
    states = data.trials.loc[data.trials["study"] == name, "state"].value_counts()
    return {
        "name": name,
        "directions": [d for d in str(row["directions"]).split(",") if d],
        "states": {str(state): int(n) for state, n in sorted(states.items())},
        "reports": int((data.reports["study"] == name).sum()),
    }


def _median_period_s(frame: pd.DataFrame) -> float | None:
    if len(frame) < 2:
        return None
    by_gpu = frame.groupby("gpu", sort=False)["time"] if "gpu" in frame else [("", frame["time"])]
    steps = pd.concat([times.drop_duplicates().diff().dropna() for _, times in by_gpu])
    return round(steps.median().total_seconds(), 6) if len(steps) else None


def _iso(stamp: pd.Timestamp) -> str | None:
    return None if pd.isna(stamp) else stamp.isoformat()
