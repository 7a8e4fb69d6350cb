"""How large a difference has to be before a pair of this size shows it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import optimize, special, stats

ALPHA = 0.05
POWER = 0.8
"""Share of such pairs that show it: 4 of 5, as is usual where sizes of experiments are planned."""
NODES = (np.arange(50) + 0.5) / 50
LARGE = 1000.0
"""Degrees of freedom from which an estimated error is as good as known."""
MOST_ERRORS = 1e4
MOST = 1e3
"""A pair that shows only ratios beyond this shows nothing."""


def detectable(log_se: float, freedom: float, level: float) -> float:
    """The ratio, above 1, that 80 % of pairs with this error of the logarithm find at this level; its inverse as well.

    The error is itself an estimate, that of the next pair another: the share is over both. NaN where the error is not
    known, 1 where there is none.
    """
    if not log_se >= 0 or not freedom > 0:
        return math.nan
    spread = np.sqrt(stats.chi2.ppf(NODES, freedom) / freedom) if freedom < LARGE else np.ones(1)
    least = float(stats.t.ppf(1 - level / 2, freedom)) * spread

    def missing(errors: float) -> float:
        return POWER - float(special.ndtr(errors * spread[:, None] - least[None, :]).mean())

    top = 1.0
    while missing(top) > 0 and top < MOST_ERRORS:
        top *= 2
    away = log_se * float(optimize.brentq(missing, 0.0, top, xtol=1e-4)) if missing(top) <= 0 else math.inf
    return math.exp(away) if away < math.log(MOST) else math.nan


def level_left(others: Sequence[float], alpha: float = ALPHA) -> float:
    """The greatest p that is still called different beside these p-values, by Benjamini and Hochberg's control.

    Alone it is 5 %; among ten quantities of which no other differs, a tenth of it.
    """
    known = [p for p in others if not math.isnan(p)]
    m = len(known) + 1
    levels = (alpha * k / m for k in range(m, 0, -1))
    return next(t for k, t in zip(range(m, 0, -1), levels, strict=True) if sum(p <= t for p in known) >= k - 1)
