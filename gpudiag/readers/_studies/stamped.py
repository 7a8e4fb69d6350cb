"""Trials that gpudiag stamped while they ran (user attributes ``gpudiag:...``): their clock is exact."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from gpudiag.schema import text_dtype

PREFIX = "user_attrs.gpudiag:"
QUARTER = pd.Timedelta(minutes=15)
NEAR = pd.Timedelta(seconds=60)
"""How far a timestamp may lie from the start that Optuna stored, zones apart: the sampler runs in between."""


class StudyClock(NamedTuple):
    """What the timestamps of one study tell of its clock; ``exact`` if nothing about it is assumed any more."""

    study: str
    exact: bool
    note: str


def apply_timestamps(
    trials: pd.DataFrame, studies: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame, tuple[StudyClock, ...]]:
    """Trials and studies with what the timestamps tell, and what that is for each study that has some.

    ``start`` and ``end`` of a stamped trial are its timestamps; an end without one, and trials of the study
    without any, are moved by the offset that its stamped trials show, if they all show one. Then the clock of
    the study is ``utc``. Columns ``gpu`` (a uuid), ``pid``, ``host`` and a failure's ``detail`` (the class of its
    exception) are filled where they are unknown.
    """
    if PREFIX + "start_utc" not in trials:
        return trials, studies, ()
    start, end = _times(trials, "start_utc"), _times(trials, "end_utc")
    shift = _quarters(start - trials["start"])
    clock = list(studies["clock"])
    clocks = []
    for at, study in enumerate(studies["study"]):
        own = trials["study"] == study
        stamped = int((own & start.notna()).sum())
        if not stamped:
            continue
        shift = shift.where(~own | shift.notna(), _common(shift[own]))
        exact = bool(shift[own].notna().all())
        clock[at] = "utc" if exact else clock[at]
        clocks.append(StudyClock(str(study), exact, _note(str(study), stamped, int(own.sum()), exact)))
    moved = shift.fillna(pd.Timedelta(0))
    out = trials.assign(start=start.fillna(trials["start"] + moved), end=end.fillna(trials["end"] + moved))
    return _located(out), studies.assign(clock=clock), tuple(clocks)


def _times(trials: pd.DataFrame, name: str) -> pd.Series:
    """Timestamps as UTC; what is none, or was written by someone else in another form, is NaT."""
    if PREFIX + name not in trials:
        return pd.Series(pd.NaT, index=trials.index, dtype="datetime64[us, UTC]")
    text = trials[PREFIX + name].map(lambda value: value if isinstance(value, str) else None).astype("object")
    return pd.to_datetime(text, utc=True, errors="coerce", format="ISO8601").astype("datetime64[us, UTC]")


def _quarters(difference: pd.Series) -> pd.Series:
    """Differences that are a zone's: whole quarters of an hour; others are unknown."""
    rounded = difference.dt.round(QUARTER)
    return rounded.where((difference - rounded).abs() <= NEAR)


def _common(offset: pd.Series) -> pd.Timedelta:
    """The offset that all show, or NaT."""
    known = offset.dropna().unique()
    return known[0] if len(known) == 1 else pd.NaT


def _located(trials: pd.DataFrame) -> pd.DataFrame:
    """GPU, process, host and class of failure from the timestamps where nothing else does; changes its own copy."""
    for column, name in (("gpu", "gpu_uuid"), ("host", "host"), ("detail", "exception")):
        if PREFIX + name in trials:
            stored = trials[PREFIX + name].astype("object")
            stored = stored.where((trials["state"] == "FAIL") | (column != "detail"))
            known = trials[column].astype("object") if column in trials else pd.Series(None, trials.index, dtype=object)
            trials[column] = known.where(known.notna(), stored).astype(text_dtype())
    if PREFIX + "pid" in trials:
        stored = pd.to_numeric(trials[PREFIX + "pid"], errors="coerce")
        known = trials["pid"].astype("float64") if "pid" in trials else pd.Series(np.nan, index=trials.index)
        trials["pid"] = known.fillna(stored).astype("Int64")
    return trials


def _note(study: str, stamped: int, n: int, exact: bool) -> str:
    if exact:
        return f"Study '{study}': {stamped} of {n} trials carry gpudiag's timestamps in UTC; its clock is exact."
    return (
        f"Study '{study}': {stamped} of {n} trials carry gpudiag's timestamps in UTC; the others were run under "
        "different clocks and keep their own."
    )
