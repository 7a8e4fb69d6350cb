"""Which of the trials without an end are dead."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gpudiag.facts import Column, column
from gpudiag.measures._time.concurrency import count_at
from gpudiag.measures._time.microseconds import microseconds
from gpudiag.measures._time.trial_intervals import Sign, open_trials, trial_intervals
from gpudiag.measures.base import TrialRow
from gpudiag.run import Run


class OpenTrial(TrialRow):
    """A trial that began and has no end."""

    name: Column[str] = column("its own name, where it has one")
    state: Column[str] = column("state")
    start: Column[pd.Timestamp] = column("start")
    last_evidence: Column[pd.Timestamp] = column("last sign of life")
    horizon: Column[pd.Timestamp] = column("latest end that the data allow")
    reason: Column[str] = column("what its latest end follows from: end, stale, reused, vanished, idle or crowded")
    abandoned: Column[bool] = column("the data show that it is dead")


def find_open_trials(run: Run) -> pd.DataFrame:
    """:func:`~gpudiag.measures._time.trial_intervals.open_trials`, with those that only the configured parallelism
    shows to be dead.

    Where open trials raise the concurrency above what was configured (and closed ones alone never do), as
    many of the oldest of them as are too many are marked. Their horizon stays: another worker is possible too.
    """
    opens = open_trials(run)
    configured = run.info.settings.parallel
    if configured is None or opens.empty:
        return opens
    intervals = trial_intervals(run.trials)
    closed = intervals[intervals["known"]]
    start, end = microseconds(closed["start"]), microseconds(closed["end"])
    open_start, open_end = microseconds(opens["start"]), microseconds(opens["horizon"])
    times = np.unique(np.concatenate([start, end, open_start, open_end]))
    n_closed = count_at(times, start, end)
    n_all = n_closed + count_at(times, open_start, open_end)
    if n_closed.max() > configured or n_all.max() <= configured:
        return opens
    worst = times[n_all.argmax()]
    alive = opens[(open_start <= worst) & (worst < open_end)].sort_values(["start", "study", "trial"])
    crowd = alive.index[: n_all.max() - configured]
    unexplained = [i for i in crowd if not opens.loc[i, "abandoned"] and opens.loc[i, "state"] == "RUNNING"]
    opens.loc[unexplained, "reason"] = Sign.CROWDED.value
    opens.loc[unexplained, "abandoned"] = True
    return opens
