"""What to do about a finding: the recommendation that answers it, else what its rule says."""

from __future__ import annotations

from gpudiag.advice._engine.recommendation import Recommendation
from gpudiag.report.document import Document


def recommended(document: Document, rule: str | None) -> Recommendation | None:
    """The best remedy that answers the rule; None where there is nothing but the rule's own advice."""
    return next((r for r in document.recommendations if rule in r.rules and not r.is_the_rules_own), None)


def answer(document: Document, rule: str) -> str:
    """Title and change of that remedy in one line; '' where there is none."""
    one = recommended(document, rule)
    if one is None:
        return ""
    return f"{one.title} ({one.text}{'; verify first' if one.verify_first else ''})"
