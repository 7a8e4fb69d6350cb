"""Plain lines of at most a width: words stay whole, so that a path or a command in them can be copied."""

from __future__ import annotations

import textwrap

WIDTH = 80
"""Columns of a terminal that says nothing of its own."""


def folded(line: str, width: int = WIDTH, later: int = 0) -> str:
    """The line in as many lines as it needs, those after the first that far indented; only a longer word sticks out."""
    indent = line[: len(line) - len(line.lstrip())]
    return textwrap.fill(
        line.strip(), max(width, 40), initial_indent=indent, subsequent_indent=indent + " " * later,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
