"""What of a GPU's time was the run's own: in its attempts, while it was there, and of no other study."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpudiag._run.one_study import ANY_GPU
from gpudiag.measures._gpu.gpu_rows import slices
from gpudiag.measures._time.attempts import Activity, Attempts, find_attempts, stretches_seen
from gpudiag.measures._time.cells import cells
from gpudiag.measures._time.expected import logged_window
from gpudiag.measures._time.free_ends import free_ends
from gpudiag.measures._time.job_ends import job_ends_us
from gpudiag.measures._time.job_spans import job_spans
from gpudiag.measures._time.microseconds import microseconds
from gpudiag.measures._time.no_waits import between_jobs
from gpudiag.measures._time.processes import jobs_ran, occupied_by_gpu
from gpudiag.measures._time.timeline import Intervals
from gpudiag.measures._time.trial_intervals import intervals_of
from gpudiag.measures._time.window import timed_trials
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.spans import Window, overlap, union, without


def held_windows(run: Run, gpu: str, windows: Sequence[Window]) -> list[Window]:
    """What of the windows lies in attempts of the run that had the GPU, and where a scheduler tells of its jobs, in one
    that may have had it; without what was of a study that was not chosen, the ends of a record that is longer than the
    training in its log, and the time between it and another job.
    """
    held = attempts(run).held(gpu, windows)
    jobs = job_spans(run).get(gpu)
    held = held if jobs is None else overlap(held, jobs)
    return without(held, union([*of_other_studies(run, gpu), *free_ends(run).windows, *between_jobs(run)]))


@memoized
def of_other_studies(run: Run, gpu: str) -> list[Window]:
    """When trials of studies that were not chosen ran on the GPU, or on one that nothing names."""
    known = run.info.others_at_least_us
    return union([*known.get(ANY_GPU, ()), *known.get(gpu, ())])


@memoized
def attempts(run: Run) -> Attempts:
    """The attempts of a run, by its telemetry, the logs of its trainings and its scheduler; one in most runs."""
    if run.gpu.empty:
        return Attempts()
    samples = cells(run)
    start, end = samples["start_us"].to_numpy(), samples["end_us"].to_numpy()
    recorded = {gpu: stretches_seen(start[own], end[own]) for gpu, own in slices(samples)}
    trials = timed_trials(run) if run.info.clock.joined and len(run.trials) else None
    ran = None if trials is None else Intervals(trials.start_us, trials.end_us)
    return find_attempts(recorded, _activity(run), ran, lambda low, high: _is_free(run, low, high))


def _is_free(run: Run, low: int, high: int) -> bool:
    """Whether no GPU had a process in its last sample before a silence, and none in its first behind it, and no
    job ran on by a log.
    """
    if len(run.trials) or any(since < high and until > low for since, until in jobs_ran(run)):
        return False
    before, after = [], []
    for one in occupied_by_gpu(run).values():
        behind = int(np.searchsorted(one.start_us, high))
        before += one.free[:behind][-1:].tolist()
        after += one.free[behind:][:1].tolist()
    return bool(before and after) and all(before + after)


def _activity(run: Run) -> Activity:
    """Steps and trials, and ends of jobs, as far as their clock is known to be that of the telemetry."""
    none = np.zeros(0, np.int64)
    steps = microseconds(run.steps["time"].dropna()) if logged_window(run) else none
    joined = run.info.clock.joined and len(run.trials) > 0
    start = end = none
    if joined:
        trials = intervals_of(run)
        start, end = (microseconds(trials.loc[trials["known"], name]) for name in ("start", "end"))
    ends = job_ends_us(run) if len(steps) or joined else none
    return Activity(np.append(steps, start), np.append(steps, end), ends)
