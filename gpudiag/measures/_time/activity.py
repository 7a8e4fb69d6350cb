"""Which samples show that a GPU works: what start-ups and ends of trials are read off."""

from __future__ import annotations

import numpy as np

from gpudiag.schema import IDLE_PCT, UNUSED_PCT

REALLY = 2 * IDLE_PCT
"""A GPU that reaches this in a hundredth of the time in which it is in use works at IDLE_PCT or more."""
MOST_LIVES = 300
"""Trials that are looked at, evenly over the run."""
LONGEST_WAIT_S = 600.0
"""Without trials a longer idle stretch may lie between two jobs: it is a pause, and no wait within one of them."""


def activity(util_pct: np.ndarray) -> np.ndarray:
    """True for samples at work, at 10 % or more. A GPU that is at 6 % all the time does not begin to work with the one
    sample that reads 10 %: there half of what it does instead is work.
    """
    if not (util_pct >= IDLE_PCT).any():
        return np.zeros(len(util_pct), bool)
    return np.asarray(util_pct >= work_level_pct(util_pct))


def work_level_pct(util_pct: np.ndarray) -> float:
    """Utilization above which a sample shows work: IDLE_PCT; where the GPU never really is above it, half of what it
    does instead.

    A trial that works at 4 to 9 % has begun when it does so, and ends when it stops; its time is still that of an idle
    GPU (``stalled``). What a desktop shows between trials that load the GPU is no work.
    At the level itself a sample is low, not idle, and begins no work.
    """
    used = util_pct[util_pct > UNUSED_PCT]
    return IDLE_PCT if not len(used) or _really(used) else _half_of(used)


def work_level_of_lives_pct(util_pct: np.ndarray, first: np.ndarray, last: np.ndarray) -> float:
    """The same by the samples from ``first`` to before ``last`` of each trial: a load of others beside some of the
    trials does not hide that most of their time is worked below IDLE_PCT.
    """
    some = np.unique(np.linspace(0, len(first) - 1, min(len(first), MOST_LIVES)).astype(int))
    lives = [util_pct[low:high] for low, high in zip(first[some].tolist(), last[some].tolist(), strict=True)]
    used = [part for part in (life[life > UNUSED_PCT] for life in lives) if len(part)]
    below = [part for part in used if not _really(part)]
    if 2 * sum(map(len, below)) <= sum(map(len, used)):
        return IDLE_PCT if used else work_level_pct(util_pct)
    return _half_of(np.concatenate(below))


def _really(used: np.ndarray) -> bool:
    """True if the 99th percentile reaches that level."""
    place = int(0.99 * (len(used) - 1))
    both = [place, min(place + 1, len(used) - 1)]
    low, high = np.partition(used, both)[both]  # it lies between these
    return bool(low >= REALLY or (high >= REALLY and np.quantile(used, 0.99) >= REALLY))


def _half_of(used: np.ndarray) -> float:
    return min(IDLE_PCT, max(UNUSED_PCT, float(np.median(used)) / 2))
