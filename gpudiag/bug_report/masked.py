"""Messages without what came from a run: of their words, those stay that gpudiag's own code holds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from gpudiag.readers._io.url import HIDDEN

_PACKAGE = Path(__file__).resolve().parent.parent
_QUOTED = re.compile(r"(?<!\w)'[^'\n]*'(?!\w)|\"[^\"\n]*\"|`[^`\n]*`|“[^”\n]*”")
"""Names and extracts of files stand in quotes. An apostrophe within a word is none."""
_EXTRACT = re.compile(r"(\d+ x [^:()]+): [^()]*")
"""A problem with an extract of its first case, as an error quotes it: ``3 x torn row, first at line 2: 0, 17``."""
_CHUNK = re.compile(r"[^\s()\[\]{}<>,;|]+")
_MARKS = ".:!?%…"
_NUMBER = re.compile(r"\d+|\d{4}-\d\d-\d\d|\d\d:\d\d(:\d\d)?")
"""Counts, lines, dates and times. A number with a fraction may be the value of a parameter."""
_WORD = re.compile(r"[^\W_]+")
SHORTEST = 2
"""Letters of a name that is taken out wherever it stands; a shorter one is no name to be known by."""


class Masked:
    """Takes out of messages whatever gpudiag does not say itself, and names that are known to be private.

    Args:
        labels: what stands instead of each path or URL, by how messages spell it.
        people: names of hosts and users, which stand nowhere, names of files included.
        names: of studies, parameters and the like. One that is a single word of gpudiag's own tells nothing.
    """

    def __init__(self, labels: Mapping[str, str], people: Iterable[str], names: Iterable[str]) -> None:
        self._labels = {spelled: label for spelled, label in labels.items() if not _tells_nothing(spelled)}
        self._paths = _any_of(self._labels)
        self._people = _any_of(name for name in people if len(name) >= SHORTEST)
        self._names = _any_of(name for name in names if len(name) >= SHORTEST and not _tells_nothing(name))

    def message(self, text: str) -> str:
        """A message in one line: paths as labels, words of gpudiag, whole numbers, and ``***`` for everything else."""
        parts = self._paths.split(" ".join(text.split()))
        return "".join(self.name(self._labels[part]) if at % 2 else self._words(part) for at, part in enumerate(parts))

    def name(self, text: str) -> str:
        """The name of a file within the run, without names of hosts and users."""
        return self._people.sub(HIDDEN, text)

    def _words(self, text: str) -> str:
        text = _EXTRACT.sub(rf"\1: {HIDDEN}", _QUOTED.sub(f"'{HIDDEN}'", text))
        return _CHUNK.sub(_chunk, self._names.sub(HIDDEN, self.name(text)))


def _any_of(texts: Iterable[str]) -> re.Pattern[str]:
    """One group that matches any of the texts as a whole, the longest first; without texts it matches nothing."""
    longest = sorted({text for text in texts if text}, key=len, reverse=True)
    return re.compile(rf"(?<![^\W_])({'|'.join(map(re.escape, longest)) or '(?!)'})(?![^\W_])")


def _tells_nothing(name: str) -> bool:
    return name.lower() in _own_words()


def _chunk(found: re.Match[str]) -> str:
    chunk = found[0]
    core = chunk.strip(_MARKS + "'\"*")
    if not any(character.isalnum() for character in core) or _NUMBER.fullmatch(core):
        return chunk
    option = core.lstrip("-")
    parts = re.split(r"[-_.&'’]", option)
    if option[0].isalpha() and all(part.lower() in _own_words() or not part for part in parts):
        return chunk
    return HIDDEN + chunk[len(chunk.rstrip(_MARKS)) :]


@cache
def _own_words() -> frozenset[str]:
    """Every word in the sources of gpudiag; without sources none, and then all words are taken out."""
    texts = (path.read_text(encoding="utf-8").lower() for path in _PACKAGE.rglob("*.py"))
    return frozenset(word for text in texts for word in _WORD.findall(text))
