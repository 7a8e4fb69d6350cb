"""What lines state of the time of their steps, as the time of the steps between one line and the next."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gpudiag.measures._steps.lines import floats, meant_of
from gpudiag.measures._steps.places import spacing_of

AROUND = 5
"""Lines whose median shows the usual time of a step: up to two of them may hold an evaluation."""

NO_TIME_S = 1e-9
"""What differs by less is equal, but for the arithmetic."""

OF_EPOCH = ("epoch", "window")
"""Means of which an epoch's first line states nothing of the epoch before."""


def stated_times(
    lines: pd.DataFrame, done: np.ndarray, attempt: np.ndarray, bar: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """By line, of the steps since the one before: how many, the stated time of just these, their stated wait for data,
    their time if a stated mean of others holds for them, and how many over the stated tokens per second.
    """
    step_s, loader_s = floats(lines, "step_s"), floats(lines, "loader_s")
    first, opens = np.append(True, np.diff(attempt) > 0), np.append(True, np.diff(bar) > 0)
    n, spacing = np.append(done[0], np.diff(done)).astype(float), spacing_of(done, attempt)
    usual = n[0] if np.isnan(spacing) else spacing
    step = floats(lines, "step")
    most = np.where(step > 0, np.fmin(step, usual), usual)
    n[first] = np.minimum(np.where(n[first] > 0, n[first], usual), most[first])
    advanced = lines["advanced"].to_numpy(bool)
    goes_on = (attempt > 0) & (floats(lines, "elapsed_s") == 0)
    n[first & ((step == 0) | goes_on)] = 0.0  # a bar is drawn once before its first step
    n[first & advanced] = 1.0
    rest = np.where(opens & ~first, np.maximum(n - step, 0.0), 0.0)  # steps of the epoch before
    rising_s = _rising(lines, opens, loader_s)
    stated, loader = (_stated(lines, n, rest, opens, each_s) for each_s in (step_s, rising_s))
    unknown = (rest > 0) & np.isin(meant_of(lines), OF_EPOCH)  # what they take is not what the line states
    loader = np.where(np.isnan(loader) & ~unknown, n * loader_s, loader)  # the mean of the last steps stands for all
    if 2 * n[unknown & np.isnan(loader)].sum() > n.sum():
        loader = np.full(len(n), np.nan)  # the waits of few steps are not those of all
    guessed = np.where(np.isnan(stated) & ~unknown, _guessed(lines, n, step_s), stated)
    tokens_s = floats(lines, "tokens_s")
    per_token = np.divide(n, tokens_s, out=np.where(n > 0, np.nan, 0.0), where=tokens_s > 0)
    return n, stated, loader, guessed, per_token


def _rising(lines: pd.DataFrame, opens: np.ndarray, each_s: np.ndarray) -> np.ndarray:
    """Means since an epoch began of which none tells less in all than one before: those of short waits do by rounding,
    which would leave out just the steps that waited least.
    """
    step = floats(lines, "step")
    in_all = pd.Series(each_s * step).groupby(np.cumsum(opens)).cummax().to_numpy()
    return np.divide(in_all, step, out=each_s.copy(), where=(meant_of(lines) == "epoch") & (step > 0))


def _guessed(lines: pd.DataFrame, n: np.ndarray, each_s: np.ndarray) -> np.ndarray:
    """Time of the ``n`` steps of each interval if they took the mean of others that its line states. A line that states
    the time of one step, with an evaluation in it perhaps, says nothing of those before: they take the usual time of
    lines around it.
    """
    of_one = (meant_of(lines) == "step") & (n > 1) & ~np.isnan(each_s)
    around = pd.Series(np.where(of_one, each_s, np.nan)).rolling(AROUND, center=True, min_periods=1).median()
    return np.where(of_one, each_s + (n - 1) * around.to_numpy(), n * each_s)


def _stated(lines: pd.DataFrame, n: np.ndarray, rest: np.ndarray, opens: np.ndarray, each_s: np.ndarray) -> np.ndarray:
    """Stated time of just the ``n`` steps of each interval; NaN where a line states another mean. An epoch's first line
    states nothing of the ``rest`` of the epoch before: that has the pace which the lines of that epoch show, if they
    show it of as many steps.
    """
    meant, step = meant_of(lines), floats(lines, "step")
    so_far = each_s * step  # of the epoch's steps up to here
    since = np.where(opens, (n - rest) * each_s, so_far - np.append(0.0, so_far[:-1]))
    since = np.where(np.abs(since) < NO_TIME_S, 0.0, since)
    opened = np.maximum.accumulate(np.where(opens, np.arange(len(n)), 0))  # the first line of each line's epoch
    shown = np.where((meant == "epoch") & ~opens, step - step[opened], n - rest)
    alike = (meant == "epoch") & ~opens & (meant[opened] == "epoch") & (shown > 0)
    pace_s = np.divide(so_far - so_far[opened], shown, out=each_s.copy(), where=alike)
    rest_s = np.append(0.0, np.where((pace_s[:-1] >= 0) & (rest[1:] <= shown[:-1]), rest[1:] * pace_s[:-1], np.nan))
    rest_s[rest == 0] = 0.0
    out = np.where(meant == "window", (n - rest) * each_s + rest_s, np.nan)
    out = np.where((meant == "step") & (n == 1), each_s, out)
    return np.where((meant == "epoch") & (since >= 0), since + rest_s, out)
