"""Where the steps of training logs lie beside the work of GPUs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from gpudiag.readers._steps.step_line import EVALUATIONS
from gpudiag.run import Run
from gpudiag.schema import IDLE_PCT, has_values
from gpudiag.spans import held_within, seconds

PAUSE_TIMES, PAUSE_S = 2.0, 5.0
TOLD_TIMES, TOLD_S = 1.1, 2.0
"""Between two lines there was more than steps where they lie five seconds more than twice as far apart as usual; where
the log tells of other work in between, two seconds more than 1.1 times (as in METHODS 9.1)."""
PERIODS, LINES = 20.0, 3.0
"""A GPU is without work where none is seen for 20 samples, and for the time of three lines (defaults without a
published source): one that waits within its steps works in each of them."""
MISPLACED = 0.1
MISPLACED_S = 60.0
"""From a tenth of the logged steps on, and a minute, something is wrong with the clock (defaults without a published
source)."""


@dataclass(frozen=True)
class Placed:
    """Seconds of logged steps: all, and those on work of GPUs; and of work before and after the logs."""

    logged_s: float
    on_work_s: float
    elsewhere_s: float

    @property
    def misplaced_s(self) -> float:
        return self.logged_s - self.on_work_s

    @property
    def is_wrong(self) -> bool:
        """True where steps lie beside the work, and work beside the steps: one alone may be a missing record."""
        least_s = max(MISPLACED * self.logged_s, MISPLACED_S)
        return self.misplaced_s > least_s and self.elsewhere_s > least_s


def of_one_rank(steps: pd.DataFrame) -> pd.DataFrame:
    """The lines with a timestamp; of ranks, which take their steps together, those of the first."""
    dated = steps[steps["time"].notna()]
    if not has_values(dated, "rank"):
        return dated
    return dated[dated["rank"].isna() | (dated["rank"] == dated["rank"].min())]


def logged_stretches(steps: pd.DataFrame) -> tuple[pd.DataFrame, float]:
    """Starts and ends of steps without a pause, in order, and how far apart lines are; seconds.

    Where in a long interval the pause lies, no line says: the steps in it are taken to follow it. What several kinds of
    lines or logs tell of the same time counts once, and a line on an epoch only where no other tells of steps.
    """
    starts, ends, apart = [], [], []
    for _, log in _on_steps(steps).groupby(["path", "series"], sort=False):
        log = log.sort_values("line", kind="stable")
        at, done = seconds(log["time"]), log["step"].to_numpy(float)
        took, n = np.diff(at), np.diff(done)
        timed = (took > 0) & (n > 0)
        if not timed.any():
            continue
        each_s = float(np.median(took[timed] / n[timed]))
        near = PAUSE_TIMES * np.median(n[timed])  # so few steps of an epoch lie before its first line
        own_s = np.where(n >= 0, n, np.where(done[1:] <= near, done[1:], 0)) * each_s
        told = (log["since"].fillna("") != "").to_numpy()[1:] if "since" in log else np.zeros(len(n), bool)
        longest_s = np.where(told, TOLD_TIMES * own_s + TOLD_S, PAUSE_TIMES * own_s + PAUSE_S)
        broken = np.flatnonzero((n < 0) | (took > longest_s))
        before_s = done[0] * each_s if done[0] <= near else 0.0
        starts += [at[0] - before_s, *np.maximum(at[broken + 1] - own_s[broken], at[broken])]
        ends += [*at[broken], at[-1]]
        apart.append(float(np.median(took[timed])))
    times = [pd.to_datetime(np.round(edge * 1e6).astype("int64"), unit="us", utc=True)
             for edge in _once(np.array(starts), np.array(ends))]  # fmt: skip
    return pd.DataFrame({"start": times[0], "end": times[1]}), max(apart, default=0.0)


def _on_steps(steps: pd.DataFrame) -> pd.DataFrame:
    """The lines without those on epochs and evaluations, in logs that have others."""
    own = steps["unit"].eq("step") & steps["series"].ne(EVALUATIONS) if "unit" in steps else steps["series"].notna()
    several = own & (own.groupby([steps["path"], steps["series"]]).transform("sum") > 1)
    return steps[own | ~several.groupby(steps["path"]).transform("any")]


def _once(starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Stretches in order, with those that overlap as one."""
    if not len(starts):
        return starts, ends
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], np.maximum.accumulate(ends[order])
    opens = np.flatnonzero(np.append(True, starts[1:] > ends[:-1]))
    return starts[opens], ends[np.append(opens[1:] - 1, len(ends) - 1)]


def times_of_work(run: Run, period_s: float, line_s: float) -> np.ndarray:
    """Starts and ends of the times at which any GPU worked, shorter pauses left out; rows of two.

    ``period_s``: from sample to sample, ``line_s``: from line to line of the log.
    """
    longest_s = max(PERIODS * np.nan_to_num(period_s), LINES * line_s)
    active = np.sort(seconds(run.gpu.loc[run.gpu["util_pct"] >= IDLE_PCT, "time"]))
    if not len(active):
        return np.zeros((0, 2))
    cuts = np.flatnonzero(np.diff(active) > longest_s)
    return np.column_stack([active[np.append(0, cuts + 1)], active[np.append(cuts, len(active) - 1)]])


def placed(stretches: pd.DataFrame, offset_s: float, work: np.ndarray) -> Placed:
    """Where the logged steps lie if that is added to their timestamps."""
    start, end = seconds(stretches["start"]) + offset_s, seconds(stretches["end"]) + offset_s
    began, ended = work.T
    logged = held_within(began, ended, np.array([start.min()]), np.array([end.max()]))
    return Placed(
        logged_s=float((end - start).sum()),
        on_work_s=float(held_within(start, end, began, ended).sum()),
        elsewhere_s=float((ended - began).sum() - logged.sum()),
    )
