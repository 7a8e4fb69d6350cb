"""Where the documentation has the page of a check."""

from __future__ import annotations

from functools import cache

from gpudiag.rules import RULES

PLACE = "reference/checks/{rule}.html"
"""Below the address at which the documentation is served; it stays, since reports that were written link there."""


def check_address(docs_url: str, rule: str) -> str:
    """The address of that page; '' where nobody said where the documentation is, and for a rule of somebody's own."""
    return f"{docs_url}/{PLACE.format(rule=rule)}" if docs_url and rule in _documented() else ""


@cache
def _documented() -> frozenset[str]:
    return frozenset(rule.id for rule in RULES)
