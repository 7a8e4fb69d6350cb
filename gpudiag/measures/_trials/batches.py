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
    rows = intervals[intervals["known"]]
    rows = rows.assign(start_us=microseconds(rows["start"]), end_us=microseconds(rows["end"]))
    places = trials.reset_index(drop=True).loc[rows.index, [name for name in PLACES if name in trials]]
    for _, own in rows.groupby("study", sort=False):
        own = own.sort_values(["start_us", "trial"], kind="stable")
        own = own.assign(fine=bool((own[["start_us", "end_us"]] % SECOND_US).any(axis=None)))
        batch = _batches(own["start_us"].to_numpy(), own["end_us"].to_numpy())
        size = np.bincount(batch)
        told = np.array([_in_turn(part, places.loc[part.index]) for _, part in own.groupby(batch)], bool)
        several = size >= 2
        chance = -sum(math.lgamma(n + 1) for n in size[told & several])
        most = size[told & several].sum() >= MOST_PARTS * len(own)
        if (told & several).sum() >= 2 and most and chance <= math.log(BY_CHANCE):
            out[own.index[(told & several)[batch]]] = True
    return out


def _batches(start_us: np.ndarray, end_us: np.ndarray) -> np.ndarray:
    """Number of the stretch of trials that overlap; they are in order of start."""
    ended = np.maximum.accumulate(end_us)
    return np.cumsum(np.append(False, start_us[1:] >= ended[:-1]).astype(np.int64))[: len(start_us)]


def _in_turn(batch: pd.DataFrame, places: pd.DataFrame) -> bool:
    """Whether all began before any ended, within moments, and both in the order of their numbers; without ties where
    timestamps are whole seconds, in which whatever runs alike has them.
    """
    start, end = (batch.sort_values("trial")[name].to_numpy() for name in ("start_us", "end_us"))
    at_once = start.max() - start.min() <= SPREAD * (end.max() - start.min()) and (np.diff(start) <= ASKED_US).all()
    apart = any(places[name].nunique() > 1 for name in places)
    least_us = 0 if batch["fine"].all() else 1
    in_order = (np.diff(start) >= least_us).all() and (np.diff(end) >= least_us).all()
    return bool(at_once and start.max() < end.min() and in_order and not apart)
