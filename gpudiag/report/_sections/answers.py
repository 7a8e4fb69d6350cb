"""What to do about a finding: the recommendation that answers it, else what its rule says."""

from __future__ import annotations

from gpudiag.advice._engine.recommendation import Recommendation
from gpudiag.report.document import Document, VerdictEntry
from gpudiag.report.kinds.recommendations import NO_SPEED_UP, gain_of


def recommended(document: Document, rule: str | None) -> Recommendation | None:
    """The best remedy that answers the rule; None where there is nothing but the rule's own advice."""
    return next((r for r in document.recommendations if rule in r.rules and not r.is_the_rules_own), None)


def answer(document: Document, rule: str) -> str:
    """Title and change of that recommendation in one line; '' where there is none."""
    one = recommended(document, rule)
    if one is None:
        return ""
    inside = "; ".join(filter(None, (one.text, "test first" if one.verify_first else "")))
    return f"{one.title} ({inside})" if inside else one.title


def to_do(document: Document, found: VerdictEntry) -> str:
    """What every output names as the next step of a finding: that line, else what its rule says; '' for nothing."""
    return answer(document, found.rule) or found.remedy


def brings(one: Recommendation) -> str:
    """What a recommendation brings, in a few words; '' where it is no speed-up, or nobody can tell."""
    said = gain_of(one)
    return "" if one.gain is None or said == NO_SPEED_UP else said
