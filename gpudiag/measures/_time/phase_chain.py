"""Forward and backward through time over the phases of trials that share a GPU: exact, many stretches at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpudiag.measures._time.phase_states import DONE, START, WORK, Chances, Moves, States, Stretches


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
    states = States(*seen.running.shape)
    moves = Moves.of(states, seen, chances)
    held, scale = _forward(states, seen, chances, moves)
    _backward(states, moves, held)
    return _posterior(states, seen, held, scale)


def _forward(states: States, seen: Stretches, chances: Chances, moves: Moves) -> tuple[np.ndarray, np.ndarray]:
    """Chance of each state given the samples up to each step (n_steps first), and what each step was scaled by."""
    now = np.zeros(states.shape)
    now.reshape(states.n, -1, 2)[:, -1, 0] = 1.0  # every lane empty, nothing stalled
    out, scale = np.empty((states.steps, *states.shape)), np.empty((states.steps, states.n))
    parts = [states.lane(now, lane) for lane in range(states.lanes)]
    for lane, (start, work, done) in enumerate(parts):
        _enter(states, seen, chances, lane, start, work, done)
        _move_on(moves, 0, lane, start, work, done)
    for j in range(states.steps):
        for lane, (start, work, done) in enumerate(parts if j else ()):
            _move_on(moves, j, lane, start, work, done)
        moved = now[..., 0] * moves.stall[j] - now[..., 1] * moves.resume[j]
        now[..., 0] -= moved
        now[..., 1] += moved
        now *= moves.fits[moves.kinds[j]]
        now.reshape(states.n, -1).sum(axis=1, out=scale[j])
        now /= scale[j].reshape(states.wide)[..., None]
        out[j] = now
    return out, scale


def _enter(
    states: States,
    seen: Stretches,
    chances: Chances,
    lane: int,
    start: np.ndarray,
    work: np.ndarray,
    done: np.ndarray,
) -> None:
    """The phases of the trials that run at the left border."""
    runs = seen.running[lane, :, 0].astype(float).reshape(states.wide)
    working = np.where(seen.begins[lane, :, 0], 0.0, chances.begun[lane]).reshape(states.wide)
    start += runs * (1 - working) * done
    work += runs * working * done
    done *= 1 - runs


def _move_on(moves: Moves, j: int, lane: int, start: np.ndarray, work: np.ndarray, done: np.ndarray) -> None:
    """One lane, one step: a trial begins or ends, start-ups end, and work ends for good."""
    begins, ends = moves.begins[lane][j], moves.ends[lane][j]
    if begins is not None:
        start += begins * (work + done)
        work *= 1 - begins
        done *= 1 - begins
    if ends is not None:
        done += ends * (start + work)
        start *= 1 - ends
        work *= 1 - ends
    begun = start * moves.begin_work[lane][j]
    over = work * moves.end_work[lane][j]
    start -= begun
    work += begun * moves.lift[j] - over
    done += over


def _backward(states: States, moves: Moves, forward: np.ndarray) -> None:
    """From the last step to the first: ``forward`` becomes the chance of each state given all samples."""
    ahead = np.ones(states.shape)
    for j in range(states.steps - 1, -1, -1):
        forward[j], ahead = _normed(states, forward[j], ahead)
        ahead *= moves.fits[moves.kinds[j]]
        change = ahead[..., 1] - ahead[..., 0]
        ahead[..., 0] += change * moves.stall[j]
        ahead[..., 1] -= change * moves.resume[j]
        for lane in range(states.lanes - 1, -1, -1):
            first, middle, last = states.lane(ahead, lane)
            first += (middle * moves.lift[j] - first) * moves.begin_work[lane][j]
            middle += (last - middle) * moves.end_work[lane][j]
            for mask, source in ((moves.ends[lane][j], last), (moves.begins[lane][j], first)):
                if mask is not None:
                    kept, put = 1.0 - mask, mask * source
                    for part in (first, middle, last):
                        if part is not source:
                            part *= kept
                            part += put


def _normed(states: States, forward: np.ndarray, ahead: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The chances of the states, which add up to 1, and ``ahead`` in proportion to them.

    States that cannot be (a trial in an empty lane) may fit what follows far better: they are bounded, not followed.
    """
    held = forward * ahead
    total = held.reshape(states.n, -1).sum(axis=1)
    total = np.where(total > 0, total, 1.0).reshape(states.wide)[..., None]
    return held / total, np.minimum(ahead / total, 1e100)


def _posterior(states: States, seen: Stretches, held: np.ndarray, scale: np.ndarray) -> Posterior:
    """What is asked of the chances of the states (n_steps first)."""
    runs = seen.running.transpose(2, 0, 1)
    flat = (states.steps, states.n, -1)
    in_phase = np.zeros((2, *seen.running.shape))
    for lane in range(states.lanes):
        for phase in (START, WORK):
            part = held[(slice(None), *states.places[lane][phase])].reshape(flat).sum(axis=2)
            in_phase[phase, lane] = (part * runs[:, lane]).T
    return Posterior(
        _all_in(states, held, START, runs).T,
        _all_in(states, held, DONE, runs).T,
        in_phase[START],
        in_phase[WORK],
        held[:, :, states.working, 1].sum(axis=2).T,
        np.log(scale).sum(axis=0),
    )


def _all_in(states: States, held: np.ndarray, phase: int, runs: np.ndarray) -> np.ndarray:
    """Chance (n_steps, n_stretches) that every lane in which a trial runs is in a phase; 0 where none runs."""
    part = held.sum(axis=-1)
    for lane in range(states.lanes - 1, -1, -1):
        whole = part.sum(axis=-1)
        part = np.where(runs[:, lane].reshape((states.steps, states.n, *(1,) * lane)), part[..., phase], whole)
    return np.where(runs.any(axis=1), part, 0.0)
