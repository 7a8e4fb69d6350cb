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


def with_links(text: str) -> str:
    """The text for a page beside methods.md."""
    return _REFERENCE.sub(lambda found: f"({' and '.join(_link(int(n)) for n in found.groups() if n)})", text)


def _link(number: int) -> str:
    return f"[methods {number}](methods.md#{number}-{SECTIONS[number]})"
