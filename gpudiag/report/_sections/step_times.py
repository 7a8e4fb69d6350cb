"""The median time of a step as it is told: of two trainings each one's, of more the least and the most."""

from __future__ import annotations

from gpudiag.measures.steps import StepsProfile
from gpudiag.report.document import Document
from gpudiag.report.format import duration


def step_times(document: Document) -> tuple[str, int]:
    """The time in words, '' where none is known, and of how many trainings it is told: 1 where all look alike."""
    facts = document.values(StepsProfile)
    whole_s = facts.get(StepsProfile.step_s)
    if whole_s is None:
        return "", 0
    n = facts.get(StepsProfile.n_paced) or 1
    low_s, high_s = (facts.get(fact) or whole_s for fact in (StepsProfile.least_step_s, StepsProfile.most_step_s))
    low, high = duration(low_s), duration(high_s)
    if n < 2 or low == high:
        return duration(whole_s), 1
    return f"{low} {'and' if n == 2 else 'to'} {high}", n
