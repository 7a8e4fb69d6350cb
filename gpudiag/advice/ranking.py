"""The order of recommendations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gpudiag.advice.gains import Bounds, speedup
from gpudiag.advice.remedy import REVERSIBILITY, Proposal, Remedy


@dataclass(frozen=True, eq=False)
class Recommendation:
    """A remedy proposed for one run. ``rules``: the findings it answers; ``why``: what they say."""

    remedy: Remedy
    proposal: Proposal
    rules: tuple[str, ...]
    why: str

    @property
    def id(self) -> str:
        """The remedy's id."""
        return self.remedy.id


def rank(recommendations: Iterable[Recommendation], bounds: Bounds) -> tuple[Recommendation, ...]:
    """Best first (METHODS 9): what must be verified first goes last; then by the lower bound of the gain times
    reversibility, then by its upper bound, then the safer one, then in the given order.
    """

    def key(one: Recommendation) -> tuple[bool, float, float, int]:
        low, high = speedup(one.proposal.gain, bounds.trial_gpu_h)
        tier = one.remedy.tier
        return bool(one.proposal.verify_first), -round(low * REVERSIBILITY[tier], 9), -round(high, 9), tier

    return tuple(sorted(recommendations, key=key))
