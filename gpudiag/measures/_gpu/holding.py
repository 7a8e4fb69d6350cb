"""Whether the trials hold the recorded GPUs one each: some may hold several at once, others none of those recorded.

As where trials are placed (:mod:`~gpudiag.measures._gpu.placement`), a GPU is asked for the marks of a trial, against
what it shows any other time. Here the trial may also have run on a GPU that nobody recorded, which shows nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gpudiag.measures._gpu.marks import Mark
from gpudiag.measures._gpu.placement import CLEAR, Lives, fit, learn, summed
from gpudiag.measures._time.concurrency import count_at
from gpudiag.measures._time.microseconds import distinct
from gpudiag.measures._time.timeline import Samples
from gpudiag.schema import IDLE_PCT

MORE_BUSY = 0.25
"""Share of the time with trials at which more GPUs must be busy than trials run, before a trial may hold several. Where
each holds one GPU, only the load of others does that. A default without a published source.
"""
GAINED = 20.0
"""Log likelihood of all marks that it must bring to have some trials elsewhere, against all on recorded GPUs. In runs
that were recorded whole it was at most 7, in most of those of which a part was recorded 20 to 330 (METHODS 3).
"""
LEAST_ELSEWHERE = 0.1
"""Share of the trial time elsewhere below which all are taken to be recorded: trials that fail at their beginning
leave no marks either. A default without a published source."""


def more_busy_than_trials(activity: Sequence[Samples], lives: Lives) -> bool:
    """Whether more GPUs are busy than trials run: then a trial is not always on one GPU, or others use the GPUs too."""
    known = [own for own in activity if len(own.time_us) > 1]
    if len(known) < 2:
        return False
    times = distinct(*(own.time_us for own in known))
    at = [np.maximum(np.searchsorted(own.time_us, times, "right") - 1, 0) for own in known]
    busy = sum((own.value[place] >= IDLE_PCT).astype(int) for own, place in zip(known, at, strict=True))
    running = count_at(times, lives.start, lives.end)
    length, with_trial = np.diff(times, append=times[-1]), running > 0
    more: np.ndarray = (busy > running) & with_trial
    return bool(length[more].sum() >= MORE_BUSY * max(length[with_trial].sum(), 1))


def held_gpus(marks: Sequence[Mark], lives: Lives, placed: np.ndarray) -> np.ndarray:
    """True by trial and GPU that it held, where it may hold several: all whose marks are clear, else the one on which
    it was ``placed`` (by trial and GPU). None of a trial of which another GPU may show marks as well.
    """
    n_gpus = placed.shape[1]
    each = learn(_beside_unrecorded(marks), lives.chain, lives.known, n_gpus + 1, learned=False)
    odds = summed(each, lives.chain)[lives.chain, :n_gpus]
    clear = odds >= CLEAR
    held: np.ndarray = np.where(clear.sum(axis=1, keepdims=True) > 1, clear, placed)
    return held & ~((odds > 0) & ~held).any(axis=1, keepdims=True)


def chance_recorded(marks: Sequence[Mark], lives: Lives, n_gpus: int) -> np.ndarray:
    """Chance by trial that it ran on a recorded GPU at all: 1 unless the marks clearly say that some did not.

    A log in which trials leave no marks (memory that a process keeps) has none for those on its GPUs either: it is the
    difference between trials that tells.
    """
    everywhere = np.ones(len(lives.start))
    if not len(lives.start):
        return everywhere
    odds = learn(_beside_unrecorded(marks), lives.chain, lives.known, n_gpus + 1, learned=False)
    all_recorded = learn(marks, lives.chain, lives.known, n_gpus, learned=False)
    if fit(odds, lives.chain) - fit(all_recorded, lives.chain) < GAINED:
        return everywhere
    held = summed(odds, lives.chain)[lives.chain]
    margin = held[:, :n_gpus].max(axis=1) - held[:, n_gpus]
    lived = lives.end - lives.start
    if lived[margin <= -CLEAR].sum() < LEAST_ELSEWHERE * lived.sum():
        return everywhere
    return np.where(np.abs(margin) >= CLEAR, margin > 0, 1 / (1 + np.exp(-np.clip(margin, -CLEAR, CLEAR))))


def _beside_unrecorded(marks: Sequence[Mark]) -> list[Mark]:
    """The same marks with one GPU more, of which nothing was recorded."""
    return [
        replace(
            mark,
            kind=np.column_stack([mark.kind, np.full(len(mark.kind), -1)]),
            any_time=np.column_stack([mark.any_time, np.ones(len(mark.kind))]),
        )
        for mark in marks
    ]
