"""What to do about a finding: the recommendation that answers it, else what its rule says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def recommended(document: Mapping[str, Any], rule: str) -> Mapping[str, Any] | None:
    """The best recommendation that answers the rule and makes a change; None where there is none."""
    return next((r for r in document.get("recommendations", ()) if "changes" in r and rule in r["rules"]), None)


def answer(document: Mapping[str, Any], rule: str) -> str:
    """Title and change of that recommendation in one line; '' where there is none."""
    one = recommended(document, rule)
    if one is None:
        return ""
    change = one["changes"][0]
    present = "not stated" if change["present"] is None else change["present"]
    first = "; verify first" if one["verify_first"] else ""
    return f"{one['title']} ({change['what']}: {present} → {change['proposed']}{first})"
