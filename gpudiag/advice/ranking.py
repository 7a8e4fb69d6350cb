"""The order of recommendations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from gpudiag.advice.gains import Bounds, speedup
from gpudiag.advice.remedy import REVERSIBILITY, Prediction, Proposal, Remedy
from gpudiag.shown import Shown

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Recommendation(Shown):
    """A remedy proposed for one run. ``rules``: the findings it answers; ``why``: what they say."""

    remedy: Remedy
    proposal: Proposal
    rules: tuple[str, ...]
    why: str

    @property
    def id(self) -> str:
        """The remedy's id."""
        return self.remedy.id

    def to_frame(self) -> pd.DataFrame:
        """What is predicted: measure, baseline, low, high, unit, note."""
        import pandas as pd

        names = [field.name for field in fields(Prediction)]
        return pd.DataFrame([[getattr(p, name) for name in names] for p in self.proposal.predictions], columns=names)


class Recommendations(Shown, tuple[Mapping[str, Any], ...]):
    """The ``recommendations`` of a document: a tuple of its entries that shows the options."""


def rank(
    recommendations: Iterable[Recommendation], bounds: Bounds, worst: str | None = None
) -> tuple[Recommendation, ...]:
    """Best first (METHODS 9): what must be verified first goes last; before the others goes what answers the ``worst``
    finding, so that what to do next is what the plan begins with; then by the lower bound of the gain times
    reversibility, then by its upper bound, then the safer one, then in the given order.
    """

    def key(one: Recommendation) -> tuple[bool, bool, float, float, int]:
        low, high = speedup(one.proposal.gain, bounds.trial_gpu_h)
        tier = one.remedy.tier
        doubted = bool(one.proposal.verify_first)
        return doubted, worst not in one.rules, -round(low * REVERSIBILITY[tier], 9), -round(high, 9), tier

    return tuple(sorted(recommendations, key=key))
