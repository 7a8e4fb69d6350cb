"""How large a difference has to be before a pair of this size shows it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

ALPHA = 0.05
POWER = 0.8
"""Share of such pairs that show it: 4 of 5, as is usual where sizes of experiments are planned."""
NODES = (np.arange(50) + 0.5) / 50
LARGE = 1000.0
"""Degrees of freedom from which an estimated error is as good as known."""
MOST = 10.0
"""A pair that shows only ratios beyond this shows nothing."""


@dataclass(frozen=True)
class Case:
    """A share of pairs of one size, whose ratio has this standard error of its logarithm and degrees of freedom."""

    share: float
    log_se: float
    freedom: float


def detectable(cases: Sequence[Case], level: float) -> float:
    """The ratio, above 1, that 80 % of pairs find at this level, of which each case is a share; its inverse as well.

    The error is itself an estimate, that of the next pair another: the share is over both. NaN where the error is not
    known, 1 where there is none.
    """
    known = [_Planned(case, level) for case in cases if case.share > 0]
    if not known or not all(one.log_se >= 0 and one.freedom > 0 for one in known):
        return math.nan

    def missing(away: float) -> float:
        return POWER - sum(one.share * one.found(away) for one in known)

    top = max(one.log_se for one in known)
    if top == 0:
        return 1.0
    while missing(top) > 0 and top < math.log(MOST):
        top *= 2
    if missing(top) > 0:
        return math.nan
    away = float(scipy.optimize.brentq(missing, 0.0, top, xtol=1e-6))
    return math.exp(away) if away < math.log(MOST) else math.nan


class _Planned:
    """A case at a level: how often it finds a difference of logarithms."""

    def __init__(self, case: Case, level: float) -> None:
        self.share, self.log_se, self.freedom = case.share, case.log_se, case.freedom
        if self.freedom > 0:
            known = self.freedom < LARGE
            spread = scipy.special.chdtri(self.freedom, 1 - NODES) / self.freedom if known else np.ones(1)
            self._spread = np.sqrt(spread)
            self._least = float(scipy.special.stdtrit(self.freedom, 1 - level / 2)) * self._spread

    def found(self, away: float) -> float:
        """Share of such pairs that find it."""
        if self.log_se == 0:
            return float(away > 0)
        return float(scipy.special.ndtr(away / self.log_se * self._spread - self._least).mean())


def level_left(others: Sequence[float], alpha: float = ALPHA) -> float:
    """The greatest p that is still called different beside these p-values, by Benjamini and Hochberg's control.

    Alone it is 5 %; among ten quantities of which no other differs, a tenth of it.
    """
    known = [p for p in others if not math.isnan(p)]
    m = len(known) + 1
    levels = (alpha * k / m for k in range(m, 0, -1))
    return next(t for k, t in zip(range(m, 0, -1), levels, strict=True) if sum(p <= t for p in known) >= k - 1)
