"""Forward and backward through time over the phases of trials that share a GPU: exact, many stretches at once."""

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


@dataclass(frozen=True)
class Posterior:
    """Chances given all samples, shape (n_stretches, n_steps) or (lanes, n_stretches, n_steps).

    ``all_start``, ``all_done``: every trial that runs is in that phase; ``start``, ``work``: the lane's trial is;
    ``stalled``: work has stalled. ``fit``: logarithm of the chance of each stretch's samples, (n_stretches,).
    """

    all_start: np.ndarray
    all_done: np.ndarray
    start: np.ndarray
    work: np.ndarray
    stalled: np.ndarray
    fit: np.ndarray


def smooth(seen: Stretches, chances: Chances) -> Posterior:
    """Forward and backward over every combination of phases of the lanes, and whether work has stalled.

    States: 3 phases a lane, times stalled or not; 2 x 3^lanes in all. Time and memory grow with that number.
    """
    lanes, n, steps = seen.running.shape
    states = _States(lanes, n)
    emit = _emissions(states, seen)
    ends = np.zeros((lanes, n, steps), bool)
    ends[:, :, 1:] = seen.running[:, :, :-1] & ~seen.running[:, :, 1:]
    forward, scale = _forward(states, seen, chances, ends, emit)
    return _backward(states, seen, chances, ends, emit, forward, scale)


class _States:
    """Views into an array (n_stretches, 3, ..., 3, 2) by lane and phase."""

    def __init__(self, lanes: int, n: int) -> None:
        self.lanes, self.n = lanes, n
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

    def column(self, values: np.ndarray) -> np.ndarray:
        """Values of the stretches, to be multiplied with a lane's part."""
        return values.reshape(self.wide)


def _emissions(states: _States, seen: Stretches) -> tuple[np.ndarray, np.ndarray]:
    """Chance of a busy and of an idle sample in each state, shape (1, 3, ..., 3, 2)."""
    works = states.working
    busy = np.stack([np.where(works, 1.0, ODD), np.full(works.shape, ODD)], axis=-1)[None]
    idle = np.stack([np.where(works, ODD / 10, 1.0), np.ones(works.shape)], axis=-1)[None]
    return busy, idle


def _of_step(states: _States, seen: Stretches, emit: tuple[np.ndarray, np.ndarray], j: int) -> np.ndarray:
    held = np.where(states.column(seen.active[:, j])[..., None], emit[0], emit[1])
    return held if seen.seen[:, j].all() else np.where(states.column(seen.seen[:, j])[..., None], held, 1.0)


def _forward(
    states: _States,
    seen: Stretches,
    chances: Chances,
    ends: np.ndarray,
    emit: tuple[np.ndarray, np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:
    """Chance of each state given the samples up to each step (n_steps first), and what each step was scaled by."""
    steps = seen.active.shape[1]
    now = np.zeros(states.shape)
    now.reshape(states.n, -1, 2)[:, -1, 0] = 1.0  # every lane empty, nothing stalled
    out, scale = np.empty((steps, *states.shape)), np.empty((steps, states.n))
    for j in range(steps):
        lift = states.column(chances.lift[:, j])
        for lane in range(states.lanes):
            start, work, done = states.lane(now, lane)
            if j == 0:
                _enter(states, seen, chances, lane, start, work, done)
            elif seen.begins[lane, :, j].any():
                reset = states.column(seen.begins[lane, :, j].astype(float))
                start += reset * (work + done)
                work *= 1 - reset
                done *= 1 - reset
            if ends[lane, :, j].any():
                reset = states.column(ends[lane, :, j].astype(float))
                done += reset * (start + work)
                start *= 1 - reset
                work *= 1 - reset
            begun = start * states.column(chances.begin_work[lane, :, j])
            over = work * states.column(chances.end_work[lane, :, j])
            start -= begun
            work += begun * lift - over
            done += over
        stall, resume = states.column(chances.stall[:, j]), states.column(chances.resume[:, j])
        moved = now[..., 0] * stall - now[..., 1] * resume
        now[..., 0] -= moved
        now[..., 1] += moved
        now *= _of_step(states, seen, emit, j)
        scale[j] = now.reshape(states.n, -1).sum(axis=1)
        now /= states.column(scale[j])[..., None]
        out[j] = now
    return out, scale


def _enter(
    states: _States,
    seen: Stretches,
    chances: Chances,
    lane: int,
    start: np.ndarray,
    work: np.ndarray,
    done: np.ndarray,
) -> None:
    """The phases of the trials that run at the left border."""
    runs = states.column(seen.running[lane, :, 0].astype(float))
    working = states.column(np.where(seen.begins[lane, :, 0], 0.0, chances.begun[lane]))
    start += runs * (1 - working) * done
    work += runs * working * done
    done *= 1 - runs


def _backward(
    states: _States,
    seen: Stretches,
    chances: Chances,
    ends: np.ndarray,
    emit: tuple[np.ndarray, np.ndarray],
    forward: np.ndarray,
    scale: np.ndarray,
) -> Posterior:
    """The chances given all samples, from the last step to the first."""
    lanes, n, steps = seen.running.shape
    all_start, all_done, stalled = np.zeros((n, steps)), np.zeros((n, steps)), np.zeros((n, steps))
    start, work = np.zeros((lanes, n, steps)), np.zeros((lanes, n, steps))
    ahead = np.ones(states.shape)
    for j in range(steps - 1, -1, -1):
        held, ahead = _normed(states, forward[j], ahead)
        runs = seen.running[:, :, j]
        all_start[:, j] = _all_in(states, held, START, runs)
        all_done[:, j] = _all_in(states, held, DONE, runs)
        for lane in range(lanes):
            parts = states.lane(held, lane)
            start[lane, :, j] = parts[START].reshape(n, -1).sum(axis=1) * runs[lane]
            work[lane, :, j] = parts[WORK].reshape(n, -1).sum(axis=1) * runs[lane]
        stalled[:, j] = held[:, states.working, 1].sum(axis=1)
        ahead = ahead * _of_step(states, seen, emit, j)
        stall, resume = states.column(chances.stall[:, j]), states.column(chances.resume[:, j])
        change = ahead[..., 1] - ahead[..., 0]
        ahead[..., 0] += change * stall
        ahead[..., 1] -= change * resume
        lift = states.column(chances.lift[:, j])
        for lane in range(lanes - 1, -1, -1):
            first, middle, last = states.lane(ahead, lane)
            first += (middle * lift - first) * states.column(chances.begin_work[lane, :, j])
            middle += (last - middle) * states.column(chances.end_work[lane, :, j])
            for mask, source in ((ends[lane, :, j], last), (seen.begins[lane, :, j] & (j > 0), first)):
                if mask.any():
                    kept, put = states.column(1.0 - mask), states.column(mask.astype(float)) * source
                    for part in (first, middle, last):
                        if part is not source:
                            part *= kept
                            part += put
    return Posterior(all_start, all_done, start, work, stalled, np.log(scale).sum(axis=0))


def _normed(states: _States, forward: np.ndarray, ahead: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The chances of the states, which add up to 1, and ``ahead`` in proportion to them.

    States that cannot be (a trial in an empty lane) may fit what follows far better: they are bounded, not followed.
    """
    held = forward * ahead
    total = states.column(held.reshape(states.n, -1).sum(axis=1))[..., None]
    total = np.where(total > 0, total, 1.0)
    return held / total, np.minimum(ahead / total, 1e100)


def _all_in(states: _States, held: np.ndarray, phase: int, runs: np.ndarray) -> np.ndarray:
    """Chance that every lane in which a trial runs is in a phase; 0 where none runs."""
    part = held.sum(axis=-1)
    for lane in range(states.lanes - 1, -1, -1):
        whole = part.sum(axis=-1)
        part = np.where(runs[lane].reshape((states.n, *(1,) * lane)), part[..., phase], whole)
    return np.where(runs.any(axis=0), part, 0.0)
