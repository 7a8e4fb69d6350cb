"""A DataFrame that somebody holds already: samples of GPUs, or trials."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from gpudiag.errors import InputError
from gpudiag.readers._fields.aliases import meaning_of
from gpudiag.readers._io.held_file import held_file
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._shape.corrections import milliwatts
from gpudiag.readers._shape.finish import Known, finish
from gpudiag.readers._shape.given_index import with_index
from gpudiag.readers._shape.given_numbers import names_of, read_numbers, refuse_other_units
from gpudiag.readers._shape.given_times import read_times
from gpudiag.readers._shape.identity import GpuIdentity, resolve
from gpudiag.readers._studies.flat import from_columns
from gpudiag.readers._studies.given_states import NUMBERS_READ, are_numbers, name_of, named
from gpudiag.readers._studies.trial_columns import LOOKED_AT, is_own_header, is_own_table, is_trials_header
from gpudiag.readers.base import ReadOptions, Telemetry, Trials
from gpudiag.readers.identify import identify
from gpudiag.schema import GPU, STATES, STUDIES, TRIALS, conform

NAME = "dataframe"
HELD = Source(Path("DataFrame"), b"")
"""Stands for the frame in messages."""
EXPECTED = (
    "samples (columns time, gpu and util_pct, mem_used_mib, power_w ... of gpudiag.schema.GPU), "
    "study.trials_dataframe(), or trials (columns trial, state, start, end ... of gpudiag.schema.TRIALS)"
)


def read_frame(frame: pd.DataFrame, options: ReadOptions) -> Telemetry | Trials:
    """The tables in a frame, told by its columns; timestamps without a zone are read in ``options.timezone``.

    A frame that a log was read into, with the columns of that log, is read as the log is; its index counts as columns.
    Raises InputError that says what columns were expected, or what is wrong in them.
    """
    frame = with_index(frame)
    names = {str(name) for name in frame.columns}
    if twice := set(frame.columns[frame.columns.duplicated()]) & {*GPU.names, *TRIALS.names}:
        raise InputError(f"DataFrame: has several columns {min(twice)!r}; expected one: drop or rename others.")
    try:
        if {"time", "gpu"} <= names:
            return _telemetry(frame, options)
        if is_trials_header([str(name) for name in frame.columns]) or _is_own_table(frame):
            cells = {str(name): _cells(frame[name]) for name in frame.columns}
            return from_columns(cells, Source(Path(options.study or "study"), b""), options, NAME, ProblemLog())
        if {"trial", "state"} <= names:
            return _trials(frame, options)
    except (ValueError, TypeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"DataFrame: holds a value that its column cannot have ({error}).") from error
    if names and not len(frame):
        raise InputError("DataFrame: holds no row.")
    if (log := _as_log(frame, options)) is not None:
        return log
    got = ", ".join(sorted(names)[:12]) or "none"
    raise InputError(f"DataFrame: expected {EXPECTED}; its columns are: {got}.")


def _is_own_table(frame: pd.DataFrame) -> bool:
    """Whether it is a table of trials with columns of somebody's own, and not with those of table ``trials``."""
    columns = [str(name) for name in frame.columns]
    if {"trial", "state"} <= set(columns) or not is_own_header(columns):
        return False
    return is_own_table(frame.head(LOOKED_AT).set_axis(columns, axis=1).to_dict("records"))


def _as_log(frame: pd.DataFrame, options: ReadOptions) -> Telemetry | None:
    """What the frame holds once it is a CSV file; None where that is no log of GPU metrics."""
    with held_file(HELD.path, partial(frame.to_csv, index=False)) as source:
        found = identify(source)
        if found is None or found[0] != "telemetry":
            return None
        read = found[1].read(source, options)
    return read if isinstance(read, Telemetry) else None


def _telemetry(frame: pd.DataFrame, options: ReadOptions) -> Telemetry:
    log = ProblemLog()
    times, notes = read_times({"time": frame["time"]}, log)
    numbers = read_numbers(frame, GPU)
    arrays = {name: values.to_numpy("float64", copy=True, na_value=np.nan) for name, values in numbers.items()}
    notes += milliwatts(arrays)
    refuse_other_units(arrays, GPU)
    names, gpus, told = _gpus(frame)
    columns = {**times, "gpu": names, **arrays}
    return finish(HELD, NAME, options, log, gpu=columns, gpus=gpus, notes=[*told, *notes])


def _gpus(frame: pd.DataFrame) -> tuple[pd.Series, list[Known] | None, list[str]]:
    """The name of the GPU of each row, table ``gpus``, and notes: on several hosts a GPU is one of its host."""
    names = names_of(frame["gpu"])
    column = next((name for name in frame.columns if meaning_of(str(name)).target == "host"), None)
    if column is None:
        return names, None, []
    hosts = frame[column].astype(object).where(frame[column].notna(), "").astype(str)
    told = pd.DataFrame({"index": names.astype(object).to_numpy(), "host": hosts.to_numpy()})
    which = told.groupby(["index", "host"], sort=False, dropna=True).ngroup().to_numpy()
    faces = told[which >= 0].drop_duplicates()
    ids, notes = resolve([GpuIdentity(index=index, host=host) for index, host in faces.itertuples(index=False)])
    labels = pd.Series(np.array([*ids, None], dtype=object)[which])
    gpus: list[Known] = [
        {"gpu": name, "host": host} if host else {"gpu": name} for name, host in zip(ids, faces["host"], strict=True)
    ]
    return labels, gpus, notes


def _trials(frame: pd.DataFrame, options: ReadOptions) -> Trials:
    cells = {str(name): _cells(frame[name]) for name in frame.columns}
    by_number = [NUMBERS_READ] if are_numbers(cells["state"]) else []
    states = [cell if cell is None else name_of(cell) for cell in named(cells, "DataFrame")["state"]]
    unknown = sorted({state for state in states if state} - set(STATES))
    if unknown:
        raise InputError(f"DataFrame: there is no state {unknown[0]!r}; expected {', '.join(STATES)}.")
    log = ProblemLog()
    given = frame.assign(state=states, **({} if "study" in frame else {"study": options.study or "study"}))
    told, notes = read_times({name: given[name] for name in ("start", "end") if name in given}, log)
    times = {name: _utc(values, options) for name, values in told.items()}
    names = {name: names_of(given[name]) for name in ("gpu", "worker") if name in given}
    trials = conform(given.assign(**times, **names, **read_numbers(given, TRIALS)), TRIALS)
    if options.study is not None and not options.beside:
        trials = trials[trials["study"] == options.study]
    trials = trials.sort_values(["study", "trial"], kind="stable", ignore_index=True)
    studies = conform(pd.DataFrame({"study": trials["study"].unique()}), STUDIES)
    return Trials(trials=trials, studies=studies, problems=log.all, notes=(*notes, *by_number), reader=NAME)


def _utc(timestamps: pd.Series, options: ReadOptions) -> pd.Series:
    if timestamps.dt.tz is None:
        timestamps = timestamps.dt.tz_localize(options.timezone, ambiguous=True, nonexistent="shift_forward")
    return timestamps.dt.tz_convert("UTC")


def _cells(values: pd.Series) -> list[object]:
    return values.astype(object).where(values.notna(), None).tolist()
