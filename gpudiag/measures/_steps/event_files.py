"""Event files of TensorBoard beside other logs of a training: they tell when it was what a bar shows the time of."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from pathlib import PurePath

import numpy as np
import pandas as pd

from gpudiag.measures._steps.lines import floats
from gpudiag.measures._steps.log_files import LogFile, WrittenSteps, may_be_one
from gpudiag.readers._steps.metric_kinds import CSV, EVENTS, LOGGED, MLFLOW
from gpudiag.spans import seconds

ENOUGH = 5
"""Fewer steps that both tell of are no proof."""
ALIKE = 0.9
"""Part of these steps that both tell of alike, and of the steps of each that the other tells of."""
EDGES = 2.0
"""Steps from one line to the next by which what both tell of may begin later and end earlier."""
APART_S = 2.0
"""A bar shows whole seconds, and is drawn a moment before or after the scalars are written."""


def is_of_events(file: LogFile) -> bool:
    """Whether it is of TensorBoard, or of W&B or MLflow, which hold what a training logged in the same way."""
    return all(steps.kind in (EVENTS, LOGGED, MLFLOW) for steps in file.written.values())


def as_one(files: Sequence[LogFile], joined: pd.DataFrame) -> LogFile:
    """The files of one training, whose lines are joined, as one of which the lines are counted on."""
    if len(files) == 1:
        return files[0]
    first = joined.groupby("part", sort=True)["line"].max().cumsum().shift(fill_value=0)
    line = joined["line"].to_numpy(np.int64) + first.loc[joined["part"]].to_numpy(np.int64)
    return LogFile(files[0].path, joined.assign(line=line).drop(columns=["log", "part"]))


def tells_of(events: LogFile, file: LogFile) -> bool:
    """Whether a table of epochs without timestamps is of the training of event files: it lies in their folder and has
    their epochs, as what Ultralytics writes. Its times are those behind an evaluation, and theirs those before it.
    """
    (one, *others), (table, *more) = events.written.values(), file.written.values()
    if others or more or file.is_dated or table.kind != CSV or not may_be_one(events.path, file.path):
        return False
    of_epochs = all(steps.lines["unit"].iloc[0] == "epoch" for steps in (one, table))
    return of_epochs and PurePath(events.path).parent == PurePath(file.path).parent and (
        float(table.lines["step"].isin(one.lines["step"]).mean()) >= ALIKE
    )  # fmt: skip


def dated_by(events: Sequence[LogFile], file: LogFile) -> LogFile:
    """A log of one process whose bars tell of the same steps as event files, with the moments of its lines; unchanged
    where none does, or of those of several trainings none is nearer in the folders.
    """
    (steps, *others) = file.written.values()
    if others or file.is_dated or np.isnan(floats(steps.lines, "elapsed_s")).all():
        return file
    found = []
    for one in events:
        moments = _moments(steps, next(iter(one.written.values()))) if may_be_one(one.path, file.path) else None
        if moments is not None:
            found.append((_n_shared(one.path, file.path), moments))
    found.sort(key=lambda one: -one[0])
    if not found or (len(found) > 1 and found[0][0] == found[1][0]):
        return file
    time = file.lines["time"].copy()
    time.loc[steps.lines.index] = pd.to_datetime(found[0][1], utc=True).astype(time.dtype)
    return LogFile(file.path, file.lines.assign(time=time))


def _n_shared(first: str, second: str) -> int:
    """How many folders from the first on are those of both."""
    folders = zip(PurePath(first).parts[:-1], PurePath(second).parts[:-1], strict=False)
    return sum(1 for _ in takewhile(lambda two: two[0] == two[1], folders))


def _moments(bar: WrittenSteps, events: WrittenSteps) -> np.ndarray | None:
    """When each line of a bar was written, by where its clock began in each attempt; None where it does not go as the
    events do.
    """
    elapsed, step = floats(bar.lines, "elapsed_s"), bar.lines["step"].to_numpy(np.int64)
    known = events.lines.assign(at_s=seconds(events.moment))
    known = known.dropna(subset=["at_s"])[["step", "at_s"]].astype({"step": np.int64})
    attempt = np.cumsum(np.append(0, (np.diff(elapsed) < 0) | (np.diff(step) < 0)))
    begun_s, n_met, n_alike = np.full(len(step), np.nan), 0, 0
    met_steps: list[int] = []
    for number in np.unique(attempt).tolist():
        own = np.flatnonzero(attempt == number)
        met = pd.DataFrame({"step": step[own], "s": elapsed[own]}).merge(known, on="step")
        began_s = (met["at_s"] - met["s"]).to_numpy()
        if not len(began_s):
            continue
        begun_s[own] = np.median(began_s)
        alike = met["step"][np.abs(began_s - np.median(began_s)) <= APART_S].nunique()
        n_met, n_alike = n_met + met["step"].nunique(), n_alike + alike
        met_steps += met["step"].tolist()
    if n_met < ENOUGH or n_alike < ALIKE * n_met or np.isnan(begun_s).any():
        return None
    edges = EDGES * np.nanmax([events.stride, bar.stride])
    if any(max(met_steps) - min(met_steps) < ALIKE * float(np.ptp(of)) - edges for of in (step, known["step"])):
        return None
    whole = not (elapsed[~np.isnan(elapsed)] % 1).any()
    at_s = begun_s + elapsed
    return (np.round(at_s) * 1e6 if whole else at_s * 1e6).astype("datetime64[us]")
