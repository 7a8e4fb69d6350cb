"""Every timed trial on the worker that it ran in."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gpudiag._run.worker_names import worker_names
from gpudiag.measures._time.microseconds import microseconds
from gpudiag.measures._time.span import limits_us
from gpudiag.measures._time.trial_intervals import intervals_of, is_open
from gpudiag.measures._trials.abandoned import find_open_trials
from gpudiag.measures._trials.outcomes import outcomes_of
from gpudiag.measures._trials.workers import workers_of, workers_over_time
from gpudiag.memo import memoized
from gpudiag.run import Run


@memoized
def placed_trials(run: Run) -> pd.DataFrame:
    """study, trial, state (one of OUTCOMES), start, end, worker, open of every timed trial in order of its start; an
    ``open`` one ends where it most likely did.
    """
    intervals = intervals_of(run)
    columns = ["study", "trial", "state", "start", "end"]
    closed = intervals.loc[intervals["known"], columns].assign(open=False)
    opens = find_open_trials(run)[columns].assign(open=True)
    opens["state"] = outcomes_of(run)[is_open(intervals)].to_numpy()
    both = pd.concat([closed, opens], ignore_index=True)
    both = both.sort_values(["start", "end", "study", "trial"], kind="stable", ignore_index=True)
    names = run.trials[["study", "trial"]].assign(name=worker_names(run))
    name = both[["study", "trial"]].merge(names, how="left", on=["study", "trial"])["name"].to_numpy(object)
    both.insert(5, "worker", workers_of(microseconds(both["start"]), microseconds(both["end"]), name))
    return both


def worker_counts(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Times (µs) from which on a number of workers holds, and the numbers; see :func:`workers_over_time`."""
    placed = placed_trials(run)
    if placed.empty:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    return workers_over_time(*placed_us(run), placed["worker"].to_numpy())


def placed_us(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Start and end of the placed trials, within the window to which the run was narrowed."""
    placed, limits = placed_trials(run), limits_us(run)
    return microseconds(placed["start"]).clip(*limits), microseconds(placed["end"]).clip(*limits)
