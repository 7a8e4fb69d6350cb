"""Which samples of a GPU were taken while it was meant to work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from gpudiag.measures._time.cells import rows_by_gpu
from gpudiag.measures._time.coverage import covered_pct, least_pct
from gpudiag.measures._time.expected import trials_window, with_logs
from gpudiag.measures._time.gpu_time import GpuTime, gpu_time
from gpudiag.measures._time.microseconds import SECOND_US, microseconds
from gpudiag.measures._time.phases import Phases
from gpudiag.measures._time.steady import first_work
from gpudiag.measures._time.timeline import (
    FOREIGN,
    LIKELY,
    NO_TRIAL,
    STARTUP,
    TAIL,
    UNOBSERVED,
    WAITING,
    Samples,
    Timeline,
    narrow,
)
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import IDLE_PCT

ROUNDING = 1e-6


AS_MANY = 1.25
"""Up to so many idle stretches for each trial that may run on a GPU, one of them may belong to each."""


@dataclass(frozen=True)
class WorkSamples:
    """Samples of one GPU in order of time. ``at_work``: a trial was past its start-up and before its tail; surely,
    where what an idle GPU waits for is seen but in single trials, as ``unclear`` has them: idle, and nobody knows why.
    While trials of unknown GPU may run, idle time that may belong to starts and ends is unclear as well.

    Of these ``may_stall`` is what may be a stall as well.

    ``running`` counts the trials on the GPU (0 without trials), rounded up where some may have run there; ``working``
    those of them that are past their start-up and before their tail, where that is seen, and else is the same. Without
    trials, or without a common clock, all time from the first steady to the last activity counts as work and
    ``from_trials`` is False. ``step_us``: median step between samples.
    """

    time_us: np.ndarray
    start_us: np.ndarray
    end_us: np.ndarray
    util_pct: np.ndarray
    at_work: np.ndarray
    running: np.ndarray
    from_trials: bool
    step_us: float
    unclear: np.ndarray
    may_stall: np.ndarray
    working: np.ndarray

    @property
    def weight_s(self) -> np.ndarray:
        """Seconds that each sample stands for."""
        return (self.end_us - self.start_us) / SECOND_US


@dataclass(frozen=True)
class _Doubt:
    """How many trials may have run on a GPU or not, and the sorted times (µs) at which trials may have left it idle."""

    n_trials: int
    changes_us: np.ndarray


@memoized
def work_by_gpu(run: Run) -> dict[str, WorkSamples]:
    """:class:`WorkSamples` of every GPU with at least two samples of its utilization."""
    time = gpu_time(run)
    works = {}
    for gpu, samples in time.samples.items():
        if len(samples.time_us) > 1:
            timeline = time.timelines.get(gpu) if time.joined else None
            sure = _tells(time, gpu)
            work = _work(samples, timeline, _doubt(time, gpu, sure=sure), sure=sure)
            works[gpu] = _told_apart(work, time.phases[gpu]) if gpu in time.phases else work
    return works


def work_without_trials(run: Run) -> dict[str, WorkSamples]:
    """The same of the telemetry alone, as without a common clock."""
    samples = gpu_time(run).samples
    return {gpu: _work(one, None, None, sure=True) for gpu, one in samples.items() if len(one.time_us) > 1}


def _told_apart(work: WorkSamples, phases: Phases) -> WorkSamples:
    """The same with what the phases of single trials tell."""
    may_stall = work.unclear & (phases.chances(work.time_us)[2] > 1 - LIKELY)
    working = np.where(work.running > 0, np.rint(phases.working_at(work.time_us)), 0)
    return replace(work, may_stall=may_stall, working=narrow(working))


def _tells(time: GpuTime, gpu: str) -> bool:
    """Whether what an idle GPU waits for is seen but in single trials: by phases, or as one trial ran at a time; or
    whether no idle time is divided, as clocks may differ.
    """
    line = time.timelines.get(gpu)
    return not time.exact or gpu in time.phases or (line is not None and bool((line.running <= 1).all()))


def _doubt(time: GpuTime, gpu: str, *, sure: bool) -> _Doubt | None:
    """None where phases or doubtful clocks decide, or the GPU of each trial is known. Where placed trials ran one at a
    time, idle time beside one of unknown GPU may be their start-ups as well.
    """
    maybe = time.maybe_on(gpu)
    if not len(maybe.chance) or not time.exact or gpu in time.phases:
        return None
    changes = [maybe.start_us, maybe.end_us]
    if sure:
        placed = time.intervals(gpu)
        changes += [placed.start_us, placed.end_us]
    return _Doubt(len(maybe.chance), np.sort(np.concatenate(changes)))


def _work(samples: Samples, timeline: Timeline | None, doubt: _Doubt | None, *, sure: bool) -> WorkSamples:
    n = len(samples.time_us)
    unclear = np.zeros(n, bool)
    running = np.broadcast_to(np.int32(0), n)
    if timeline is None:
        active = samples.value >= IDLE_PCT
        at_work = np.zeros(n, bool)
        if active.any():
            at_work[first_work(active, samples.start_us, samples.end_us) : np.flatnonzero(active)[-1] + 1] = True
    else:
        at = np.searchsorted(timeline.start_us, samples.time_us, "right") - 1
        inside = (at >= 0) & (samples.time_us < np.append(timeline.end_us, 0)[at])
        cell = np.where(inside, np.append(timeline.cell, UNOBSERVED)[at], UNOBSERVED)
        at_work = ~np.isin(cell, (UNOBSERVED, NO_TRIAL, FOREIGN, STARTUP, TAIL))
        waiting = cell == WAITING
        if sure:  # without phases all that is not plainly start-up or tail is WAITING, and stalls would be lost in it
            unclear = waiting
        if doubt is not None:
            there = np.append(timeline.maybe, 0)[at] > 0 if sure else waiting
            between = _between_trials(waiting & there & (samples.value < IDLE_PCT), samples, doubt)
            unclear = (unclear & ~there) | between
        at_work &= ~unclear
        expected = np.ceil(np.append(timeline.held, 0)[at] - ROUNDING).astype(np.int32)
        running = narrow(np.where(inside, expected, np.int32(0)))
    return WorkSamples(
        samples.time_us,
        samples.start_us,
        samples.end_us,
        samples.value,
        at_work,
        running,
        timeline is not None,
        samples.step_us,
        unclear,
        np.zeros(n, bool),
        running,
    )


def _between_trials(idle: np.ndarray, samples: Samples, doubt: _Doubt) -> np.ndarray:
    """The idle samples that may belong to changes of trials of unknown GPU: all, where there are no more stretches of
    them than such trials, else those of stretches within which, or a sample beside, a trial starts or ends.
    """
    first, last = stretches(idle, samples.start_us, samples.end_us)
    if len(first) <= AS_MANY * doubt.n_trials + 1:
        return idle
    low = np.searchsorted(doubt.changes_us, samples.start_us[first] - samples.step_us)
    high = np.searchsorted(doubt.changes_us, samples.end_us[last] + samples.step_us, "right")
    out = np.zeros(len(idle), bool)
    for begin, end in zip(first[high > low].tolist(), last[high > low].tolist(), strict=True):
        out[begin : end + 1] = True
    return out


def beside_work(run: Run, works: dict[str, WorkSamples], names: Sequence[str]) -> Iterator[dict[str, np.ndarray]]:
    """For each GPU those columns of the telemetry that the run has, at its samples; NaN where unknown. ``works``: some
    of :func:`work_by_gpu`.
    """
    columns = {name: _numbers(run.gpu[name]) for name in names if name in run.gpu}
    rows = _rows_of_work(run) if columns else {}
    for gpu in works:
        yield {name: column[rows[gpu]] for name, column in columns.items()}


def _numbers(values: pd.Series) -> np.ndarray:
    return values.to_numpy() if values.dtype == float else values.to_numpy(float, na_value=np.nan)


@memoized
def _rows_of_work(run: Run) -> dict[str, slice | np.ndarray]:
    """By GPU the row of the telemetry that each sample of :func:`work_by_gpu` is of; a slice where they follow on."""
    time_us, rows = microseconds(run.gpu["time"]), rows_by_gpu(run)  # NaT is the least, and no sample has it
    return {gpu: _rows_at(time_us, rows[gpu], work.time_us) for gpu, work in work_by_gpu(run).items()}


def _rows_at(time_us: np.ndarray, rows: slice | np.ndarray, when_us: np.ndarray) -> slice | np.ndarray:
    """Of the rows of a GPU those of some of its times; of several at one time the last."""
    own = time_us[rows]
    if isinstance(rows, slice):
        if np.array_equal(own, when_us):
            return rows
        rows = np.arange(rows.start, rows.stop)
    order = np.argsort(own, kind="stable")
    return _as_slice(rows[order[np.searchsorted(own[order], when_us, "right") - 1]])


def _as_slice(rows: np.ndarray) -> slice | np.ndarray:
    """The same rows; of GPUs that stand one after the other in the table they need no list."""
    follow = len(rows) and rows[-1] - rows[0] + 1 == len(rows) and (np.diff(rows) == 1).all()
    return slice(int(rows[0]), int(rows[-1]) + 1) if follow else rows


def work_coverage_pct(run: Run, works: dict[str, WorkSamples]) -> float:
    """The least over GPUs of observed time over the span of the trials, or of telemetry and logs without trials."""
    recorded_us = (
        min(int(work.start_us[0]) for work in works.values()),
        max(int(work.end_us[-1]) for work in works.values()),
    )
    window = trials_window(run) or with_logs(run, recorded_us)
    return least_pct(covered_pct(run, gpu, work.start_us, work.end_us, window) for gpu, work in works.items())


def stretches(flag: np.ndarray, start_us: np.ndarray, end_us: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First and last position of each unbroken series of flagged samples; a gap in the record breaks it."""
    if not len(flag):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    joined = np.append(False, end_us[:-1] == start_us[1:])
    begins = flag & ~(np.append(False, flag[:-1]) & joined)
    ends = flag & ~np.append(flag[1:] & joined[1:], False)
    return np.flatnonzero(begins), np.flatnonzero(ends)
