"""Whether the marks of trials refute the GPU that the trials state.

A process that sees one GPU alone (CUDA_VISIBLE_DEVICES, a container) counts it as 0, whichever it is. Then all trials
state one GPU, and their marks are on others. CUDA counts GPUs by speed, unless CUDA_DEVICE_ORDER is PCI_BUS_ID, but
nvidia-smi by bus. Then GPUs are exchanged: the trials of each have their marks on one other. True statements are never
doubted: GPUs that others use show marks at any time, so the same trials, all moved by as much, would have theirs there
as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import scipy

from gpudiag.measures._gpu.marks import marks_of
from gpudiag.measures._gpu.placement import EACH, FOLLOWS, SURE_ALONE, Lives, odds_of, softmax
from gpudiag.measures._time.timeline import Samples

FEWEST, LEAST_SHARE = 5, 0.25
"""How many trials, and which share of those whose marks are sure, must have been elsewhere."""
SHIFTS, AGAINST_CHANCE = 6, 3.0
"""So many times as many as of the same trials moved to other times (METHODS 3 has what it refutes, and what it does
not)."""
EXCHANGED = 0.8
"""GPUs are exchanged if each has the marks of another's trials alone: so many of the trials whose marks are sure."""
MOST_ASKED = 2000
"""Of more trials so many are asked, evenly, whether GPUs are exchanged."""


@dataclass(frozen=True)
class Stated:
    """Trials (``known``: the position of the GPU that they state), whether each has ended, and what GPUs recorded."""

    lives: Lives
    ended: np.ndarray
    memory: list[Samples]
    activity: list[Samples]

    def only(self, kept: np.ndarray) -> Stated:
        """Some of the trials."""
        return replace(self, lives=self.lives.only(kept), ended=self.ended[kept])


def n_elsewhere(stated: Stated) -> int:
    """How many trials left their marks on another GPU than the one that they state; 0 where the statements stand."""
    return _against(stated, _accounts(stated))


def exchanged(stated: Stated) -> tuple[list[int], int]:
    """The GPUs that are exchanged, and how many of (at most MOST_ASKED) trials that state one of them left their marks
    on another; nothing and 0 where none are.
    """
    n = len(stated.ended)
    asked = stated.only(np.arange(n) % -(-n // MOST_ASKED) == 0)
    accounts = _accounts(asked)
    gpus = sorted(set.intersection(*(own.exchanged(len(stated.memory)) for own in accounts)))
    if not gpus or not _against(asked, accounts):
        return [], 0
    return gpus, max(int((own.denied & np.isin(own.stated, gpus)).sum()) for own in accounts)


@dataclass(frozen=True)
class _Account:
    """Of trials with sure marks: the GPU that they state, that with their marks, and whether marks deny the former."""

    stated: np.ndarray
    marked: np.ndarray
    denied: np.ndarray

    def exchanged(self, n_gpus: int) -> set[int]:
        """GPUs whose trials have their marks on another one, where nearly all trials of each GPU have theirs on one and
        no two GPUs' on the same. A GPU whose trials show nothing is at home if it may be.
        """
        count = np.bincount(self.stated * n_gpus + self.marked, minlength=n_gpus**2).reshape(n_gpus, n_gpus)
        own, other = scipy.optimize.linear_sum_assignment(-(count + np.eye(n_gpus) / (n_gpus + 1)))
        away = own != other
        shown = count[own, other].sum() >= EXCHANGED * count.sum() and count[own, other][away].sum() > 0
        return set(own[away].tolist()) if shown else set()


def _against(stated: Stated, accounts: list[_Account]) -> int:
    """How many trials are denied to be where they state it, by the account that denies most; 0 where chance does."""
    found = np.array([own.denied.sum() for own in accounts])
    enough = found >= np.maximum(FEWEST, LEAST_SHARE * np.array([len(own.denied) for own in accounts]))
    if not enough.any():
        return 0
    by_chance = np.max([[own.denied.sum() for own in _accounts(moved)] for moved in _moved(stated)], axis=0)
    return int(found[enough & (found >= AGAINST_CHANCE * by_chance)].max(initial=0))


def _accounts(stated: Stated) -> list[_Account]:
    """What marks say of the trials that state a GPU: by their own, and by those of all that follow each other.

    Nothing is taken for known, and GPUs need not share trials evenly: foreign load would draw trials to its GPU. Marks
    are sure where both accounts of what GPUs show without a trial agree on its GPU. They deny the GPU that it states
    where that shows less of it than at any other time.
    """
    lives, n_gpus = stated.lives, len(stated.memory)
    marks = marks_of(lives.start, lives.end, stated.ended, stated.memory, stated.activity)
    own = (np.arange(len(lives.known)), np.maximum(lives.known, 0))
    accounts = []
    for chain in (own[0], lives.chain):
        least = np.maximum(FOLLOWS, EACH * np.bincount(chain)[chain])
        both = [odds_of(marks, chain, n_gpus, learned=learned) for learned in (True, False)]
        best = [odds.argmax(axis=1) for odds in both]
        sure = (best[0] == best[1]) & (lives.known >= 0)
        denied = best[0] != lives.known
        for odds in both:
            sure &= softmax(odds).max(axis=1) >= SURE_ALONE
            denied &= (odds[own] < 0) & (odds.max(axis=1) - odds[own] >= least)
        accounts.append(_Account(lives.known[sure], best[0][sure], denied[sure]))
    return accounts


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
            yield replace(stated, lives=replace(lives, start=start, end=end)).only(kept)
