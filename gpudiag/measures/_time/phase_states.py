"""The phases of trials that share a GPU as states: what is seen of each step, and what happens in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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


class States:
    """Views into an array (n_stretches, 3, ..., 3, 2) by lane and phase."""

    def __init__(self, lanes: int, n: int, steps: int) -> None:
        self.lanes, self.n, self.steps = lanes, n, steps
        self.shape = (n, *(3,) * lanes, 2)
        self.wide = (n, *(1,) * lanes)
        phases = np.indices((3,) * lanes)
        self.working = (phases == WORK).any(axis=0)
        self.places: list[list[Any]] = [
            [(slice(None),) * (lane + 1) + (phase,) for phase in (START, WORK, DONE)] for lane in range(lanes)
        ]

    def lane(self, array: np.ndarray, lane: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The parts in which the lane's trial is in each phase."""
        start, work, done = self.places[lane]
        return array[start], array[work], array[done]

    def columns(self, values: np.ndarray) -> list[np.ndarray]:
        """Values of the stretches by step, each to be multiplied with a lane's part."""
        return list(np.ascontiguousarray(values.T, float).reshape(self.steps, *self.wide))

    def columns_where(self, masks: np.ndarray) -> list[np.ndarray | None]:
        """Masks of the stretches by step as 0 and 1; None where they hold for none."""
        return [column if column.any() else None for column in self.columns(masks)]


@dataclass(frozen=True)
class Moves:
    """What happens in each step, made ready for arrays of states: by lane and step, or by step."""

    begin_work: list[list[np.ndarray]]
    end_work: list[list[np.ndarray]]
    begins: list[list[np.ndarray | None]]
    """Stretches in which another trial begins; never in the first step, which nothing goes before."""
    ends: list[list[np.ndarray | None]]
    stall: list[np.ndarray]
    resume: list[np.ndarray]
    lift: list[np.ndarray]
    kinds: np.ndarray
    fits: np.ndarray
    """Chance of an idle sample, a busy one and none in each state; ``kinds`` says which comes, by step."""

    @classmethod
    def of(cls, states: States, seen: Stretches, chances: Chances) -> Moves:
        ends, begins = np.zeros_like(seen.running), seen.begins.copy()
        ends[:, :, 1:] = seen.running[:, :, :-1] & ~seen.running[:, :, 1:]
        begins[:, :, 0] = False
        return cls(
            [states.columns(lane) for lane in chances.begin_work],
            [states.columns(lane) for lane in chances.end_work],
            [states.columns_where(lane) for lane in begins],
            [states.columns_where(lane) for lane in ends],
            states.columns(chances.stall),
            states.columns(chances.resume),
            states.columns(chances.lift),
            np.where(seen.seen, seen.active, 2).T.astype(int),
            _fits(states),
        )


def _fits(states: States) -> np.ndarray:
    """Chance of an idle sample, of a busy one, and of none, in each state: shape (3, 3, ..., 3, 2)."""
    works = states.working
    idle = np.stack([np.where(works, ODD / 10, 1.0), np.ones(works.shape)], axis=-1)
    busy = np.stack([np.where(works, 1.0, ODD), np.full(works.shape, ODD)], axis=-1)
    return np.stack([idle, busy, np.ones(idle.shape)])
