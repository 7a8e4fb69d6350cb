"""What a number of crashes among so many trials proves: rates, streaks, and what no crash at all shows (METHODS 6)."""

from __future__ import annotations

import math

import scipy

from gpudiag.measures._trials.proportions import CONFIDENCE, streak_probability


def most_if_none(n: int) -> float:
    """Upper bound of a crash rate (0..1) after ``n`` trials without a crash: 1 - (1 - CONFIDENCE)^(1/n), about 3/n.

    NaN for n = 0.
    """
    return -math.expm1(math.log1p(-CONFIDENCE) / n) if n > 0 else math.nan


def trials_to_show(rate: float) -> int:
    """Trials in a row without a crash that show a rate below ``rate``."""
    return math.ceil(math.log1p(-CONFIDENCE) / math.log1p(-rate))


def clean_chance(rate: float, n: int) -> float:
    """Chance (0..1) of ``n`` trials in a row without a crash."""
    return math.exp(n * math.log1p(-rate)) if rate < 1 else 0.0


def rate_without_streak(n: int, length: int, chance: float) -> float:
    """Crash rate (0..1) at which ``n`` trials hold no run of ``length`` successes with that chance.

    The recursion on runs is inverted: at ``chance`` 1 - level it is the lower bound of the rate, given that no such
    run came; at 0.5 the median estimate. NaN where n < length, when the absence of a run shows nothing.
    """
    if n < length or length < 1:
        return math.nan

    def beyond(rate: float) -> float:
        return 1 - streak_probability(1 - rate, n, length) - chance

    return float(scipy.optimize.brentq(beyond, 1e-9, 1 - 1e-9))
