"""What is odd about the trials' own timestamps: clock changes, steps back, ends before starts."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo

import numpy as np
import pandas as pd

from gpudiag.run import Run
from gpudiag.spans import seconds
from gpudiag.statement import Statement
from gpudiag.timezones import QUARTER_S, transitions

MAX_STEPS = 3
BACKWARD = "{n} trials end before they start: their clock was set back, or two clocks are mixed."
STEP_BACK = (
    "In study '{study}' the starts run back by {step_s} at trial {trial}, as where another version of Optuna (5 writes "
    "UTC) or another host went on with it."
)
CLOCK_CHANGE = (
    "The clocks of {zone} changed by {change_s:as shift} at {moment:as minute} UTC, within the study: the durations of "
    "the {across} trials that ran across it may be wrong by {wrong_s}."
)


def oddities(run: Run, zone: tzinfo) -> tuple[Statement, ...]:
    """What is odd about timestamps of trials that cannot be taken at their word."""
    trials = run.trials
    notes = []
    backward = int((trials["end"] < trials["start"]).sum())
    if backward:
        notes.append(Statement(BACKWARD, n=backward))
    for study, trial, step_s in steps_back(trials):
        notes.append(Statement(STEP_BACK, study=study, trial=str(trial), step_s=abs(step_s)))
    return (*notes, *_clock_changes(run, zone))


def steps_back(trials: pd.DataFrame) -> Iterator[tuple[str, int, float]]:
    """(study, trial, seconds) of each start that lies a quarter of an hour or more before that of the trial before.

    A study with more than MAX_STEPS of them is left out: its numbers do not follow time.
    """
    for study, part in trials[trials["start"].notna()].groupby("study", sort=True):
        ordered = part.sort_values("trial", kind="stable")
        step = np.diff(seconds(ordered["start"]))
        back = np.flatnonzero(step <= -QUARTER_S)
        for at in back if len(back) <= MAX_STEPS else ():
            yield str(study), int(ordered["trial"].iloc[at + 1]), float(-step[at])


def pauses(trials: pd.DataFrame, at_least_s: float) -> Iterator[tuple[str, int]]:
    """(study, trial) of each trial that starts that long after all trials before it had ended."""
    for study, part in trials[trials["start"].notna()].groupby("study", sort=True):
        ordered = part.sort_values("trial", kind="stable")
        start, end = seconds(ordered["start"]), seconds(ordered["end"].fillna(ordered["start"]))
        quiet = start[1:] - np.maximum.accumulate(end)[:-1]
        for at in np.flatnonzero(quiet >= at_least_s):
            yield str(study), int(ordered["trial"].iloc[at + 1])


def _clock_changes(run: Run, zone: tzinfo) -> Iterator[Statement]:
    """Changes of the zone's offset within a study whose timestamps carry no zone."""
    if "clock" not in run.studies:
        return
    naive = run.studies.loc[run.studies["clock"] != "utc", "study"]
    part = run.trials[run.trials["study"].isin(naive)]
    start, end = part["start"].min(), part["end"].max()
    if pd.isna(start) or pd.isna(end):
        return
    for moment, change in transitions(zone, start.to_pydatetime(), end.to_pydatetime()):
        yield _describe(part, zone, moment, change)


def _describe(part: pd.DataFrame, zone: tzinfo, moment: datetime, change: timedelta) -> Statement:
    timestamp = pd.Timestamp(moment.astimezone(UTC))
    change_s = change.total_seconds()
    across = int(((part["start"] < timestamp) & (part["end"] > timestamp)).sum())
    return Statement(
        CLOCK_CHANGE, zone=str(zone), change_s=change_s, moment=moment, across=across, wrong_s=abs(change_s)
    )
