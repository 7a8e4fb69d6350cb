"""The phases of trials that share a GPU as states: what is seen of each step, and what happens in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

START, WORK, DONE = range(3)
"""Phases of a trial: before its first work on the GPU, at work, after its last."""
ODD = 1e-3
"""Chance of a busy sample while no trial is at work: another process, or the second that utilization looks back."""


@dataclass(frozen=True)
class Stretches:
    """Stretches of time, cut into steps, side by side: arrays of shape (n_stretches, n_steps) or with lanes in front.

    In a lane trials follow one another. ``running``: a trial is in the lane; ``begins``: this is its first step.
    ``active``: the GPU is above the idle limit, ``seen``: there is a sample.
    """

    length_s: np.ndarray
    active: np.ndarray
    seen: np.ndarray
    running: np.ndarray
    begins: np.ndarray


@dataclass(frozen=True)
class Chances:
    """What moves a step on: chances (lanes, n_stretches, n_steps) that a start-up ends, and that work ends for good,
    and chances (n_stretches, n_steps) that work begins to stall, and goes on.
    """

    begin_work: np.ndarray
    end_work: np.ndarray
    stall: np.ndarray
    resume: np.ndarray
    begun: np.ndarray
    """Chance (lanes, n_stretches) that the trial that is cut by the left border is at work there."""
    lift: np.ndarray
    """How much likelier what else was seen in a step (n_stretches, n_steps) is if a trial begins to work in it."""


@dataclass(frozen=True)
class Moves:
    """What happens in each step, made ready for arrays of states of shape (n_stretches, rows, columns).

    The phases of the first lanes are the rows, those of the others times stalled or not the columns: lanes move on
    their own, so that a step is ``left.T @ states @ right``, with two small matrices for one that grows with the square
    of the states.
    """

    first: np.ndarray
    """Chance of each state at the left border."""
    left: np.ndarray
    """By step and stretch, from each row to each; turned, as it is multiplied."""
    right: np.ndarray
    """By step and stretch, from each column to each."""
    kinds: np.ndarray
    fits: np.ndarray
    """Chance of an idle sample, a busy one and none in each state; ``kinds`` says which comes, by step and stretch."""

    @property
    def steps(self) -> int:
        """How many there are."""
        return len(self.left)

    @classmethod
    def of(cls, seen: Stretches, chances: Chances) -> Moves:
        lanes, n, _ = seen.running.shape
        rows = (lanes + 1) // 2
        moves = [_of_lane(seen, chances, lane) for lane in range(lanes)]
        enters = [_enter(seen, chances, lane) for lane in range(lanes)]
        awake = np.broadcast_to([[[1.0, 0.0]]], (n, 1, 2))
        first = _product(enters[:rows]).swapaxes(1, 2) @ _product([*enters[rows:], awake])
        left = _product(moves[:rows]).swapaxes(-1, -2)
        right = _product([*moves[rows:], _of_stalls(chances)])
        kinds = np.where(seen.seen, seen.active, 2).T.astype(int)
        return cls(first, np.ascontiguousarray(left), right, kinds, _fits(lanes).reshape(3, *first.shape[1:]))


def _of_lane(seen: Stretches, chances: Chances, lane: int) -> np.ndarray:
    """Chance that the lane goes from each phase to each, by step and stretch: another trial may begin or the last one
    end, then a start-up or work does.
    """
    running, begin, end = seen.running[lane].T, chances.begin_work[lane].T, chances.end_work[lane].T
    out = np.zeros((*running.shape, 3, 3))
    out[..., START, START] = 1 - begin
    out[..., START, WORK] = begin * chances.lift.T
    out[..., WORK, WORK] = 1 - end
    out[..., WORK, DONE] = end
    out[..., DONE, DONE] = 1.0
    begins, ends = seen.begins[lane].T[1:], running[:-1] & ~running[1:]
    for where, phase in ((begins, START), (ends, DONE)):
        out[1:][where] = out[1:][where][:, [phase]]
    return out


def _of_stalls(chances: Chances) -> np.ndarray:
    """The same for going on (0) and stalled (1)."""
    stall, resume = chances.stall.T, chances.resume.T
    return np.stack([np.stack([1 - stall, stall], axis=-1), np.stack([resume, 1 - resume], axis=-1)], axis=-2)


def _enter(seen: Stretches, chances: Chances, lane: int) -> np.ndarray:
    """Chance (n_stretches, 1, 3) of each phase at the left border, before the first step."""
    runs = seen.running[lane, :, 0].astype(float)
    working = np.where(seen.begins[lane, :, 0], 0.0, chances.begun[lane])
    return np.stack([runs * (1 - working), runs * working, 1 - runs], axis=-1)[:, None]


def _product(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Kronecker's product over the last two axes: what moves on its own as one."""
    out = parts[0]
    for part in parts[1:]:
        whole = out[..., :, None, :, None] * part[..., None, :, None, :]
        out = whole.reshape(*out.shape[:-2], out.shape[-2] * part.shape[-2], out.shape[-1] * part.shape[-1])
    return out


def _fits(lanes: int) -> np.ndarray:
    """Chance of an idle sample, of a busy one, and of none, in each state: shape (3, 3, ..., 3, 2)."""
    works = (np.indices((3,) * lanes) == WORK).any(axis=0)
    idle = np.stack([np.where(works, ODD / 10, 1.0), np.ones(works.shape)], axis=-1)
    busy = np.stack([np.where(works, 1.0, ODD), np.full(works.shape, ODD)], axis=-1)
    return np.stack([idle, busy, np.ones(idle.shape)])
