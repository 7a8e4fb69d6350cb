"""Which of the trials without an end are dead, and since when."""

from __future__ import annotations

import numpy as np
import pandas as pd
from pandas.api.typing import SeriesGroupBy

from gpudiag.facts import Column, column
from gpudiag.measures._time.microseconds import NEVER, after, microseconds, utc
from gpudiag.measures._time.trial_intervals import intervals_of
from gpudiag.measures._trials.ends import deaths, places_of, seen_alone
from gpudiag.measures._trials.horizon import Sign, open_trials, quiet_since
from gpudiag.measures.base import TrialRow
from gpudiag.memo import memoized
from gpudiag.run import Run


class OpenTrial(TrialRow):
    """A trial that began and has no end."""

    name: Column[str] = column("its own name, where it has one")
    state: Column[str] = column("state")
    start: Column[pd.Timestamp] = column("start")
    last_evidence: Column[pd.Timestamp] = column("last sign of life")
    end: Column[pd.Timestamp] = column("when it most likely ended")
    horizon: Column[pd.Timestamp] = column("latest end that the data allow")
    reason: Column[str] = column(
        "what its end follows from: end, stale, reused, vanished, idle, silent (its heartbeats), marked, crowded, "
        "beyond or freed (its memory)"
    )
    abandoned: Column[bool] = column("the data show that it is dead")


QUIET_S = 60.0
"""A trial whose GPU is not active for this long up to the end of the telemetry most likely ended before that."""


@memoized
def find_open_trials(run: Run) -> pd.DataFrame:
    """A row of :class:`OpenTrial` for every trial with a start and no end, in the order of the trials.

    ``end`` is where memory was freed without an end, or where a trial began though there was no room
    (:mod:`~gpudiag.measures._trials.ends`); else where the horizon proves it. Where neither shows an end, a trial of
    the last study that is no older than the longest ended one goes on, for no longer than that one did or than its GPU
    is active; any other lived half as long as the median ended one, as what is killed at a random moment does, or as
    its GPU is active with no other trial on it. ``horizon`` is a bound in any case.
    """
    opens = open_trials(run)
    if opens.empty:
        return opens.assign(end=opens["horizon"])[list(OpenTrial.declared())]
    intervals = intervals_of(run)
    places = list(places_of(run, intervals))
    start, horizon = microseconds(opens["start"]), microseconds(opens["horizon"])
    longest = after(start, opens["study"].map(_ended_s(intervals).max()))
    alive_at = np.maximum(seen_alone(run, places, opens), microseconds(opens["last_evidence"]))
    end = _unseen_end(run, intervals, opens, alive_at)
    for i, death in deaths(places, opens).items():
        if death.sign is Sign.FREED or death.at_us <= longest[i]:
            end[i] = death.at_us  # a place that is taken so much later was left long before
        if death.sure and opens.loc[i, "reason"] in (Sign.END, Sign.STALE):
            opens.loc[i, "reason"] = death.sign.value
            opens.loc[i, "abandoned"] = opens.loc[i, "state"] == "RUNNING"
    return opens.assign(end=utc(np.minimum(end, horizon)))[list(OpenTrial.declared())]


def _unseen_end(run: Run, intervals: pd.DataFrame, opens: pd.DataFrame, alive_at: np.ndarray) -> np.ndarray:
    """Where each open trial ended if nothing shows it, not before ``alive_at``; NEVER if its horizon is proven."""
    start, ended_s = microseconds(opens["start"]), _ended_s(intervals)
    quiet = quiet_since(run, QUIET_S)
    oldest = after(start, opens["study"].map(ended_s.max()))
    longest = np.minimum(oldest, np.where(quiet > start, quiet, NEVER))
    killed = after(start, opens["study"].map(ended_s.median() / 2))
    last_sign = pd.concat([intervals["start"], intervals["end"]], axis=1).max(axis=1)
    goes_on = opens["study"].map(last_sign.groupby(intervals["study"]).max() == last_sign.max()).to_numpy(bool)
    goes_on = goes_on & (opens["reason"] == Sign.END).to_numpy() & (oldest >= microseconds(last_sign).max())
    proven = ~opens["reason"].isin([Sign.END.value, Sign.STALE.value]).to_numpy()
    return np.where(proven, NEVER, np.maximum(np.where(goes_on, longest, killed), alive_at))


def _ended_s(intervals: pd.DataFrame) -> SeriesGroupBy:
    """Seconds that ended trials lasted, by study."""
    return intervals[intervals["known"]].groupby("study")["duration_s"]
