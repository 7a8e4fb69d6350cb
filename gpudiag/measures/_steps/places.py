"""Where in a training its lines stand: steps done, attempts, epochs, and where another training begins."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd

from gpudiag.measures._steps.lines import ends_before, floats, told_of

AT_ONCE = 10
"""Times the usual steps between two lines that no training does within the first second of a bar, or in half the time
that they would take."""


class Places(NamedTuple):
    """By line: steps since the first epoch began, the attempt, the epoch or bar that it belongs to, and how often steps
    were counted anew before it while no line numbered epochs.
    """

    done: np.ndarray
    attempt: np.ndarray
    bar: np.ndarray
    recounted: np.ndarray

    def of(self, own: slice | np.ndarray) -> Places:
        """Those of these lines, attempts from 0."""
        done, attempt, bar, recounted = (values[own] for values in self)
        return Places(done, attempt - attempt[:1], bar, recounted)


def places_of(lines: pd.DataFrame) -> Places:
    """The places of lines of one kind, in their order."""
    step = lines["step"].to_numpy(np.int64)
    total, epoch, elapsed = (floats(lines, name) for name in ("total", "epoch", "elapsed_s"))
    done = np.zeros(len(step))
    attempt, bar, recounted = (np.zeros(len(step), int) for _ in range(3))
    changed = np.append(False, np.diff(total) != 0) & ~np.isnan(total) & ~np.isnan(np.append(np.nan, total[:-1]))
    changed |= ends_before(lines)
    reopened, timed_anew = _reopened(lines, elapsed), epoch_clocks(lines)
    base, tries, bars, counts = 0.0, 0, 0, 0
    if _are_epochs(lines, step):
        total = np.full(len(step), float(step.max()))
    for at in range(len(step)):
        if at and epoch[at] > epoch[at - 1] and step[at] <= step[at - 1]:
            base, bars = base + (total[at - 1] if total[at - 1] >= step[at - 1] else step[at - 1]), bars + 1
        elif at and (step[at] < step[at - 1] or epoch[at] < epoch[at - 1]):
            if epoch[at] <= epoch[at - 1] or not step[at - 1] >= total[at - 1] or changed[at]:
                tries, bars = tries + 1, bars + 1
                base = _base_of(lines, epoch[at], at, done, step)
            else:
                base, bars, counts = base + step[at - 1], bars + 1, counts + 1
        elif timed_anew[at]:
            bars += 1
        elif at and (elapsed[at] < elapsed[at - 1] or reopened[at]):  # another bar goes on where the one before stood
            tries, bars = tries + 1, bars + 1
        done[at], attempt[at], bar[at], recounted[at] = base + step[at], tries, bars, counts
    return Places(done, attempt, bar, recounted)


def _reopened(lines: pd.DataFrame, elapsed: np.ndarray) -> np.ndarray:
    """Lines that begin another file of the log with a clock of its own, which does not go on with that before."""
    undated = lines["time"].isna().to_numpy()
    goes_on = np.diff(elapsed, prepend=np.nan) >= 0
    return np.append(False, np.diff(lines["part"]) != 0) & (undated | np.append(False, undated[:-1])) & ~goes_on


def epoch_clocks(lines: pd.DataFrame) -> np.ndarray:
    """Lines that begin an epoch whose clock begins anew while steps go on, as they do in all epochs of a log: else it
    is a resumption.
    """
    step, epoch, elapsed = (floats(lines, name) for name in ("step", "epoch", "elapsed_s"))
    begins = np.diff(epoch, prepend=np.nan) > 0
    anew = begins & (np.diff(elapsed, prepend=np.nan) < 0) & (np.diff(step, prepend=np.nan) > 0)
    return anew & (begins.sum() > 1) & (anew.sum() == begins.sum())


def _are_epochs(lines: pd.DataFrame, step: np.ndarray) -> bool:
    """Whether steps that are counted anew, with no word on epochs or on how many there are, always end at the same."""
    told = ("epoch", "total")
    ends = np.flatnonzero(np.diff(step) < 0)
    if not len(ends) or any(not np.isnan(floats(lines, name)).all() for name in told):
        return False
    alike = bool((step[ends] == step.max()).all() and (step[ends + 1] <= _stride(np.diff(step))).all())
    return alike and not ends_before(lines)[ends + 1].any() and (len(ends) > 1 or step[-1] == step.max())


def _base_of(lines: pd.DataFrame, epoch: float, at: int, done: np.ndarray, step: np.ndarray) -> float:
    """Steps before the epoch in which a resumed training goes on, as its first attempt counted them."""
    if np.isnan(epoch):
        return 0.0
    before = np.flatnonzero(floats(lines, "epoch")[:at] == epoch)
    return float(done[before[0]] - step[before[0]]) if len(before) else 0.0


def trainings_of(lines: pd.DataFrame, done: np.ndarray, attempt: np.ndarray) -> list[slice]:
    """The lines of each training: what begins at the first step is another, unless the log tells of a resumption, or of
    a failure before the one that it follows had come to its last step. One of another number of steps is another, and
    so is one behind a training that was resumed before: that goes on from a checkpoint, and would not begin anew.
    """
    since, total = told_of(lines), floats(lines, "total")
    whole = done == total  # a line for all of the first epoch
    at_first = whole | (done <= np.nanmax([spacing_of(done, attempt), done[0]]))
    ended = floats(lines, "step") >= total
    resumed = np.array(["resumption" in text for text in since], bool)
    begins = [0]
    for at in (np.flatnonzero(np.diff(attempt) > 0) + 1).tolist():
        if not at_first[at] or resumed[at]:
            continue
        failed = "failure" in since[at] and not ended[at - 1] and not abs(total[at] - total[at - 1]) > 0
        if not failed or resumed[begins[-1] : at].any():
            begins.append(at)
    return [slice(low, high) for low, high in pairwise([*begins, len(lines)])]


def redrawn(lines: pd.DataFrame) -> np.ndarray:
    """Bars that are drawn empty again under the name of the epoch that they have just completed, as Lightning's are."""
    step, total, epoch = (floats(lines, name) for name in ("step", "total", "epoch"))
    empty, last = (step == 0) & (epoch >= 0), 0
    out = np.zeros(len(lines), bool)
    for at in np.flatnonzero(empty).tolist():
        last = at - 1 if at and not out[at - 1] else last
        out[at] = at > 0 and epoch[last] == epoch[at] and step[last] >= total[last] > 0
    return out


def advanced(lines: pd.DataFrame) -> np.ndarray:
    """Bars that are drawn empty before their first step advances them at once to where a training goes on, as Hugging
    Face's are.
    """
    step, elapsed = floats(lines, "step"), floats(lines, "elapsed_s")
    ahead, took_s = np.diff(step, append=np.nan), np.diff(elapsed, append=np.nan)
    known = (ahead > 0) & (took_s > 0)
    in_time = 2 * took_s <= ahead * (np.median(took_s[known] / ahead[known]) if known.any() else 0.0)
    return (step == 0) & (ahead > AT_ONCE * _stride(ahead)) & ((took_s <= 1) | in_time)


def spacing_of(done: np.ndarray, attempt: np.ndarray) -> float:
    """Median number of steps from one line to the next; NaN without two lines of an attempt."""
    return _stride(np.diff(done)[np.diff(attempt) == 0])


def _stride(ahead: np.ndarray) -> float:
    """Median of the steps ahead, those back left out; NaN without any."""
    steps = ahead[ahead > 0]
    return float(np.median(steps)) if len(steps) else np.nan
