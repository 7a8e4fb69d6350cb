"""When jobs ended: as logs say of the job of a training, of its process that died and was resumed later, or of the last
of all its steps, behind which another training began, and as the scheduler says of its jobs.
"""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from gpudiag._run.allocated_gpus import are_jobs
from gpudiag.measures._ends.logged import log_ends
from gpudiag.measures._steps.intervals import step_intervals
from gpudiag.measures._steps.lines_above import last_above
from gpudiag.measures._steps.logs import training_logs
from gpudiag.measures._steps.resumptions import resumes
from gpudiag.measures._time.microseconds import microseconds
from gpudiag.measures._time.trial_intervals import intervals_of
from gpudiag.readers._batches.log_lines import ENDINGS
from gpudiag.run import Run
from gpudiag.spans import union

CANCELED = ("time_limit", "canceled")
DIED = tuple(kind for kind in ENDINGS if kind not in CANCELED)
_OF_THE_JOB = re.compile(r"\bJOB \d+ ON \S+ CANCELLED AT|\bCANCELLED AT \S+ DUE TO ")
"""Slurm cancels single steps of a job as well, at somebody's wish; what has a reason befell the whole job."""


def job_ends_us(run: Run) -> np.ndarray:
    """The ends that are known, in microseconds since 1970, in any order."""
    return np.concatenate([_of_logs(run), _of_processes(run), _of_complete(run), _of_scheduler(run)])


def _of_logs(run: Run) -> np.ndarray:
    """When each log says that its job was canceled, and the last step above that line."""
    events = run.events[run.events["kind"].isin(CANCELED)].reindex(columns=["time", "detail", "path", "line"])
    events = events[events["detail"].astype(str).str.contains(_OF_THE_JOB)]
    steps = run.steps.reindex(columns=["time", "path", "line"]).dropna(subset=["time"])
    above = last_above(steps, events)
    return np.concatenate([microseconds(steps["time"].iloc[above[above >= 0]]), microseconds(events["time"].dropna())])


def _of_processes(run: Run) -> np.ndarray:
    """The last step above each error behind which a training was resumed, in the same interval of its steps. What was
    caught or started again within its job is no end of one: there the GPUs are sampled on.
    """
    events = run.events[run.events["kind"].isin(DIED)].reindex(columns=["path", "line"]).dropna()
    if events.empty or not len(lines := training_logs(run).lines):
        return np.zeros(0, np.int64)
    intervals = step_intervals(run)
    resumed = intervals[resumes(intervals)].dropna(subset=["start", "end"])
    lines = lines.sort_values(["log", "part", "line"], kind="stable", ignore_index=True)
    last = np.unique(last_above(lines, events))
    ends = [
        _within(microseconds(own["time"]), resumed[resumed["path"] == log])
        for log, own in lines.iloc[last[last >= 0]].dropna(subset=["time"]).groupby("log")
    ]
    return np.concatenate([np.zeros(0, np.int64), *ends])


def _of_complete(run: Run) -> np.ndarray:
    """The last step of each training that did all of its steps before that of another log began: as much apart as two
    attempts of one.
    """
    ends = log_ends(run) if run.steps["path"].nunique() > 1 else []
    begun = max((end.begun for end in ends if end.begun is not pd.NaT), default=pd.NaT)
    done = [end.time for end in ends if end.all_done and end.time < begun]
    return microseconds(pd.Series(done)) if done else np.zeros(0, np.int64)


def _within(times_us: np.ndarray, intervals: pd.DataFrame) -> np.ndarray:
    """Those of the times at or behind the start of one of the intervals and before its end."""
    spans = union(zip(*(microseconds(intervals[edge]).tolist() for edge in ("start", "end")), strict=True))
    start, end = np.array(spans, np.int64).reshape(-1, 2).T
    found: np.ndarray = times_us[np.searchsorted(start, times_us, "right") > np.searchsorted(end, times_us, "right")]
    return found


def _of_scheduler(run: Run) -> np.ndarray:
    """Ends of trials that are jobs of a scheduler."""
    jobs = are_jobs(run.trials).to_numpy()
    if not jobs.any() or not run.info.clock.joined:
        return np.zeros(0, np.int64)
    intervals = intervals_of(run)
    return microseconds(intervals.loc[intervals["known"].to_numpy() & jobs, "end"])
