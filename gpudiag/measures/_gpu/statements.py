"""Whether the marks of trials refute the GPU that the trials state.

A process that sees one GPU alone (CUDA_VISIBLE_DEVICES, a container) counts it as 0, whichever it is. Then all trials
state one GPU, and their marks are on others. True statements are never doubted: GPUs that others use show marks at any
time, so the same trials, all moved by as much, would have theirs there as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from gpudiag.measures._gpu.marks import marks_of
from gpudiag.measures._gpu.placement import EACH, FOLLOWS, SURE_ALONE, Lives, odds_of, softmax
from gpudiag.measures._time.timeline import Samples

FEWEST, LEAST_SHARE = 5, 0.25
"""How many trials, and which share of those whose marks are sure, must have been elsewhere."""
SHIFTS, AGAINST_CHANCE = 6, 3.0
"""So many times as many as of the same trials moved to other times (METHODS 3 has what it refutes, and what it does
not)."""


@dataclass(frozen=True)
class Stated:
    """Trials (``known``: the position of the GPU that they state), whether each has ended, and what GPUs recorded."""

    lives: Lives
    ended: np.ndarray
    memory: list[Samples]
    activity: list[Samples]


def n_elsewhere(stated: Stated) -> int:
    """How many trials left their marks on another GPU than the one that they state; 0 where the statements stand."""
    found, n_sure = _elsewhere(stated)
    enough = found >= np.maximum(FEWEST, LEAST_SHARE * n_sure)
    if not enough.any():
        return 0
    by_chance = np.max([_elsewhere(moved)[0] for moved in _moved(stated)], axis=0)
    return int(found[enough & (found >= AGAINST_CHANCE * by_chance)].max(initial=0))


def _elsewhere(stated: Stated) -> tuple[np.ndarray, np.ndarray]:
    """How many trials are surely elsewhere, and how many surely anywhere: by their own marks, and by those of all that
    follow each other.

    Nothing is taken for known, and GPUs need not share trials evenly: foreign load would draw trials to its GPU. A
    trial is elsewhere where both accounts of what GPUs show without it agree on one, and the GPU that it states shows
    less of it than at any other time.
    """
    lives, n_gpus = stated.lives, len(stated.memory)
    marks = marks_of(lives.start, lives.end, stated.ended, stated.memory, stated.activity)
    own = (np.arange(len(lives.known)), np.maximum(lives.known, 0))
    counts = []
    for chain in (own[0], lives.chain):
        least = np.maximum(FOLLOWS, EACH * np.bincount(chain)[chain])
        both = [odds_of(marks, chain, n_gpus, learned=learned) for learned in (True, False)]
        best = [odds.argmax(axis=1) for odds in both]
        sure = (best[0] == best[1]) & (lives.known >= 0)
        against = best[0] != lives.known
        for odds in both:
            sure &= softmax(odds).max(axis=1) >= SURE_ALONE
            against &= (odds[own] < 0) & (odds.max(axis=1) - odds[own] >= least)
        counts.append(((sure & against).sum(), sure.sum()))
    found, n_sure = np.array(counts).T
    return found, n_sure


def _moved(stated: Stated) -> Iterator[Stated]:
    """The same trials, all moved by as much, those beyond the last end to the beginning."""
    lives = stated.lives
    first, last = int(lives.start.min()), int(lives.end.max())
    for step in range(1, SHIFTS + 1):
        by = step * (last - first) // (SHIFTS + 1)
        start = first + (lives.start - first + by) % max(last - first, 1)
        end = start + lives.end - lives.start
        kept = end <= last
        if kept.any():
            moved = replace(lives, start=start, end=end).only(kept)
            yield Stated(moved, stated.ended[kept], stated.memory, stated.activity)
