"""The order of recommendations."""

from __future__ import annotations

from collections.abc import Iterable

from gpudiag.advice._engine.gains import NOTHING, GainBounds, speedup
from gpudiag.advice._engine.proposal import REVERSIBILITY
from gpudiag.advice._engine.recommendation import Recommendation

EFFORTS = ("minutes", "an hour", "hours")
"""From the least on."""


def rank(
    recommendations: Iterable[Recommendation], bounds: GainBounds, worst: str | None = None
) -> tuple[Recommendation, ...]:
    """Best first (METHODS 9): what must be verified first goes last; before the others goes what answers the ``worst``
    finding, so that what to do next is what the plan begins with; then what may bring something, before what only
    observes; then by the lower bound of the gain times reversibility, then, of what must be verified first, what takes
    less to be tried, then by the upper bound of the gain (in GPU-hours where nobody knows of how many), then the safer
    one, then in the given order.
    """

    def key(one: Recommendation) -> tuple[bool, bool, bool, float, int, float, float, int]:
        low, high = speedup(one.gain, bounds.trial_gpu_h)
        return (
            bool(one.verify_first),
            worst not in one.rules,
            one.gain == NOTHING,
            -round(low * REVERSIBILITY[one.tier], 9),
            EFFORTS.index(one.effort) if one.verify_first and one.effort in EFFORTS else 0,
            -round(high, 9),
            -_most_gpu_h(one),
            one.tier,
        )

    return tuple(sorted(recommendations, key=key))


def _most_gpu_h(one: Recommendation) -> float:
    return one.gain.high if one.gain is not None and one.gain.unit == "GPU-h" else 0.0
