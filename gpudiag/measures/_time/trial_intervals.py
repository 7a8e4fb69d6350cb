"""When each trial lived, and what it is called."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gpudiag._run.failure_text import failure_classes
from gpudiag.errors import NotMeasurable
from gpudiag.measures._time.microseconds import SECOND_US
from gpudiag.measures._trials.batches import asked_together
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import ADDED, STOPPED, dtype

MOST_S = 100 * 366 * 86_400
"""A stated duration of a century is none."""
HANDOVER_US = 2 * SECOND_US
"""A trial that starts this soon after another's end took its place."""


def trial_intervals(trials: pd.DataFrame) -> pd.DataFrame:
    """study, trial, state, start, end, duration_s, known of every trial, in the order given.

    A start or an end that is missing is filled from the stated duration; what was still RUNNING has none, only how long
    it had run so far (:func:`ran_until`). ``known`` is True where start and end are known and in order; a trial that
    ends before it starts (a clock fault) has no duration. What is WAITING has not lived, whatever timestamps it has.
    What somebody stopped, as its error says, is STOPPED and no FAIL. What was added to its study is ADDED: it did not
    run in it, so that it has neither times nor a duration.
    """
    out = trials[["study", "trial", "state", "start", "end"]].reset_index(drop=True)
    by_hand = ((trials["state"] == "FAIL") & (failure_classes(trials) == "stopped")).to_numpy()
    out["state"] = out["state"].mask(by_hand, STOPPED)
    stated = _stated_s(trials).where(~_runs_on(trials))
    length = _length(stated)
    out["end"] = out["end"].fillna((out["start"] + length).astype(dtype("time")))
    out["start"] = out["start"].fillna((out["end"] - length).astype(dtype("time")))
    lived = (out["end"] - out["start"]).dt.total_seconds()
    out["duration_s"] = lived.fillna(stated).where(~(lived < 0))
    out["known"] = (lived >= 0) & ~out["state"].isin(["WAITING"])
    if "added" in trials:
        was_added = trials["added"].notna().to_numpy()
        out.loc[was_added, ["start", "end"]] = pd.NaT
        out.loc[was_added, "duration_s"] = np.nan
        out["state"], out["known"] = out["state"].mask(was_added, ADDED), out["known"] & ~was_added
    return out


def ran_until(trials: pd.DataFrame) -> pd.Series:
    """Until when what was still RUNNING is stated to have run, as jobs in a scheduler's list; NaT for all others."""
    so_far = _length(_stated_s(trials).where(_runs_on(trials)))
    return (trials["start"].reset_index(drop=True) + so_far).astype(dtype("time"))


def _stated_s(trials: pd.DataFrame) -> pd.Series:
    stated = trials["duration_s"] if "duration_s" in trials else pd.Series(np.nan, trials.index)
    return stated.where(stated.abs() < MOST_S).reset_index(drop=True)


def _length(seconds: pd.Series) -> pd.Series:
    with np.errstate(over="ignore"):  # pandas 2.2 rounds what it never set where a duration is unknown
        return pd.to_timedelta(seconds, unit="s")


def _runs_on(trials: pd.DataFrame) -> pd.Series:
    running = (trials["state"] == "RUNNING") & trials["start"].notna() & trials["end"].isna()
    return running.reset_index(drop=True)


def intervals_of(run: Run) -> pd.DataFrame:
    """:func:`trial_intervals` of the trials of a run, without durations of those that have no times of their own.

    To columns of one's own in it the copy that is kept is blind.
    """
    return _made(run).copy(deep=False)


@memoized
def _made(run: Run) -> pd.DataFrame:
    intervals = _as_recorded(run)
    return intervals.assign(duration_s=intervals["duration_s"].mask(without_own_times(run)))


@memoized
def _as_recorded(run: Run) -> pd.DataFrame:
    return trial_intervals(run.trials)


@memoized
def without_own_times(run: Run) -> np.ndarray:
    """True by row for trials that were asked for together and told in turn: nothing says when each of them ran."""
    return asked_together(run.trials, _as_recorded(run))


def need_own_times(run: Run) -> None:
    """Raise NotMeasurable where nothing says when single trials ran, and so how many did at once."""
    together = without_own_times(run)
    if not together.any():
        return
    raise NotMeasurable(
        "{n:trial} were asked for several at once and told in turn, so that nothing says when each ran, or how many at "
        "once.",
        "Call study.ask() right before each trial is evaluated, or wrap the objective with gpudiag's timestamps.",
        n=int(together.sum()),
    )


def is_open(intervals: pd.DataFrame) -> pd.Series:
    """True by row of :func:`trial_intervals` for what began and has no end."""
    return intervals["start"].notna() & intervals["end"].isna() & (intervals["state"] != "WAITING")


def trial_names(trials: pd.DataFrame, *, several: bool | None = None) -> pd.Series:
    """What to call each trial: its number, with its study before it where there are ``several`` ("study/7")."""
    several = trials["study"].nunique() > 1 if several is None else several
    names = list(map(str, trials["trial"].tolist()))
    if several:
        names = [f"{study}/{trial}" for study, trial in zip(trials["study"].tolist(), names, strict=True)]
    return pd.Series(names, trials.index, dtype=object)
