"""The course of each training whose log was read: its intervals, and in each the time of its steps and of a pause."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from gpudiag.measures._steps.clocks import WHOLE_S
from gpudiag.measures._steps.intervals import step_intervals
from gpudiag.measures._steps.lines import MIN_LINES
from gpudiag.measures._steps.pace import ENOUGH, pace_s, usual_s
from gpudiag.measures._steps.resumptions import resumes
from gpudiag.measures._steps.standing_apart import least_apart
from gpudiag.measures._steps.whole_time import whole_times
from gpudiag.measures._time.weighted import weighted_quantiles
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import LASTING

MIXED = 4
"""Where fewer than one line in four is of a training with lines enough, they are those of several at once."""
PAUSE_TIMES, STATED_TIMES = 2.0, 1.1
PAUSE_S, PAUSE_STEPS, PAUSE_TICKS = 5.0, 10.0, 5.0
"""An interval holds a pause where it stands apart from the others, with such that took twice the usual time of their
steps, and what it took more is ten steps or five seconds, whichever is less, and five ticks of the clock (defaults
without a published source). Where a line states the time of just these steps, 1.1 times and five ticks are enough: no
guess is needed."""
OFTEN = 0.1
"""Where so many of the intervals stand apart, steps of another kind may come in turn (the last of some micro-batches):
what they take more must be ten steps even if that is more than five seconds."""
TOLD_S, FINE_TOLD_S, TOLD_TICKS = 2.0, 0.2, 2.0
MOST_OTHERS = 0.95
"""Where the log tells of other work in it, it need not stand apart: 1.1 times are enough, with two ticks and more than
19 of 20 others took beyond their steps, or two seconds, which is more than a clock of whole seconds is off. Where lines
state the time of just their steps and the clock has parts of a second, it is a tenth of that."""
ALIKE = 1.5
TURNS = (2, 3)
"""Bars of a training and of its evaluation, and of a test."""
DOWN_S = 30.0
"""A pause as long as this behind a failure is time that it cost, as a resumption's is, though no line says that the
process ended (a default without a published source): less takes a failure that was caught. No end of a job is read
off it."""


@memoized
def courses(run: Run) -> list[pd.DataFrame]:
    """The intervals of each training (rank and trial apart) with lines enough; where lines count steps, those that
    count epochs tell nothing more.

    Columns are those of :func:`step_intervals` and ``each_s`` (time of a step in it), ``told_s`` (the same as its line
    states it, where the clock shows whole seconds and nothing paused), ``usual`` (at pace),
    ``paused_s``, ``open_s`` (what it took more than its steps usually do, where that is a pause or slow steps),
    ``work_s`` (what a stated wait for data is part of), ``usual_s`` (time of a step in all of it),
    ``pace_s`` (around the interval), ``down_s`` (of ``resumed``, what the steps in it leave at that pace) and
    ``again_s`` (time of the repeated steps, at that pace). A pause in which the log tells of a resumption, or a long
    one behind a failure, is in ``resumed``, but for the evaluations and checkpoints in it whose time is stated; the
    steps up to the first line take what that line states. Where the time of most steps is unknown, so is the course.
    Without any, those that state how long a whole training took.
    """
    return [_course(part) for part, enough in _by_training(run) if enough] or whole_times(run)


def left_out(run: Run) -> list[pd.DataFrame]:
    """The intervals of each training with too few lines."""
    return [part for part, enough in _by_training(run) if not enough]


@memoized
def _by_training(run: Run) -> list[tuple[pd.DataFrame, bool]]:
    """The intervals of each training, and whether its lines are enough, by themselves or beside others of its log."""
    intervals = step_intervals(run)
    unit = "step" if (intervals["unit"] == "step").any() else "epoch"
    out = []
    for _, log in intervals[intervals["unit"] == unit].groupby(["path", "rank", "trial"], sort=False, dropna=False):
        parts = [part for _, part in log.groupby("training", sort=False)]
        together = len(log) >= MIN_LINES * sum(map(_n_attempts, parts))
        long = [together or len(part) >= MIN_LINES * _n_attempts(part) for part in parts]
        mixed = MIXED * sum(len(part) for part, enough in zip(parts, long, strict=True) if enough) < len(log)
        for part, enough in zip(parts, long, strict=True):
            out.append((part, enough and not mixed and has_pace(part) and float(part["took_s"].sum()) > 0))
    return out


def has_pace(part: pd.DataFrame) -> bool:
    """Whether the time of most steps is known, by timestamps or otherwise, and it is that of one kind of steps."""
    n = part["n"].to_numpy(float)
    known = part["took_s"].notna().to_numpy()
    return (2 * n[known].sum() >= n.sum() or bool(part["end"].notna().any())) and not _takes_turns(part[known])


def _takes_turns(part: pd.DataFrame) -> bool:
    """Whether bars that nothing names or numbers are of two kinds in turn: every second or third is slower than all of
    the others, as where a bar of the training and one of its evaluation have as many steps.
    """
    by_bar = part.groupby("recounted")[["took_s", "n"]].sum()
    each_s = (by_bar["took_s"] / by_bar["n"]).to_numpy()
    for n_kinds in TURNS:
        turns = [each_s[at::n_kinds] for at in range(n_kinds)]
        slow = max(range(n_kinds), key=lambda at: float(np.median(turns[at])) if len(turns[at]) else 0.0)
        others = np.concatenate([turn for at, turn in enumerate(turns) if at != slow])
        if len(each_s) >= 2 * n_kinds - 1 and turns[slow].min() >= ALIKE * others.max():
            return True
    return False


def _n_attempts(part: pd.DataFrame) -> int:
    """Where every few lines begin again, they are those of several trainings."""
    return int(part["attempt"].max()) + 1


def _course(part: pd.DataFrame) -> pd.DataFrame:
    """What a line states of its own steps is their time, with what such lines usually leave out, and the rest of the
    interval a pause. Where it states none, or one that holds other work of which the log tells, the interval holds a
    pause if it took far longer than its steps do around it. A longer wait for data that the line states is no pause,
    unless the log tells of other work there.
    """
    took, as_stated, n, apart = (part[name].to_numpy(float) for name in ("took_s", "stated_s", "n", "apart_s"))
    took = took - apart
    first, tick_s = part["first"].to_numpy(), float(part["tick_s"].iloc[0])
    coarse = tick_s >= WHOLE_S
    attempt, between = part["attempt"].to_numpy(), part["resumed"].to_numpy()  # between the lines of two attempts
    took = np.where(first & np.isnan(took) & (attempt == 0), as_stated, np.where(between > 0, np.nan, took))
    steps = np.where(n > 0, n, np.nan)  # a bar that is drawn anew has none: all the time before it is a pause
    inner = ~np.isnan(took) & ~first
    timed = inner & (n > 0)
    told = (part["since"] != "").to_numpy()
    alone = timed & ~told  # with nothing but steps
    lasted = part[[f"{work}_s" for work in LASTING]].sum(axis=1).to_numpy() - apart
    net = _of_known_work(timed, alone, took, lasted) & _by_clock(took, part["alike_s"].to_numpy(float))
    bare = np.where(net, took - lasted, took)
    shown = alone if alone.sum() >= ENOUGH else timed
    whole_s = usual_s(bare[shown], n[shown], coarse=coarse)
    step_s = whole_s if part["unit"].iloc[0] == "step" else np.inf
    near_s = pace_s(bare, n, _at_pace(shown, bare, n, whole_s, step_s, tick_s), coarse=coarse)
    stated = np.where(told & _holds_more(part, as_stated, took, n * near_s, step_s, tick_s), np.nan, as_stated)
    silent = np.isnan(stated)
    left_out_s = _left_out_s(shown & ~silent & ~part["opens"].to_numpy(), took - stated, n)
    late_s = np.where(told, 0.0, _late_s(part["loader_s"].to_numpy(float), n, shown))
    at_pace_s = np.where(late_s > 0, np.minimum(n * near_s + late_s, took), n * near_s)
    own = np.where(silent, at_pace_s, np.minimum(stated + n * left_out_s, took))
    stands, far = np.zeros((2, len(took)), bool)
    for same, times, of_step_s in ((silent, PAUSE_TIMES, step_s), (~silent, STATED_TIMES, 0.0)):
        long = _long(inner & ~told & same, took, own, times, of_step_s, tick_s)
        stands, far = stands | long.apart, far | long.far
    usual_more_s = float(np.quantile((took - own)[alone], MOST_OTHERS)) if alone.sum() >= ENOUGH else np.inf
    most_s = np.where(~silent & (not coarse), FINE_TOLD_S, TOLD_S)
    enough = np.minimum(most_s, max(TOLD_TICKS * tick_s, usual_more_s))
    named = inner & told & (took - own >= enough) & (took >= np.where(net, 1.0, STATED_TIMES) * own)
    slow = _slow_steps(far & silent & ~told & (n > 0), took / steps)
    paused = (stands | named) & ~slow
    pause = np.where(paused, took - own, 0.0)
    failed = part["since"].str.contains("failure", regex=False).to_numpy() & (took - own >= DOWN_S) & (n > 0)
    failed &= part["recounted"].diff().fillna(0).eq(0).to_numpy()
    resumed = paused & (resumes(part) | failed)
    pace = np.nan_to_num(near_s)
    gone = np.where(resumed, pause, np.maximum(between - n * pace, 0.0))  # beside what lines state of other work in it
    worked = np.minimum(lasted, gone)
    untimed = np.where(first & (attempt > 0) & np.isnan(took) & ~(between > 0), n, 0.0)  # of which no time is known
    return part.assign(
        took_s=took + apart,
        each_s=(took - pause) / steps,
        told_s=np.where(coarse & ~paused, (stated + n * left_out_s) / steps, np.nan),
        usual=timed & ~paused,
        paused_s=np.where(resumed | (between > 0), worked, pause) + apart,
        open_s=np.where(far & ~paused & ~slow, took - own, 0.0),
        resumed=np.where(resumed, pause, between) - worked,
        down_s=gone - worked,
        again_s=np.maximum(part["repeated"].to_numpy() - untimed, 0.0) * pace,
        work_s=np.where(np.isnan(as_stated), took - np.where(part["end"].isna(), 0.0, pause), as_stated),
        usual_s=whole_s,
        pace_s=near_s,
    )


def _of_known_work(timed: np.ndarray, alone: np.ndarray, took: np.ndarray, lasted: np.ndarray) -> np.ndarray:
    """Where all intervals hold other work, those of which lines state how long it took: the rest is of their steps.
    None where a stated time is longer than its interval, and so passed beside it.
    """
    known = timed & (lasted > 0)
    return known if alone.sum() < ENOUGH and (lasted[known] < took[known]).all() else np.zeros(len(timed), bool)


def _by_clock(took: np.ndarray, alike: np.ndarray) -> bool:
    """Whether any clock tells the time of the intervals, and not just what lines state of steps: whether that holds
    other work is open.
    """
    known = ~np.isnan(took) & ~np.isnan(alike)
    return not (known.any() and np.isclose(took[known], alike[known]).all())


def _at_pace(
    shown: np.ndarray, took: np.ndarray, n: np.ndarray, whole_s: float, step_s: float, tick_s: float
) -> np.ndarray:
    """Of the intervals that show what is usual, all but those with a pause by what is usual in all of the training."""
    out = shown.copy()
    took, n = took[shown], n[shown]
    far = _long(np.ones(len(n), bool), took, n * whole_s, PAUSE_TIMES, step_s, tick_s).apart
    out[shown] = ~far | _slow_steps(far, took / n)
    return out


class _Long(NamedTuple):
    """Intervals that took far longer than their steps, and which of them do so ``apart`` from the others."""

    far: np.ndarray
    apart: np.ndarray


def _long(asked: np.ndarray, took: np.ndarray, own: np.ndarray, times: float, step_s: float, tick_s: float) -> _Long:
    """Of those that are asked of, beside what is their steps' ``own``. ``step_s``: of a step, infinite where any time
    may be of another kind of work, 0 where what is their own is stated.
    """
    with_steps = asked & (own > 0)
    ratio = np.divide(took, own, out=np.ones(len(took)), where=with_steps)
    least = least_apart(ratio[with_steps], tick_s / own[with_steps], times)
    apart = asked & ((ratio >= least) | (own == 0))
    often = apart.sum() >= OFTEN * asked.sum() and step_s < np.inf
    enough_s = PAUSE_STEPS * step_s if often else min(PAUSE_S, PAUSE_STEPS * step_s)
    enough = asked & (took - own >= max(enough_s, PAUSE_TICKS * tick_s))
    return _Long(enough & (apart | (took >= times * own)), enough & apart)


def _holds_more(
    part: pd.DataFrame, stated: np.ndarray, took: np.ndarray, steps_s: np.ndarray, step_s: float, tick_s: float
) -> np.ndarray:
    """Where a stated time is far beyond that of its steps and leaves nothing of the interval, as nanoGPT's times do,
    which hold an evaluation. An epoch's first line states its own time alone.
    """
    enough_s = max(min(PAUSE_S, PAUSE_STEPS * step_s), PAUSE_TICKS * tick_s)
    far = (stated - steps_s >= enough_s) & (stated >= PAUSE_TIMES * steps_s)
    all_of_it = (took - stated < TOLD_TICKS * tick_s) | (took < STATED_TIMES * stated)
    return far & all_of_it & ~part["opens"].to_numpy()


def _left_out_s(inside: np.ndarray, left_s: np.ndarray, n: np.ndarray) -> float:
    """What stated times usually leave out of a step, by intervals within an epoch: others hold what is between two."""
    if inside.sum() < ENOUGH:
        return 0.0
    (middle_s,) = weighted_quantiles(left_s[inside] / n[inside], n[inside], (0.5,))
    return max(middle_s, 0.0)


def _late_s(loader_s: np.ndarray, n: np.ndarray, shown: np.ndarray) -> np.ndarray:
    """Stated wait for data of each interval beyond the usual; 0 where none is stated."""
    known = shown & ~np.isnan(loader_s)
    (usual_s,) = weighted_quantiles(loader_s[known] / n[known], n[known], (0.5,))
    return np.maximum(np.nan_to_num(loader_s - n * usual_s), 0.0)


def _slow_steps(slow: np.ndarray, each_s: np.ndarray) -> np.ndarray:
    """Of intervals that took longer than usual, those in a row of three or more of which most are as slow as each
    other, but for any that is slower still.
    """
    out = np.zeros(len(slow), bool)
    edges = np.flatnonzero(np.diff(slow.astype(np.int8), prepend=0, append=0))
    for low, high in edges.reshape(-1, 2).tolist():
        times = each_s[low:high] / np.median(each_s[low:high])
        n_alike = ((times <= ALIKE) & (times >= 1 / ALIKE)).sum()
        out[low:high] = (times <= ALIKE) & (n_alike >= max(ENOUGH, 0.8 * len(times)))
    return out
