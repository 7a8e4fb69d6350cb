"""On which GPU trials ran, from the marks that they left there.

Every trial leaves marks on one GPU: memory that rises and falls with it, activity that pauses at its end. Other GPUs
show the same at times, since other trials end. How often each mark is seen where a trial ran is learned from the log
itself by expectation maximisation; on which GPU it was is what is not known. How often it is seen elsewhere is counted
at other times of the log: a GPU that knows nothing of a trial shows it what it shows any time. Were it learned alone,
GPUs that are always occupied could be exchanged for one another.

Two things join the evidence of trials: who starts where one place alone is free runs on the GPU of the one before; and
no GPU holds more trials at once than it must if all hold alike many. Whether trials follow each other so is judged by
the likelihood of all marks; where that is not decided, a trial is placed if it is sure either way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpudiag.measures._gpu.marks import ROWS, Mark

ROUNDS = 8
SWEEPS, MOST_STEPS = 12, 20_000
TEMPER = 0.5
"""Marks of one trial are not independent: their log odds count this much."""
FOLLOWS, APART = 5.0, -10.0
"""Log odds from which on trials are said to stay on the GPU of the one before them, and not to."""
EACH = 0.35
"""The former must be as much for each trial that follows another: one long chain that fits by chance is outvoted."""
CLEAR = 10.0
"""Log odds between the best and the next GPU from which on what others do does not matter."""
SURE = 0.85
"""Chance from which on a trial is placed. Room shared in the mean makes chances timid: of 99,456 trials placed on GPUs
that are always occupied 40 were wrong, in 3 of 800 runs (METHODS 3); of other searches see benchmarks/accuracy.md."""
SURE_ALONE = 0.99
"""The same where each trial is judged by its own marks alone."""
CONTRADICTED = 0.08
"""Share of the sure trials that the other account of elsewhere has on another GPU, above which none is placed. Of 198
runs that were placed right all but one had less, those in which GPUs were exchanged 0.13 and more (development runs).
"""


@dataclass(frozen=True)
class Placement:
    """Chances by trial and GPU, and which are sure (the GPU's position, else -1). ``shared``: the marks show that GPUs
    hold alike many, so that the chances of those that are not sure add up to what was held; else they say nothing.
    """

    chance: np.ndarray
    gpu: np.ndarray
    shared: bool


@dataclass(frozen=True)
class Lives:
    """Trials in question: start and end (µs), their chain, and the GPU of those that are known, -1 else."""

    start: np.ndarray
    end: np.ndarray
    chain: np.ndarray
    known: np.ndarray

    def only(self, kept: np.ndarray) -> Lives:
        """Some of the trials, their chains numbered anew."""
        chain = np.unique(self.chain[kept], return_inverse=True)[1]
        return Lives(self.start[kept], self.end[kept], chain, self.known[kept])


def place(marks: Sequence[Mark], lives: Lives, n_gpus: int, most_at_once: int) -> Placement:
    """Where each trial ran; ``most_at_once`` of all trials.

    What a GPU shows where a trial did not run is taken twice: learned beside what it shows at any time, and the latter
    alone. Learned on both sides, two GPUs exchanged fit a log as well; by what is seen at any time, trials in step with
    those of another GPU seem to be on it. So both must be of the same mind; where they are not in more than a few
    trials, the log does not tell, and none is placed.
    """
    learned, any_time = (_placed(marks, lives, n_gpus, most_at_once, learned=way) for way in (True, False))
    against = (learned.gpu >= 0) & (learned.gpu != any_time.chance.argmax(axis=1))
    contradicted = against.sum() > CONTRADICTED * ((learned.gpu >= 0) & (lives.known < 0)).sum()
    kept = ~against & (not contradicted)
    return Placement(learned.chance, np.where(kept, learned.gpu, -1), learned.shared and not contradicted)


def odds_of(marks: Sequence[Mark], chain: np.ndarray, n_gpus: int, *, learned: bool) -> np.ndarray:
    """Log odds by trial and GPU that its chain ran there, against elsewhere, where the GPU of none is known."""
    nothing = np.full(len(chain), -1)
    return summed(learn(marks, chain, nothing, n_gpus, learned), chain)[chain]


def _placed(marks: Sequence[Mark], lives: Lives, n_gpus: int, most_at_once: int, *, learned: bool) -> Placement:
    single = np.arange(len(lives.start))
    alone, joined = (learn(marks, chain, lives.known, n_gpus, learned) for chain in (single, lives.chain))
    follows = fit(joined, lives.chain) - fit(alone, single)
    chance = softmax(alone)
    chained = follows >= max(FOLLOWS, EACH * (len(single) - len(np.unique(lives.chain))))
    if chained or (follows > APART and chance.max() >= SURE):
        together = _roomy(joined, lives, n_gpus, most_at_once)
        chance = together if chained else np.minimum(chance, together)
    enough = SURE if chained else SURE_ALONE
    sure = np.where(chance.max(axis=1) >= enough, chance.argmax(axis=1), -1)
    return Placement(chance, sure, chained)


def learn(marks: Sequence[Mark], chain: np.ndarray, known: np.ndarray, n_gpus: int, learned: bool) -> np.ndarray:
    """Log odds by trial and GPU that it ran there, against elsewhere."""
    stated = np.where(known[:, None] == np.arange(n_gpus), 1e3, 0.0)
    odds = _odds(marks, softmax(stated), first=True, learned=learned) + stated
    for _ in range(ROUNDS):
        odds = _odds(marks, softmax(summed(odds, chain))[chain], first=False, learned=learned) + stated
    return odds


def _odds(marks: Sequence[Mark], chance: np.ndarray, *, first: bool, learned: bool) -> np.ndarray:
    """Log odds, if these chances say how often each mark is left by a trial, and how often it is seen elsewhere."""
    odds = np.zeros_like(chance)
    for mark in marks:
        n, there = len(mark.usual), np.array(mark.usual)
        if not first:
            there = there + _counts(mark, chance).sum(axis=0)
        elsewhere = mark.any_time
        if learned:
            other = _counts(mark, 1 - chance)
            other = other + 3 * (other.sum(axis=0) + 1) / (other.sum() + n)
            often = (other / other.sum(axis=1, keepdims=True))[mark.beside[:, None], mark.kind]
            elsewhere = (elsewhere + often) / 2
        odds += np.where(mark.kind >= 0, np.log(there / there.sum())[mark.kind] - np.log(elsewhere), 0.0)
    return TEMPER * odds


def _counts(mark: Mark, weight: np.ndarray) -> np.ndarray:
    """Sum of weights by what is beside and kind of mark."""
    seen, n = mark.kind >= 0, len(mark.usual)
    beside = np.broadcast_to(mark.beside[:, None], mark.kind.shape)[seen]
    return np.bincount(beside * n + mark.kind[seen], weight[seen], ROWS * n).reshape(ROWS, n)


def summed(odds: np.ndarray, chain: np.ndarray) -> np.ndarray:
    out = np.zeros((int(chain.max(initial=-1)) + 1, odds.shape[1]))
    np.add.at(out, chain, odds)
    return out


def softmax(odds: np.ndarray) -> np.ndarray:
    e = np.exp(odds - odds.max(axis=1, keepdims=True))
    out: np.ndarray = e / e.sum(axis=1, keepdims=True)
    return out


def fit(odds: np.ndarray, chain: np.ndarray) -> float:
    """Log likelihood of all marks if the trials of a chain share a GPU, against marks by chance."""
    chains = summed(odds, chain)
    top = chains.max(axis=1)
    return float((top + np.log(np.exp(chains - top[:, None]).mean(axis=1))).sum())


def _roomy(odds: np.ndarray, lives: Lives, n_gpus: int, most_at_once: int) -> np.ndarray:
    """Chances by trial if GPUs hold alike many at once, or as many as chains are on one whose own evidence is clear."""
    chains = summed(odds, lives.chain)
    first, last = np.full(len(chains), np.iinfo(np.int64).max), np.zeros(len(chains), np.int64)
    np.minimum.at(first, lives.chain, lives.start)
    np.maximum.at(last, lives.chain, lives.end)
    together = _together(first, last)
    second, top = np.partition(chains, -2, axis=1)[:, -2:].T
    clear = (chains == top[:, None]) & (top - second >= CLEAR)[:, None]
    room = max(-(-most_at_once // n_gpus), *(int(clear[own].sum(axis=0).max()) for own in together))
    return _within(chains, [own for own in together if len(own) > room], room)[lives.chain]


def _together(first: np.ndarray, last: np.ndarray) -> list[np.ndarray]:
    """Chains that run at once, each set that is part of no other."""
    out: list[np.ndarray] = []
    running: list[int] = []
    order = np.argsort(first, kind="stable").tolist()
    for i, following in zip(order, [*order[1:], -1], strict=True):
        running = [c for c in running if last[c] > first[i]] + [i]
        if following < 0 or min(last[c] for c in running) <= first[following]:
            out.append(np.array(running))
    return out


def _within(odds: np.ndarray, together: list[np.ndarray], room: int) -> np.ndarray:
    """The chances nearest to the odds under which no GPU is expected to hold more than ``room`` at once."""
    logs = odds.copy()
    taken = [np.zeros(odds.shape[1]) for _ in together]
    turns = list(range(len(together)))
    for _ in range(int(np.clip(MOST_STEPS // max(len(together), 1), 2, SWEEPS))):
        for i in turns + turns[::-1]:
            own = together[i]
            load = np.log(np.maximum(softmax(logs[own]).sum(axis=0), 1e-300) / room)
            more = np.maximum(taken[i] + load, 0.0) - taken[i]
            taken[i] += more
            logs[own] -= more
    return softmax(logs)
