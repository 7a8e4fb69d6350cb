"""Forward and backward through time over the phases of trials that share a GPU: exact, many stretches at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpudiag.measures._time.phase_states import DONE, START, WORK, Chances, Moves, Stretches


@dataclass(frozen=True)
class Posterior:
    """Chances given all samples, shape (n_stretches, n_steps) or (lanes, n_stretches, n_steps).

    ``all_start``, ``all_done``: every trial that runs is in that phase; ``some_work``: one of them at least is at work;
    ``start``, ``work``: the lane's trial is; ``stalled``: work has stalled. ``fit``: logarithm of the chance of each
    stretch's samples, (n_stretches,).
    """

    all_start: np.ndarray
    all_done: np.ndarray
    some_work: np.ndarray
    start: np.ndarray
    work: np.ndarray
    stalled: np.ndarray
    fit: np.ndarray


def smooth(seen: Stretches, chances: Chances) -> Posterior:
    """Forward and backward over every combination of phases of the lanes, and whether work has stalled.

    States: 3 phases a lane, times stalled or not; 2 x 3^lanes in all. Time and memory grow with that number.
    """
    moves = Moves.of(seen, chances)
    held, scale = _forward(moves)
    _backward(moves, held)
    return _posterior(seen, held, scale)


def fit_of(seen: Stretches, chances: Chances) -> np.ndarray:
    """Logarithm of the chance of each stretch's samples, (n_stretches,), as :func:`smooth` has it."""
    return np.asarray(np.log(_forward(Moves.of(seen, chances))[1]).sum(axis=0))


def _forward(moves: Moves) -> tuple[np.ndarray, np.ndarray]:
    """Chance of each state given the samples up to each step (n_steps first), and what each step was scaled by."""
    now, n = moves.first, moves.steps
    out, scale = np.empty((n, *now.shape)), np.empty((n, len(now), 1, 1))
    for left, right, kind, held, total in zip(moves.left, moves.right, moves.kinds, out, scale, strict=True):
        now = np.matmul(left @ now, right, out=held)  # a step of few states takes as long as the calls in it
        now *= moves.fits.take(kind, 0)
        np.add.reduce(now, axis=(1, 2), keepdims=True, out=total)
        now /= total
    return out, scale[:, :, 0, 0]


def _backward(moves: Moves, forward: np.ndarray) -> None:
    """From the last step to the first: ``forward`` becomes the chance of each state given all samples.

    States that cannot be (a trial in an empty lane) may fit what follows far better: they are bounded, not followed.
    """
    moved = moves.left.swapaxes(-1, -2)[::-1], moves.right.swapaxes(-1, -2)[::-1]
    ahead, total = np.ones(forward.shape[1:]), np.empty((forward.shape[1], 1, 1))
    for left, right, kind, held in zip(*moved, moves.kinds[::-1], forward[::-1], strict=True):
        held *= ahead
        np.add.reduce(held, axis=(1, 2), keepdims=True, out=total)
        total[total <= 0] = 1.0
        held /= total
        ahead /= total
        np.minimum(ahead, 1e100, out=ahead)
        ahead *= moves.fits.take(kind, 0)
        ahead = left @ ahead @ right


def _posterior(seen: Stretches, states: np.ndarray, scale: np.ndarray) -> Posterior:
    """What is asked of the chances of the states (n_steps first)."""
    lanes, n, steps = seen.running.shape
    phases = np.indices((3,) * lanes).repeat(2).reshape(lanes, -1)  # of each lane in each state, stalled or not
    works = (phases == WORK).any(axis=0)
    stalled = works & (np.arange(phases.shape[1]) % 2 == 1)
    asked = np.concatenate([phases == START, phases == WORK, works[None], stalled[None]])
    held = states.reshape(steps * n, -1)
    found = (held @ asked.T.astype(float)).reshape(steps, n, -1).T
    all_start, all_done = _all_in(held, phases, seen.running.transpose(0, 2, 1).reshape(lanes, -1)).reshape(2, steps, n)
    return Posterior(
        all_start.T,
        all_done.T,
        found[-2],
        found[:lanes] * seen.running,
        found[lanes:-2] * seen.running,
        found[-1],
        np.log(scale).sum(axis=0),
    )


def _all_in(held: np.ndarray, phases: np.ndarray, runs: np.ndarray) -> np.ndarray:
    """Chances (2, n_steps x n_stretches) that every lane in which a trial runs starts up, and that it is done; 0 where
    none runs.
    """
    out = np.zeros((2, len(held)))
    for running, here in _by_lanes(runs):
        asked = [(phases[running] == phase).all(axis=0) for phase in (START, DONE)]
        out[:, here] = np.stack(asked).astype(float) @ held[here].T
    return out


def _by_lanes(runs: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Each set of lanes in which trials run, with the steps in which they are that set; without the empty one."""
    code = (1 << np.arange(len(runs))) @ runs
    for one in np.unique(code[code > 0]).tolist():
        here = np.flatnonzero(code == one)
        yield runs[:, here[0]], here
