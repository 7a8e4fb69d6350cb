"""References of docstrings to docs/methods.md: ``(METHODS 4)`` is section 4, a link there and nothing elsewhere."""

from __future__ import annotations

import re

SECTIONS = (
    "beliefs-that-do-not-hold",
    "what-the-metrics-mean",
    "time",
    "the-ledger",
    "parallelism",
    "pruning",
    "memory-and-failures",
    "intervals",
    "anomalies",
    "bottlenecks",
    "gains",
)
"""What the sections of docs/methods.md are called in links, by number."""
_REFERENCE = re.compile(r"\(METHODS (\d+)(?: and (\d+))?\)")


def without_references(text: str) -> str:
    """The text for a reader who has no docs/methods.md at hand."""
    return re.sub(rf"\s*{_REFERENCE.pattern}", "", text)


def with_links(text: str, page: str = "methods.md") -> str:
    """The text with links to docs/methods.md, which is at that address."""
    return _REFERENCE.sub(lambda found: f"({' and '.join(_link(int(n), page) for n in found.groups() if n)})", text)


def _link(number: int, page: str) -> str:
    return f"[methods {number}]({page}#{number}-{SECTIONS[number]})"
