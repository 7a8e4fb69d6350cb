"""What a line in a terminal is made of: wrapped text, and the colour of a level where colour is asked for."""

from __future__ import annotations

import textwrap

from gpudiag.report._render.blocks import MARKS
from gpudiag.report.format import safe

COLORS = {
    "critical": "1;31",
    "warning": "33",
    "note": "36",
    "clear": "32",
    "unknown": "35",
    "none": "2",
    "error": "1;31",
}
"""ANSI colours by level; the mark and the word say the same without them."""


def wrap(text: str, width: int, later: str, first: str = "") -> list[str]:
    """Lines of at most ``width`` characters without control characters or `code` marks; words stay whole."""
    return textwrap.wrap(
        safe(text).replace("`", ""),
        width,
        initial_indent=first,
        subsequent_indent=later,
        break_long_words=False,
        break_on_hyphens=False,
    )


def paint(text: str, level: str, color: bool) -> str:
    """The text in the colour of the level."""
    return f"\x1b[{COLORS[level]}m{text}\x1b[0m" if color else text


def marked(level: str, word: str, color: bool) -> str:
    """Mark and word of a level."""
    return paint(f"{MARKS[level]} {word}", level, color)
