"""Commands for a shell that end a sentence, such as how to record what is missing: a page shows them in a box."""

from __future__ import annotations

import re

_COMMAND = re.compile(r"(.*?:) `?((?:nvidia-smi|gpudiag)(?: (?:[A-Z]+|[^\sA-Z`][^\s`]*))*?)`?\.?", re.DOTALL)
"""Words of a command are in small letters or capitals, so that no sentence after it is taken along."""
LEAST_CHARS = 40
"""A shorter command stands well within its sentence."""


def split_command(text: str) -> tuple[str, str]:
    """The words before a command that ends the text, and the command; "" for a text without one."""
    found = _COMMAND.fullmatch(text)
    return (found[1], found[2].removesuffix(".")) if found and len(found[2]) >= LEAST_CHARS else (text, "")


def instead(text: str, said: str, place: str) -> str:
    """The text, which names a ``place`` instead of its command where that stands there already: in ``said``."""
    words, command = split_command(text)
    return f"{words.removesuffix(':')} the command {place}." if command and command == split_command(said)[1] else text
