"""Whether a file goes on with the training of another."""

from __future__ import annotations

import math
from enum import Enum
from typing import NamedTuple

import numpy as np
import pandas as pd

from gpudiag.measures._steps.log_files import LogFile, Place, Writer, WrittenSteps, is_rotated, may_be_one

USUAL = 2.0
"""A line comes as usual after the one before up to twice the usual steps or time."""
UNWRITTEN = 10.0
"""Lines that a process which is killed may not have written yet: what it prints is held back."""
STILL_S = 30.0
"""From here on no line for that long between two files is a training that stood still, and no rotated log (a default
without a published source)."""


class Fit(Enum):
    """How a file fits behind another: with the next line in time, by going on, perhaps, or not at all."""

    SEAMLESS = "seamless"
    GOES_ON = "goes_on"
    MAYBE = "maybe"
    NONE = "none"


GOES_ON = frozenset({Fit.SEAMLESS, Fit.GOES_ON})


class _Meeting(NamedTuple):
    """The last line of one file and the first of the other, of one writer. ``ahead``: steps from one to the other;
    ``is_over``: all steps were done; ``is_other``: the number of steps there will be is another.
    """

    before: WrittenSteps
    after: WrittenSteps
    ahead: float
    stride: float
    is_over: bool
    is_first: bool
    is_other: bool


def fit_of(one: LogFile, other: LogFile, trials: pd.DataFrame) -> Fit:
    """How the other file fits behind the one."""
    dated = one.is_dated and other.is_dated
    if (dated and not other.opened >= one.last) or not may_be_one(one.path, other.path):
        return Fit.NONE
    met = _meeting(one, other)
    if met is None:
        return Fit.NONE
    told = other.begins_with
    searched = _is_searched(one, other, met.after.writer, trials)
    if met.is_first:
        begun_anew = not (searched or met.is_over or met.is_other) and _begun_anew(one, told)
        return Fit.MAYBE if begun_anew else Fit.NONE
    if met.is_other:
        return Fit.MAYBE if not searched and "resumption" in told else Fit.NONE
    if met.is_over:
        return Fit.NONE
    if 0 < met.ahead <= USUAL * met.stride and dated and silent_s(one, other) <= USUAL * met.before.between_s:
        return Fit.SEAMLESS
    if searched:
        return Fit.NONE
    if met.ahead > 0:
        far = UNWRITTEN if "resumption" in told else USUAL
        goes_on = met.ahead <= far * met.stride and (dated or "resumption" in told)
    else:
        goes_on = "resumption" in told or (dated and ("failure" in one.behind | told or "checkpoint" in one.told))
    return Fit.GOES_ON if goes_on else Fit.MAYBE


def is_rest(file: LogFile) -> bool:
    """Whether it begins behind the first steps of a training."""
    return any(not _is_first(steps, steps.stride) for steps in file.written.values())


def silent_s(one: LogFile, other: LogFile) -> float:
    """Time from the last of which the one tells to the first timestamp of the other."""
    return float((other.opened - one.closed).astype(np.int64)) / 1e6


def stood_still(one: LogFile, other: LogFile) -> bool:
    """Whether nothing was written between two files for longer than the log usually is silent, and they are not those
    of one program that begins another file when one is full.
    """
    steps = _meeting(one, other)
    if steps is None or not (one.is_dated and other.is_dated) or is_rotated(one.path, other.path):
        return False
    return silent_s(one, other) >= max(STILL_S, _or(USUAL * steps.before.between_s, 0.0))


def _meeting(one: LogFile, other: LogFile) -> _Meeting | None:
    """Where the lines of a writer of both meet; None without one whose lines are of one kind."""
    for writer, after in other.written.items():
        before = one.written.get(writer)
        if before is None or before.kind != after.kind:
            continue
        last, first = before.last, after.first
        stride = max(_or(before.stride, 1.0), _or(after.stride, 1.0))
        return _Meeting(
            before,
            after,
            _ahead(last, first),
            stride,
            is_over=math.isnan(last.epoch) and last.step >= last.total,
            is_first=_is_first(after, stride, before.first.epoch),
            is_other=not math.isnan(last.total + first.total) and last.total != first.total,
        )
    return None


def _ahead(last: Place, first: Place) -> float:
    """Steps from a line to a later one, 0 or less where it goes back."""
    epochs = first.epoch - last.epoch
    if math.isnan(epochs) or epochs == 0:
        return first.step - last.step
    if epochs == 1:
        return first.step + max(_or(last.total - last.step, 0.0), 0.0)
    return math.inf if epochs > 1 else -last.step


def _is_first(steps: WrittenSteps, stride: float, epoch: float = 1.0) -> bool:
    """Whether its first line is of the first steps of a training, whose first epoch is 0 where ``epoch`` is."""
    return not steps.first.epoch > (0 if epoch == 0 else 1) and steps.first.step <= _or(stride, 1.0)


def _begun_anew(one: LogFile, told: set[str]) -> bool:
    """Whether a training from the first step may be the one that stopped in the other file."""
    return "failure" in one.behind or ("resumption" in told and "resumption" not in one.begins_with)


def _is_searched(one: LogFile, other: LogFile, writer: Writer, trials: pd.DataFrame) -> bool:
    """Whether the files are rather those of different trials: there are several, no line names the trial, and none of
    them ran while both files were written.
    """
    if len(trials) < 2 or writer[1] is not None:
        return False
    if not (one.is_dated and other.is_dated):
        return True
    start, end = (trials[name].to_numpy("datetime64[us]") for name in ("start", "end"))
    return not bool(((start <= one.opened) & ((end >= other.last) | np.isnat(end))).any())


def _or(value: float, otherwise: float) -> float:
    return otherwise if math.isnan(value) else value
