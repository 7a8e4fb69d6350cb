"""Text of a run as an assistant gets it: names and lines of logs are data, and could be meant to be obeyed.

Nothing can make them harmless. They come in one line each, without control characters and passwords, and cut where they
are longer than any name or sentence.
"""

from __future__ import annotations

from gpudiag.plain_data import Json
from gpudiag.readers._io.url import without_passwords
from gpudiag.report.format import safe

LONGEST = 2000
"""Characters of one text; the longest sentence of gpudiag itself has a quarter of that."""
MOST = 24_000
"""Characters of an answer's text: some 6,000 tokens."""
CUT = " … (cut)"
SEVERAL_LINES = ("code", "why")
"""Texts of gpudiag's own that have paragraphs or lines of code."""


def quoted(held: Json, *, lines: bool = False) -> Json:
    """JSON whose texts are safe to hand on; keys are texts of a run as well."""
    if isinstance(held, str):
        said = without_passwords(held)
        return _shortened("\n".join(map(safe, said.splitlines())) if lines else safe(said), LONGEST)
    if isinstance(held, dict):
        return {str(quoted(name)): quoted(value, lines=name in SEVERAL_LINES) for name, value in held.items()}
    if isinstance(held, list):
        return [quoted(one) for one in held]
    return held


def text(lines: str) -> str:
    """The text of an answer, rendered before, without passwords and not longer than a context can take."""
    return _shortened(without_passwords(lines).rstrip(), MOST)


def one_line(sentence: object) -> str:
    """An error as one sentence."""
    return _shortened(safe(without_passwords(str(sentence))), LONGEST)


def _shortened(said: str, most: int) -> str:
    return said if len(said) <= most else said[: most - len(CUT)] + CUT
