"""When jobs of a scheduler may have held each GPU: at other times it was nobody's, whatever the telemetry shows."""

from __future__ import annotations

import numpy as np

from gpudiag._run.allocated_gpus import allocated_gpus, are_jobs
from gpudiag.measures._time.microseconds import NEVER, microseconds
from gpudiag.measures._time.span import limits_us
from gpudiag.measures._time.trial_intervals import intervals_of
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.spans import Window, clipped, union


@memoized
def job_spans(run: Run) -> dict[str, list[Window]]:
    """By GPU, in order and apart, none of a GPU on nodes of which no job is listed. Nothing at all where the trials are
    no jobs, or the nodes of one that began are not known.
    """
    allocated = allocated_gpus(run)
    among = allocated.among
    if not run.info.clock.joined or not among or not are_jobs(run.trials).all():
        return {}
    intervals = intervals_of(run)
    began = intervals["start"].notna() & (intervals["state"] != "WAITING")
    rows = np.flatnonzero(began).tolist()
    if not among.keys() >= set(rows):
        return {}
    start = microseconds(intervals.loc[began, "start"])
    end = np.full(len(rows), NEVER)
    ended = intervals.loc[began, "end"]
    end[ended.notna().to_numpy()] = microseconds(ended.dropna())
    spans = dict(zip(rows, zip(start.tolist(), end.tolist(), strict=True), strict=True))
    limits = limits_us(run)
    return {gpu: clipped(union(spans[row] for row in rows if gpu in among[row]), limits) for gpu in allocated.gpus}


def within_jobs(run: Run, gpu: str, times_us: np.ndarray) -> np.ndarray:
    """True for each of the times at which a job may have held the GPU, and at all times where that is not known."""
    if gpu not in job_spans(run):
        return np.ones(len(times_us), bool)
    start, end = np.array(job_spans(run)[gpu], np.int64).reshape(-1, 2).T
    held: np.ndarray = np.searchsorted(start, times_us, "right") > np.searchsorted(end, times_us, "left")
    return held
