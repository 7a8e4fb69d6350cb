"""Samples of one GPU that two logs took shortly after each other, as one: what lies between them is no period."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from gpudiag.spans import microseconds
from gpudiag.statement import NOTHING, Statement
from gpudiag.units import SECOND_US

NEAR = 1 / 3
"""Of the shortest step nearby in either log. Steps of a third and two thirds are no gaps, which are of three medians;
and two samples of one log are never near the same one of another."""
ENDLESS = np.iinfo(np.int64).max
AROUND = 2
"""Steps on each side of a sample, the shortest of which is its log's period there."""
_ALIKE = 1.5
"""Periods that differ by less are alike: the log with fractions of seconds then gives the times."""
TAKE_TURNS = 0.1
"""Share of the samples of the first log, within another, from which on what that one adds makes the steps uneven."""
JOINED = (
    "{n_joined:sample lies|samples lie} at most {farthest_s} from one of another log of the same GPU. Each such pair "
    "was counted as one sample, at the time and with the values of the log that samples more often or writes finer "
    "times; the other completes it."
)
_TELLS_OF = {"throttle_known": "throttle_reasons"}
"""What a column says of another one, of whose log it must be."""


class _Log(NamedTuple):
    """The rows of one GPU in one log, sorted by time: where they stand in the stack, when, and the step around each."""

    at: np.ndarray
    time_us: np.ndarray
    step_us: np.ndarray

    def left(self, kept: np.ndarray) -> _Log:
        return _Log(*(column[kept] for column in self))


class _Fold(NamedTuple):
    """Rows of one log of a GPU, those of another that go into them, and how far apart they are."""

    into: np.ndarray
    away: np.ndarray
    apart_us: np.ndarray


class Joined(NamedTuple):
    """Rows of several logs with near ones as one; what is told of it; the GPUs whose logs take turns even so."""

    rows: pd.DataFrame
    told: Statement
    taking_turns: tuple[str, ...]


def joined(stack: pd.DataFrame, part: np.ndarray, unsure: Sequence[str] = ()) -> Joined:
    """Join the rows of several logs; ``part``: the log of each.

    Those of GPUs that are ``unsure`` to be one each stay: they may be of two. Samples at one and the same instant are
    left: they are told as duplicates.
    """
    folds: list[_Fold] = []
    turns: list[str] = []
    for gpu, logs in _several(stack, part):
        left = logs if gpu in unsure else _fold(logs, folds)
        turns += [gpu] * any(_adds(left[0], other) for other in left[1:])
    if not folds:
        return Joined(stack, NOTHING, tuple(turns))
    away = np.concatenate([fold.away for fold in folds])
    kept = np.ones(len(stack), bool)
    kept[away] = False
    rows = stack.assign(**_completed(stack, folds))[kept].reset_index(drop=True)
    farthest_s = max(float(fold.apart_us.max()) for fold in folds) / SECOND_US
    return Joined(rows, Statement(JOINED, n_joined=len(away), farthest_s=farthest_s), tuple(turns))


def _completed(stack: pd.DataFrame, folds: Sequence[_Fold]) -> dict[str, Any]:
    """The columns with what rows that go into others know and these do not."""
    columns: dict[str, Any] = {name: stack[name].array.copy() for name in stack.columns if name not in ("time", "gpu")}
    known = {name: stack[one].notna().to_numpy() for name, one in _TELLS_OF.items() if one in stack}
    for into, away, _ in folds:
        for name, values in columns.items():
            lacks = np.asarray(pd.isna(values[into]))
            if name in known:
                lacks &= ~known[name][into]
            values[into[lacks]] = values[away[lacks]]
    return columns


def _several(stack: pd.DataFrame, part: np.ndarray) -> Iterator[tuple[str, list[_Log]]]:
    """Each GPU of several logs, and these: first the one that gives times and values."""
    gpu, names = pd.factorize(stack["gpu"])
    time_us = microseconds(stack["time"])
    known = stack["time"].notna().to_numpy() & (gpu >= 0)
    group = gpu * (int(part.max()) + 1) + part
    order = np.flatnonzero(known)
    order = order[np.lexsort((time_us[order], group[order]))]
    edges = np.concatenate(([0], np.flatnonzero(np.diff(group[order])) + 1, [len(order)]))
    logs: dict[int, list[_Log]] = {}
    for low, high in pairwise(edges.tolist()):
        own = order[low:high]
        if len(own):
            logs.setdefault(int(gpu[own[0]]), []).append(_Log(own, time_us[own], _steps(time_us[own])))
    yield from ((str(names[code]), _ranked(own)) for code, own in logs.items() if len(own) > 1)


def _steps(time_us: np.ndarray) -> np.ndarray:
    """The shortest step within AROUND of each sample of one log, ENDLESS without any."""
    step = np.diff(time_us)
    beyond = np.full(AROUND, ENDLESS)
    padded = np.concatenate((beyond, np.where(step > 0, step, ENDLESS), beyond))
    return np.lib.stride_tricks.sliding_window_view(padded, 2 * AROUND).min(axis=1)


def _ranked(logs: list[_Log]) -> list[_Log]:
    def rank(log: _Log) -> tuple[int, bool]:
        period = float(np.median(log.step_us))
        return round(np.log(period) / np.log(_ALIKE)), not (log.time_us % SECOND_US).any()

    return sorted(logs, key=rank)


def _fold(logs: Sequence[_Log], folds: list[_Fold]) -> list[_Log]:
    """What is left of the logs when near rows of later ones go into those of earlier ones; ``folds`` then tell it."""
    left = list(logs)
    for later in range(1, len(left)):
        for earlier in range(later):
            nearest, apart_us = _nearest(left[earlier], left[later])
            least_us = np.minimum(left[earlier].step_us[nearest], left[later].step_us)
            near = (apart_us > 0) & (apart_us <= NEAR * least_us) & (least_us < ENDLESS)
            if near.any():
                folds.append(_Fold(left[earlier].at[nearest[near]], left[later].at[near], apart_us[near]))
                left[later] = left[later].left(~near)
    return left


def _adds(first: _Log, other: _Log) -> bool:
    """Whether so many samples of another log lie between those of the first that steps are no longer its own."""
    if not len(other.at):
        return False
    within = (other.time_us > first.time_us[0]) & (other.time_us < first.time_us[-1])
    start, end = (np.searchsorted(first.time_us, other.time_us[at]) for at in (0, -1))
    return bool(np.count_nonzero(within & (_nearest(first, other)[1] > 0)) > TAKE_TURNS * (end - start))


def _nearest(one: _Log, other: _Log) -> tuple[np.ndarray, np.ndarray]:
    """The row of ``one`` nearest to each of ``other``, and how far apart they are."""
    after = np.minimum(np.searchsorted(one.time_us, other.time_us), len(one.at) - 1)
    before = np.maximum(after - 1, 0)
    to_before, to_after = (np.abs(other.time_us - one.time_us[at]) for at in (before, after))
    return np.where(to_before <= to_after, before, after), np.minimum(to_before, to_after)
