"""Trials that were asked for together and told one after another: when each of them ran is not recorded.

``[study.ask() for _ in range(8)]`` starts eight trials within moments, and a process that evaluates them in turn ends
them in turn, or all together. Their recorded lives overlap, whether they ran side by side or one after another.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from gpudiag.measures._time.microseconds import SECOND_US, microseconds

SPREAD, ASKED_US = 0.05, 500_000
"""Of a batch's length: its starts lie no further apart in all, and each no further from the next, which is more than a
sampler takes (defaults without a published source)."""
MOST_PARTS = 0.8
"""Share of the trials of a study that are of such batches, from which on it is one that asks so."""
BY_CHANCE = 1e-3
"""Chance that trials which run side by side end in the order of their numbers, batch by batch, as these do
(defaults without a published source)."""
PLACES = ("worker", "gpu", "pid", "host")


def asked_together(trials: pd.DataFrame, intervals: pd.DataFrame) -> np.ndarray:
    """True by row for trials of batches, in studies that ask for most of their trials so.

    ``intervals``: what ``trial_intervals`` makes of ``trials``. Trials of one batch that name different workers, GPUs,
    processes or hosts ran side by side, and are not meant.
    """
    out = np.zeros(len(trials), bool)
    rows = np.flatnonzero(intervals["known"].to_numpy(bool))
    number = intervals["trial"].to_numpy()[rows]
    start, end = (microseconds(intervals[name])[rows] for name in ("start", "end"))
    places = [pd.factorize(trials[name])[0][rows] for name in PLACES if name in trials]
    study = pd.factorize(intervals["study"])[0][rows]
    for code in range(study.max(initial=-1) + 1):
        own = np.flatnonzero(study == code)
        own = own[np.lexsort((number[own], start[own]))]
        fine = bool((np.array([start[own], end[own]]) % SECOND_US).any())
        several = (batch for batch in _batches(own, start, end) if len(batch) >= 2)
        batches = [batch[np.argsort(number[batch], kind="stable")] for batch in several]
        told = [
            batch
            for batch in batches
            if _in_turn(start[batch], end[batch], fine) and not any(_apart(names[batch]) for names in places)
        ]
        chance = -sum(math.lgamma(len(batch) + 1) for batch in told)
        most = sum(map(len, told)) >= MOST_PARTS * len(own)
        if len(told) >= 2 and most and chance <= math.log(BY_CHANCE):
            out[rows[np.concatenate(told)]] = True
    return out


def _batches(own: np.ndarray, start_us: np.ndarray, end_us: np.ndarray) -> list[np.ndarray]:
    """The trials of each stretch in which they overlap; ``own`` are in order of start."""
    ended = np.maximum.accumulate(end_us[own])
    return np.split(own, np.flatnonzero(start_us[own][1:] >= ended[:-1]) + 1)


def _in_turn(start_us: np.ndarray, end_us: np.ndarray, fine: bool) -> bool:
    """Whether all began before any ended, within moments, and both in this order; without ties where timestamps are
    whole seconds, in which whatever runs alike has them.
    """
    asked, told, least_us = np.diff(start_us), np.diff(end_us), 0 if fine else 1
    at_once = np.ptp(start_us) <= SPREAD * (end_us.max() - start_us.min()) and (asked <= ASKED_US).all()
    in_order = (asked >= least_us).all() and (told >= least_us).all()
    return bool(at_once and start_us.max() < end_us.min() and in_order)


def _apart(names: np.ndarray) -> bool:
    """Whether they name several places; negative is unknown."""
    known = names[names >= 0]
    return len(known) > 0 and bool((known != known[0]).any())
