"""Whether the steps of a training took longer at its end than at its beginning, and how likely that is by chance."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy

PARTS = 5
MANY = 10
"""So many counts in a row are the epochs of one training; fewer may be trainings of their own."""
ALIKE = 1.645
"""Times 1/sqrt(n): neighbors resemble each other as those of times in any order do in one case of twenty."""
MOST_ALIKE = 0.95


class LateSteps(NamedTuple):
    """``ratio``: time of a step in the last fifth over that in the first; ``steady_pct``: changes between fifths in
    that direction; ``p``: chance of as slow a last fifth in times that come in any order. NaN is unknown.
    """

    ratio: float = math.nan
    steady_pct: float = math.nan
    p: float = math.nan


def late_steps(part: pd.DataFrame) -> LateSteps:
    """Of the course of one training, without pauses.

    Where steps are counted anew a few times and no line numbers epochs, within the count with most lines.
    """
    if 0 < part["recounted"].max() < MANY - 1:
        part = part[part["recounted"] == part["recounted"].mode().iloc[0]]
    at_pace = part[part["usual"]]
    if len(at_pace) < 4 * PARTS:
        return LateSteps()
    each_s, n = at_pace["each_s"].to_numpy(float), at_pace["n"].to_numpy(float)
    fifth = np.minimum(((np.cumsum(n) - n / 2) / n.sum() * PARTS).astype(int), PARTS - 1)
    own = [fifth == at for at in range(PARTS)]
    if not all(one.any() for one in own):
        return LateSteps()
    medians = np.array([np.median(each_s[one]) for one in own])
    if not medians[0] > 0:
        return LateSteps()
    means = np.array([np.average(each_s[one], weights=n[one]) for one in own])
    rises = np.diff(medians) * np.sign(medians[-1] - medians[0])
    ratio = _nearer(medians[-1] / medians[0], means[-1] / means[0])
    return LateSteps(ratio, 100 * float((rises >= 0).mean()), _p_slower(each_s, fifth))


def _nearer(by_median: float, by_mean: float) -> float:
    """The one nearer to 1, which is 1 where they lie on both sides of it. Where steps take one of two times, the median
    is now the one and now the other; a mean is what a few steps make it.
    """
    low, high = sorted((by_median, by_mean))
    return float(low if low >= 1 else high if high <= 1 else 1.0)


def _p_slower(each_s: np.ndarray, fifth: np.ndarray) -> float:
    """One-sided Mann-Whitney of the last fifth against the first, by the normal approximation with ties; less sure
    where neighbors resemble each other, beyond what the fifths have in common.
    """
    first, last = each_s[fifth == 0], each_s[fifth == PARTS - 1]
    both = pd.Series(np.concatenate([first, last]))
    ties = both.value_counts().to_numpy(float)
    n = float(len(both))
    variance = len(first) * len(last) / 12 * (n + 1 - float((ties**3 - ties).sum()) / (n * (n - 1)))
    if not variance > 0:
        return 1.0
    wins = float(both.rank().to_numpy()[len(first) :].sum()) - len(last) * (len(last) + 1) / 2
    score = wins - len(first) * len(last) / 2 - 0.5
    return float(scipy.special.ndtr(-score / math.sqrt(variance * _repetition(each_s, fifth))))


def _repetition(each_s: np.ndarray, fifth: np.ndarray) -> float:
    """How many times as much a mean varies where neighbors resemble each other (as AR(1)), by ranks within the fifths;
    1 where they do no more than by chance.
    """
    rank = pd.Series(each_s).rank()
    left = (rank - rank.groupby(fifth).transform("mean")).to_numpy()
    total = float(left @ left)
    alike = float(left[1:] @ left[:-1]) / total if total > 0 else 0.0
    if alike <= ALIKE / math.sqrt(len(left)):
        return 1.0
    alike = min(alike, MOST_ALIKE)
    return (1 + alike) / (1 - alike)
