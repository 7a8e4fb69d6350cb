"""When jobs of a scheduler ended: as logs say of the job of a training, and as the scheduler says of its jobs."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from gpudiag._run.allocated_gpus import are_jobs
from gpudiag.measures._time.microseconds import microseconds
from gpudiag.measures._time.trial_intervals import intervals_of
from gpudiag.run import Run

CANCELED = ("time_limit", "canceled")
_OF_THE_JOB = re.compile(r"\bJOB \d+ ON \S+ CANCELLED AT|\bCANCELLED AT \S+ DUE TO ")
"""Slurm cancels single steps of a job as well, at somebody's wish; what has a reason befell the whole job."""


def job_ends_us(run: Run) -> np.ndarray:
    """The ends that are known, in microseconds since 1970, in any order."""
    return np.concatenate([_of_logs(run), _of_scheduler(run)])


def _of_logs(run: Run) -> np.ndarray:
    """When each log says that its job was canceled, and the last step above that line."""
    events = run.events[run.events["kind"].isin(CANCELED)].reindex(columns=["time", "detail", "path", "line"])
    events = events[events["detail"].astype(str).str.contains(_OF_THE_JOB)]
    steps = run.steps.reindex(columns=["time", "path", "line"])
    ends = []
    for event in events.itertuples(index=False):
        above = steps["time"][(steps["path"] == event.path) & (steps["line"] < event.line)].dropna()
        ends += [microseconds(each).max() for each in (above, pd.Series([event.time]).dropna()) if len(each)]
    return np.array(ends, np.int64)


def _of_scheduler(run: Run) -> np.ndarray:
    """Ends of trials that are jobs of a scheduler."""
    jobs = are_jobs(run.trials).to_numpy()
    if not jobs.any() or not run.info.clock.joined:
        return np.zeros(0, np.int64)
    intervals = intervals_of(run)
    return microseconds(intervals.loc[intervals["known"].to_numpy() & jobs, "end"])
