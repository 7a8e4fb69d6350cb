"""What a log tells of trials that share GPUs: the life of each, and how busy a GPU is with so many in training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from gpudiag.errors import NotMeasurable
from gpudiag.forecast.estimate import NAN
from gpudiag.forecast.parallelism.free_gpus import free_gpus
from gpudiag.forecast.parallelism.handover import Handover, handovers
from gpudiag.forecast.parallelism.levels import Levels, measure_levels
from gpudiag.forecast.parallelism.placement import Placement, evenly, usual_placements
from gpudiag.forecast.parallelism.startup_fit import fit_startup
from gpudiag.measures._time.concurrency import count_at
from gpudiag.measures._time.gpu_time import GpuTime, gpu_time
from gpudiag.measures._time.microseconds import SECOND_US
from gpudiag.measures._time.timeline import Intervals, Samples
from gpudiag.measures._time.trial_intervals import need_own_times
from gpudiag.measures._trials.startup import startups
from gpudiag.measures.base import GIVE_TRIALS, RECORD_LONGER, need_columns, need_exact_clock, need_gpu
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import FINISHED

N_BLOCKS = 24
"""Pieces of the log that are resampled whole: longer than a trial, so that neighbours' dependence stays inside."""
N_RESAMPLED = 400
MIN_SEEN = 3
MIN_TRIALS = 5
MAX_UNKNOWN_PCT = 10.0


@dataclass(frozen=True, eq=False)
class ObservedLog:
    """A log as forecasts need it. One row a finished trial in order of start, n in all.

    ``key`` (study, trial), ``start_s`` and ``end_s`` (since ``first_us``, the first start), ``state``, ``gpu``
    (position among ``gpus``, of which the last ``n_idle`` are free and had no trial; ``not_free``: why others are not
    among them), ``startup_s`` (seen, else the typical one, at most the trial's life), ``level_s`` (n, levels): seconds
    of its work with 0, 1 ... trials in training on its GPU (column 0 is 0). ``levels`` says how busy a GPU was with how
    many in training, of all GPUs together, in ``N_BLOCKS`` blocks of time. ``handover``: the gaps, and how many workers
    when; ``placements``: by their number, the workers of each GPU that most of its time had.
    ``startup_how``: 'seen', or 'fitted' where no start-up could be seen by itself. ``span_s`` is first start to last
    end. ``busy_s``: busy GPU seconds while trials ran, over ``seen_s``, in each block by the number of
    workers then, shape (N_BLOCKS, workers + 1); ``held_s``: the same time with the gaps between trials.
    """

    key: pd.MultiIndex
    first_us: int
    start_s: np.ndarray
    end_s: np.ndarray
    state: np.ndarray
    gpu: np.ndarray
    gpus: tuple[str, ...]
    n_idle: int
    not_free: str
    startup_s: np.ndarray
    startup_how: str
    n_startups: int
    level_s: np.ndarray
    levels: Levels
    handover: Handover
    placements: Mapping[int, Placement]
    span_s: float
    busy_s: np.ndarray
    seen_s: np.ndarray
    held_s: np.ndarray

    @property
    def n(self) -> int:
        """Number of finished trials."""
        return len(self.start_s)

    @property
    def length_s(self) -> np.ndarray:
        """Each trial's life."""
        return self.end_s - self.start_s

    def startup_share(self, trials: np.ndarray) -> float:
        """F: the share of the worker time of these trials spent in start-up."""
        return float(self.startup_s[trials].sum() / self.length_s[trials].sum())

    def placed(self, workers: int) -> Placement:
        """The workers of each GPU while there were so many; evenly over those of the trials where the log shows no
        usual placement.
        """
        own = self.placements.get(workers) or evenly(workers, len(self.gpus) - self.n_idle)
        return (*own, *(0,) * self.n_idle)

    def busy_share(self, workers: int, blocks: np.ndarray) -> float:
        """u_b: utilization of the GPUs of the trials while these ran in these blocks and there were so many workers,
        0..1; NaN unobserved.
        """
        inside = workers < self.seen_s.shape[1] and self.seen_s[blocks, workers].sum() > 0
        return float(self.busy_s[blocks, workers].sum() / self.seen_s[blocks, workers].sum()) if inside else NAN

    def used_share(self, workers: int, blocks: np.ndarray) -> float:
        """Utilization of all GPUs by trials in these blocks with so many workers, gaps included, 0..1; NaN
        unobserved.
        """
        if workers >= self.held_s.shape[1] or not self.held_s[blocks, workers].sum() > 0:
            return float("nan")
        of_used = float(self.busy_s[blocks, workers].sum() / self.held_s[blocks, workers].sum())
        return of_used * (1 - self.n_idle / len(self.gpus))

    def least_busy_share(self, workers: int, blocks: np.ndarray) -> float:
        """The lower end of a 90 % interval of u_b, by resampling blocks: a future has other trials; NaN unobserved."""
        if np.isnan(self.busy_share(workers, blocks)):
            return NAN
        busy, seen = self.busy_s[blocks, workers], self.seen_s[blocks, workers]
        used = np.flatnonzero(seen > 0)
        picks = used[np.random.default_rng(11).integers(len(used), size=(N_RESAMPLED, len(used)))]
        return float(np.percentile(busy[picks].sum(axis=1) / seen[picks].sum(axis=1), 5.0))


@memoized
def observe(run: Run) -> ObservedLog:
    """Read a run for forecasts.

    Raises NotMeasurable: without trial times, without utilization on the trials' clock, with fewer than five finished
    trials, or where the GPU of more than a tenth of the trials is unknown and there are several.
    """
    need_columns(run.trials, ("state",), "trials table", GIVE_TRIALS)
    need_gpu(run, "util_pct")
    need_own_times(run)
    time = gpu_time(run)
    if not time.joined or not any(len(part.time_us) > 1 for part in time.samples.values()):
        raise NotMeasurable(
            "Trials and GPU telemetry share no time, so that nothing says how busy a GPU was with how many trials.",
            "Record the GPU while the trials run, and state the time zone of both.",
        )
    need_exact_clock(run)
    rows = time.trials.rows
    finished = rows["outcome"].isin(FINISHED).to_numpy() & ~rows["open"].to_numpy()
    if finished.sum() < MIN_TRIALS:
        raise NotMeasurable(
            "Only {n_finished:trial} finished; a forecast needs {n_needed}.",
            "Come back when more have finished.",
            n_finished=int(finished.sum()),
            n_needed=MIN_TRIALS,
        )
    _need_places(time)
    return _observe(run, time, finished)


def _need_places(time: GpuTime) -> None:
    if time.where is None:
        return
    several = time.where.trials["n_gpus"].iloc[time.trials.rows.index] > 1
    if 100 * several.mean() > MAX_UNKNOWN_PCT:
        raise NotMeasurable(
            "{n:trial} of {of} ran on several GPUs each, so that none of these shows how busy one trial keeps a GPU.",
            "Start one more worker for ten trials, and compare the trials per hour.",
            n=int(several.sum()),
            of=len(several),
        )
    unknown = time.where.trials["gpu"].iloc[time.trials.rows.index].isna().mean() * 100
    if unknown <= MAX_UNKNOWN_PCT:
        return
    if time.where.n_elsewhere:
        raise NotMeasurable(
            "{n_elsewhere:trial} of {n} left no mark on a recorded GPU while others did: they seem to have run on "
            "another host or GPU, so that the load of all workers is not known.",
            "Give the telemetry of every host, or store the GPU with each trial.",
            n_elsewhere=time.where.n_elsewhere,
            n=time.where.n_trials,
        )
    if len(time.places) > 1:
        raise NotMeasurable(
            "Nobody knows on which of {n_gpus:GPU} {unknown_pct} of the trials ran, so that no GPU's load can be told "
            "from its number of trials.",
            "Store the GPU with each trial: trial.set_user_attr('gpu', os.environ.get('CUDA_VISIBLE_DEVICES')).",
            n_gpus=len(time.places),
            unknown_pct=unknown,
        )


def _observe(run: Run, time: GpuTime, finished: np.ndarray) -> ObservedLog:
    likeliest = time.likeliest()
    sampled = {gpu for gpu, samples in time.samples.items() if len(samples.time_us) > 1}  # a log may name others
    used = {gpu: places for gpu, places in likeliest.items() if len(places) and gpu in sampled}
    if not used:
        raise NotMeasurable("No trial is known to have run on a GPU that was sampled.", RECORD_LONGER)
    trials = time.trials
    n = len(trials.start_us)
    typical, own, how = _startups(run, time, used)
    length_us = trials.end_us - trials.start_us
    startup_us = np.minimum(np.where(np.isnan(own), typical, own) * SECOND_US, length_us).astype(np.int64)
    trains_us = trials.start_us + startup_us
    top = max(_peak(trains_us[p], trials.end_us[p]) for p in used.values())
    level_s = np.zeros((n, top + 1))
    levels = Levels.empty(N_BLOCKS, top + 1)
    gpu = np.zeros(n, np.int64)
    first, last = int(trials.start_us.min()), int(trials.end_us[finished].max())
    edges = np.linspace(first, last, N_BLOCKS + 1)[1:-1]
    handover = handovers(run, trials)
    total = np.zeros((3, N_BLOCKS, handover.workers.max() + 1))
    for index, (name, places) in enumerate(used.items()):
        gpu[places] = index
        start, end = trains_us[places], trials.end_us[places]
        level_s[places] += _time_by_level(start, end, top)
        samples, lives = time.samples[name], Intervals(trials.start_us[places], trials.end_us[places])
        spread = np.full(1, typical) if how == "fitted" else own[~np.isnan(own)]
        levels += measure_levels(samples, lives, own[places], np.sort(spread), edges, top + 1)
        total += _while_running(samples, lives, handover, edges)
    idle, not_free = free_gpus(run, used)
    order = np.flatnonzero(finished)[np.argsort(trials.start_us[finished], kind="stable")]
    return ObservedLog(
        key=pd.MultiIndex.from_frame(trials.rows[["study", "trial"]].iloc[order]),
        first_us=first,
        start_s=(trials.start_us[order] - first) / SECOND_US,
        end_s=(trials.end_us[order] - first) / SECOND_US,
        state=trials.rows["outcome"].to_numpy(str)[order],
        gpu=gpu[order],
        gpus=(*used, *idle),
        n_idle=len(idle),
        not_free=not_free,
        startup_s=startup_us[order] / SECOND_US,
        startup_how=how,
        n_startups=int((~np.isnan(own)).sum()),
        level_s=level_s[order],
        levels=levels,
        handover=handover,
        placements=usual_placements(run, trials, used, handover),
        span_s=(last - first) / SECOND_US,
        busy_s=total[0],
        seen_s=total[1],
        held_s=total[2],
    )


def _startups(run: Run, time: GpuTime, used: dict[str, np.ndarray]) -> tuple[float, np.ndarray, str]:
    """The typical start-up in seconds, that of each timed trial (NaN unseen), and how they are known."""
    begun = startups(run)
    own = begun.seconds
    if (~np.isnan(own)).sum() >= MIN_SEEN and not np.isnan(begun.median_s):
        return begun.median_s, own, "seen"
    start, end = time.trials.start_us, time.trials.end_us
    parts = [(time.samples[gpu], Intervals(start[own], end[own])) for gpu, own in used.items()]
    return fit_startup(parts), begun.seconds, "fitted"


def _peak(start: np.ndarray, end: np.ndarray) -> int:
    return int(count_at(np.unique(np.concatenate([start, end])), start, end).max())


def _time_by_level(start: np.ndarray, end: np.ndarray, top: int) -> np.ndarray:
    """Seconds of each interval at which 1, 2 ... ``top`` of the intervals were open, shape (n, top + 1)."""
    cuts = np.unique(np.concatenate([start, end]))
    level = count_at(cuts, start, end)
    held = np.zeros((len(cuts), top + 1))
    held[np.arange(len(cuts) - 1), level[:-1]] = np.diff(cuts) / SECOND_US
    held[:, 0] = 0.0
    total = np.vstack([np.zeros(top + 1), np.cumsum(held, axis=0)])
    return np.asarray(total[np.searchsorted(cuts, end)] - total[np.searchsorted(cuts, start)])


def _while_running(samples: Samples, intervals: Intervals, handover: Handover, edges_us: np.ndarray) -> np.ndarray:
    """Busy and observed seconds of one GPU while it had a trial, and all observed ones with workers, shape (3, blocks,
    workers + 1).
    """
    known = ~np.isnan(samples.value)
    time_us, size = samples.time_us[known], int(handover.workers.max()) + 1
    weight = (samples.end_us - samples.start_us)[known] / SECOND_US
    within = weight * (count_at(time_us, intervals.start_us, intervals.end_us) > 0)
    cell = np.searchsorted(edges_us, time_us, "right") * size + handover.workers_at(time_us)
    parts = (within * samples.value[known] / 100, within, weight)
    return np.stack([np.bincount(cell, part, N_BLOCKS * size).reshape(N_BLOCKS, size) for part in parts])
