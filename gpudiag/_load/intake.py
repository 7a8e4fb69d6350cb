"""One input, read and described: what `gpudiag inspect` prints and what a run keeps as provenance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

from gpudiag._load.other_studies import set_apart
from gpudiag._run.tables import InputKind, InputRecord, StudyRecord
from gpudiag.errors import InputError
from gpudiag.faults import attempt
from gpudiag.files import never_replace
from gpudiag.readers import trials as trial_readers
from gpudiag.readers._io.source import Source
from gpudiag.readers._io.url import is_url
from gpudiag.readers.artifacts import tells_of_steps, wandb_run
from gpudiag.readers.base import ReadOptions, Telemetry, Trials, read_by, refuse
from gpudiag.readers.frames import read_frame
from gpudiag.readers.identify import EXPECTED, identify
from gpudiag.readers.telemetry import reader_of, wandb_binary
from gpudiag.schema import FINISHED

STEPS_LEFT = (
    "Its rows hold GPU metrics and steps of a training, and only the metrics are read: give the steps in another file."
)
_NEVER = np.datetime64("NaT", "us")


@dataclass(frozen=True, eq=False)
class Intake:
    """One input: its tables (None where it could not be read: ``error`` says why) and the record of how it was read."""

    record: InputRecord
    data: Telemetry | Trials | None
    error: InputError | None = None


@dataclass(frozen=True)
class Unopened:
    """A file of a folder that cannot be opened or told, and why."""

    path: Path
    error: InputError


def take(given: object, options: ReadOptions, *, shown_as: str | None = None) -> Intake:
    """Read one input with the reader that recognises it: a file, a folder that is one input, a storage URL, a study
    in memory or a DataFrame.

    Raises InputError (UnknownInput if no reader recognises it) with one sentence.
    """
    if isinstance(given, Unopened):
        raise given.error
    if isinstance(given, str) and is_url(given):
        return _taken(trial_readers.read_url(given, options), options, given, "trials", "")
    if not isinstance(given, str | Path | Source):
        frame = as_pandas(given)
        if isinstance(frame, pd.DataFrame):
            data: Telemetry | Trials = read_frame(frame, options)
        else:
            options = replace(options, study=options.study or getattr(given, "study_name", None))
            data = trial_readers.read_object(given, options)
        return _taken(data, options, f"<{type(given).__name__}>", "trials", "")
    source = given if isinstance(given, Source) else Source.open(given)
    found = identify(source)
    if found is None and (named := reader_of(source, options.columns)):
        found = "telemetry", named
    if found is None:
        raise refuse(source, EXPECTED, identify)
    kind, reader = found
    never_replace(source.path)
    data = read_by(reader, source, options)
    if kind == "telemetry" and tells_of_steps(source):
        data = replace(data, notes=(*data.notes, STEPS_LEFT))
    return _taken(data, options, shown_as or str(source.path), kind, source.sha256())


def logged_beside(given: object, taken: Intake, options: ReadOptions) -> list[Intake]:
    """What a training logged in a W&B run file that is given by itself, without its folder."""
    if taken.record.reader != wandb_binary.NAME or not isinstance(given, str | Path):
        return []
    data = wandb_run.logged(Source.open(given), options)
    return [_taken(data, options, taken.record.path, "artifacts", taken.record.sha256)] if len(data.steps) else []


def is_other_frame(given: object) -> bool:
    """Whether this is a table of another library than pandas (polars, pyarrow) that it can be made of."""
    return _is_lazy(given) or (hasattr(given, "to_pandas") and hasattr(given, "columns"))


def are_rows(given: object) -> bool:
    """Whether these are the rows of a table as dictionaries."""
    return isinstance(given, list | tuple) and bool(given) and all(isinstance(one, Mapping) for one in given)


def as_pandas(given: object) -> object:
    """A table of another library, or rows as dictionaries, as a DataFrame; anything else as it is."""
    if are_rows(given):
        return pd.DataFrame.from_records([dict(one) for one in cast(Any, given)])
    if not is_other_frame(given):
        return given
    table: Any = given
    return (table.collect() if _is_lazy(table) else table).to_pandas()


def _is_lazy(given: object) -> bool:
    """A query of polars that has not run: asked for its columns, it warns."""
    return hasattr(given, "collect") and hasattr(given, "collect_schema")


def _taken(data: Telemetry | Trials, options: ReadOptions, path: str, kind: InputKind, sha256: str) -> Intake:
    return _described(set_apart(data, options), path, kind, sha256)


def _described(data: Telemetry | Trials, path: str, kind: InputKind, sha256: str) -> Intake:
    if isinstance(data, Telemetry):
        return Intake(_describe_telemetry(data, path, sha256), data)
    return Intake(_describe_trials(data, path, kind, sha256), data)


def try_take(given: str | Path | Source | Unopened, options: ReadOptions, *, shown_as: str | None = None) -> Intake:
    """Like :func:`take`, with the error kept in the record instead of raised; a reader that fails is one as well."""
    name = shown_as or str(given.path if isinstance(given, Source | Unopened) else given)
    try:
        made = attempt("a reader", lambda: take(given, options, shown_as=shown_as))
        if isinstance(made, Intake):
            return made
        raise InputError(f"{name}: {made}")
    except InputError as error:
        return Intake(InputRecord(name, "unknown", error=str(error)), None, error)


def read_again(
    intakes: Sequence[Intake], logs: Sequence[Telemetry], trials: Sequence[Trials] | None = None
) -> list[Intake]:
    """The inputs with these logs of GPU metrics, and trials, in place of their own, in their order."""
    left, others = iter(logs), None if trials is None else iter(trials)

    def again(intake: Intake) -> Intake:
        data: Telemetry | Trials | None = intake.data
        if isinstance(data, Telemetry):
            data = next(left)
        elif isinstance(data, Trials) and others is not None:
            data = next(others)
        if data is None or data is intake.data:
            return intake
        record = intake.record
        return _described(data, record.path, record.kind, record.sha256)

    return [again(intake) for intake in intakes]


def _describe_telemetry(data: Telemetry, path: str, sha256: str) -> InputRecord:
    main = next((t for t in (data.gpu, data.processes, data.host, data.events) if len(t)), data.gpu)
    times_us = main["time"].to_numpy("datetime64[us]")
    first, last = (pd.Timestamp(end.reduce(times_us, initial=_NEVER), tz="UTC") for end in (np.fmin, np.fmax))
    gpus = data.gpus["gpu"].tolist() if len(data.gpus) else sorted(set(main.get("gpu", pd.Series()).dropna()))
    one = main is data.gpu and len(gpus) == 1
    return InputRecord(
        path=path,
        kind="telemetry",
        reader=data.reader,
        sha256=sha256,
        rows=data.rows,
        gpus=tuple(gpus),
        columns=tuple(main.columns),
        start=_iso(first),
        end=_iso(last),
        median_period_s=_median_period_s(times_us, None if one or "gpu" not in main else main["gpu"]),
        problems=data.problems,
        notes=data.notes,
        clock=data.clock,
    )


def _describe_trials(data: Trials, path: str, kind: InputKind, sha256: str) -> InputRecord:
    trials = data.trials
    dated = next((table for table in (data.steps, data.profiled, data.collectives) if len(table)), data.profiled)
    timestamps = pd.concat([trials["start"], trials["end"]]) if len(trials) else dated["time"]
    tables = (trials, data.events, data.steps, data.profiled, data.collectives)
    main = next((table for table in tables if len(table)), trials)
    return InputRecord(
        path=path,
        kind=kind,
        reader=data.reader,
        sha256=sha256,
        rows=data.rows,
        columns=tuple(main.columns),
        start=_iso(timestamps.min()),
        end=_iso(timestamps.max()),
        studies=tuple(_study(row, data) for row in data.studies.to_dict("records")),
        problems=data.problems,
        notes=data.notes,
        clock=data.clock,
    )


def _study(row: Mapping[Any, Any], data: Trials) -> StudyRecord:
    name = row["study"]
    trials = data.trials[data.trials["study"] == name]
    return StudyRecord(
        name=name,
        directions=tuple(d for d in str(row["directions"]).split(",") if d),
        states={str(state): int(n) for state, n in sorted(trials["state"].value_counts().items())},
        reports=int((data.reports["study"] == name).sum()),
        start=_iso(trials["start"].min()),
        end=_iso(trials["end"].max()),
        max_concurrent=_max_concurrent(trials),
    )


def _max_concurrent(trials: pd.DataFrame) -> int | None:
    """Most finished trials that ran at one instant; None where none has both timestamps.

    Of equal timestamps an end comes before a start, so that a worker which goes on to its next trial counts once.
    """
    done = trials[trials["start"].notna() & trials["end"].notna() & trials["state"].isin(FINISHED)]
    if not len(done):
        return None
    edges = np.concatenate([done["end"].to_numpy("datetime64[us]"), done["start"].to_numpy("datetime64[us]")])
    steps = np.repeat([-1, 1], len(done))
    return max(int(np.cumsum(steps[np.lexsort((steps, edges))]).max()), 0)


def _median_period_s(times_us: np.ndarray, gpu: pd.Series | None) -> float | None:
    """The median step between rows of one GPU, None for ``gpu`` where all rows are."""
    if len(times_us) < 2:
        return None
    code = np.zeros(len(times_us), dtype=np.int8) if gpu is None else pd.factorize(gpu)[0]
    if not _in_order(times_us, code):
        order = np.lexsort((times_us, code))
        times_us, code = times_us[order], code[order]
    steps_us = np.diff(times_us)[code[1:] == code[:-1]]
    steps_us = steps_us[steps_us > np.timedelta64(0, "us")]  # false for steps to an unknown timestamp
    return round(float(np.median(steps_us.astype(np.int64))) / 1e6, 6) if len(steps_us) else None


def _in_order(times_us: np.ndarray, code: np.ndarray) -> bool:
    """GPU by GPU in order of time, as most tables are; a time that is unknown has no order."""
    later = (times_us[1:] >= times_us[:-1]) | (code[1:] > code[:-1])
    return bool(later.all() and (code[1:] >= code[:-1]).all()) and not np.isnat(times_us).any()


def _iso(timestamp: pd.Timestamp) -> str | None:
    return None if pd.isna(timestamp) else timestamp.isoformat()
