"""The GPUs of a run with their memory and trials, ready to be told apart; or why nothing in it is the trials'."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpudiag.forecast.memory.expectation import Board
from gpudiag.forecast.memory.growth import SETTLED_SHARE, measured_growth
from gpudiag.forecast.memory.signal import LATE_S, Memory, idle_level, read_steps
from gpudiag.measures._gpu.marks import STEP_MIB
from gpudiag.measures._time.concurrency import count_at
from gpudiag.measures._time.gpu_samples import samples_by_gpu
from gpudiag.measures._time.microseconds import SECOND_US, microseconds
from gpudiag.measures._time.window import TimedTrials, maybe_by_gpu, places_by_gpu
from gpudiag.measures._trials.abandoned import find_open_trials
from gpudiag.measures.attribution import measure_attribution
from gpudiag.run import Run

Array = np.ndarray

MIN_ENDS = 3
MANY_FALLS = 0.25
"""Falls of memory in use per trial from which it is no running maximum of a shared process (a default without a
published source)."""
MIN_FALLING_SHARE, MANY_FALLING_SHARE = 0.3, 0.8
"""Of the ends apart from others, that must free memory: half do where the next trial takes its own at once (a default
without a published source)."""
ELSEWHERE = (
    "Memory in use falls, but not when trials end, so that no part of it can be given to a trial: the clocks differ, "
    "or something else took the memory; record memory by process."
)
FLAT = (
    "Memory in use hardly rises while trials run, so that no part of it can be given to a trial: they hold no memory "
    "of this GPU, the memory was taken before the first of them, or the log is another job's."
)
UNPLACED = (
    "Memory in use rises while trials run, but no rise can be given to one of them: on which GPU each ran is not "
    "known, or the clocks differ; store the GPU with each trial."
)
SHARED = (
    "Trials share a process, so what a trial frees stays with the process, memory in use is a running maximum, and "
    "nobody can tell one trial's part of it; run each trial in its own process, or store "
    "torch.cuda.max_memory_reserved() with each trial after torch.cuda.reset_peak_memory_stats()."
)


def memories(run: Run, timed: TimedTrials) -> dict[str, tuple[Memory, Array]]:
    """Readings of each GPU with the trials on it, and their positions."""
    where = measure_attribution(run)
    samples = samples_by_gpu(run, "mem_used_mib")
    opens = find_open_trials(run)
    sure_us = timed.end_us.copy()
    sure_us[timed.rows["open"].to_numpy()] = microseconds(opens["last_evidence"])
    unknown = where.trials["gpu"].iloc[timed.rows.index].isna().to_numpy()
    doubtful = sure_us < timed.end_us
    maybe = maybe_by_gpu(timed, where)
    out = {}
    for gpu, known in places_by_gpu(timed, where, list(samples)).items():
        part, places = samples.get(gpu), np.sort(np.append(known, maybe[gpu][0])) if gpu in maybe else known
        if part is None or len(part.time_us) < 2 or not len(places):
            continue
        origin = int(timed.start_us.min())
        seconds = [
            (timestamps - origin) / SECOND_US
            for timestamps in (part.time_us, timed.start_us[places], timed.end_us[places])
        ]
        doubt = doubtful[places]
        if np.average(doubt, weights=np.maximum(seconds[2] - seconds[1], 1e-9)) > 0.5:
            doubt = np.zeros(len(places), bool)  # nothing would be left
        out[gpu] = (
            Memory(seconds[0], part.value, seconds[1], seconds[2], doubt | unknown[places], np.zeros(len(places))),
            places,
        )
    return out


def board(memory: Memory, places: Array) -> Board:
    """The changes of one GPU and the growth of its trials; the baseline is NaN without a reading between trials."""
    baseline = idle_level(memory)
    steps = read_steps(memory, baseline)
    growth = measured_growth(memory, steps, baseline)
    return Board(steps, growth, baseline, places)


def baseline_left(one: Board, peak_mib: Array) -> float:
    """What levels before falls leave when all that their trials held is taken off: the baseline, without idle readings.

    ``peak_mib`` of all trials. NaN below three falls.
    """
    steps = one.steps
    used = steps.falls & ~steps.blind
    share = one.growth.share(steps.young_s)
    held = np.bincount(steps.step, share * peak_mib[one.places[steps.trial]], len(used))
    young = np.bincount(steps.step, share < SETTLED_SHARE, len(used)) > 0
    picked = used & ~young if (used & ~young).sum() >= MIN_ENDS else used
    if picked.sum() < MIN_ENDS:
        return float("nan")
    return max(0.0, float(np.median((steps.above_mib - held)[picked])))


def no_falls(read: Sequence[Memory], boards: Sequence[Board], fall: Array) -> str:
    """Why changes are none of the trials; '' where ends free memory."""
    seen, falling = fall[~np.isnan(fall)], _falls_at_ends(read)
    n_falls = sum(int((np.diff(memory.used_mib) <= -STEP_MIB).sum()) for memory in read)
    share = (seen >= STEP_MIB).mean() if len(seen) >= MIN_ENDS else 1.0
    if share < MIN_FALLING_SHARE or (share < MANY_FALLING_SHARE and falling < 0.5):
        return ELSEWHERE if n_falls >= MANY_FALLS * len(fall) else SHARED
    if sum(int((one.steps.end_step >= 0).sum()) for one in boards) < MIN_ENDS:
        return "Too few readings were taken around the ends of trials."
    if not any(one.growth.whole_mib >= STEP_MIB for one in boards):
        return UNPLACED if any(_rises(memory) for memory in read) else FLAT
    return ""


def _rises(memory: Memory) -> bool:
    """Whether memory in use rises by what a trial takes at the least while trials run, whosever it is."""
    used = memory.used_mib[count_at(memory.time_s, memory.start_s, memory.end_s) > 0]
    return bool(len(used) and np.ptp(used) >= STEP_MIB)


def followed(read: dict[str, tuple[Memory, Array]], boards: Sequence[Board], n_trials: int) -> Array:
    """True for trials that changes were read of, on one GPU without a doubt."""
    times = np.zeros(n_trials)
    for one, (memory, places) in zip(boards, read.values(), strict=True):
        seen = np.bincount(one.steps.trial, minlength=len(places)) > 0
        np.add.at(times, places, np.where(memory.doubtful, np.inf, seen))
    return times == 1


def _falls_at_ends(read: Sequence[Memory]) -> float:
    """Of all that memory in use fell by, the share that fell near the end of a trial; 1 where it never fell."""
    fell = near = 0.0
    for memory in read:
        step = -np.diff(memory.used_mib)
        big = step >= STEP_MIB
        ends = np.sort(memory.end_s)
        low, high = memory.time_s[:-1] - LATE_S, memory.time_s[1:] + memory.period_s
        beside = np.searchsorted(ends, high, "right") > np.searchsorted(ends, low, "left")
        fell, near = fell + float(step[big].sum()), near + float(step[big & beside].sum())
    return near / fell if fell else 1.0


def most_held(boards: Sequence[Board], n_trials: int) -> Array:
    """What each trial may have held at most: all that was in use above the baseline while it ran."""
    out = np.full(n_trials, np.nan)
    for one in boards:
        out[one.places] = one.steps.ceiling_mib - np.nan_to_num(one.baseline_mib)
    return np.maximum(out, 0.0)
