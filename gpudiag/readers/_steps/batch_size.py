"""The samples of a step, as a log states them: ``batch_size=32``, ``Total train batch size (...) = 512``."""

from __future__ import annotations

import re
from typing import NamedTuple

_STATED = re.compile(
    r"(?i)(?<![a-z])(?P<before>(?:[a-z]{1,20}[ _.-]){0,4})batch[ _-]?size(?:\s?\([^)]{0,80}\))?[\"']?"
    r"\s{0,9}(?:[:=|]|\bis\b)?\s{0,9}(?P<n>\d{1,3}(?:,\d{3})+|\d{1,9})(?![\w%]|[.,]\d)"
)
_LOOKED_AT = 4096
_OF_ALL = frozenset(("global", "total", "effective"))
_OF_OTHERS = frozenset(
    (
        "eval", "evaluation", "val", "valid", "validation", "test", "testing", "inference", "predict", "prediction",
        "micro", "mini", "local", "per", "device", "gpu", "instantaneous", "min", "max", "minimum", "maximum",
    )
)  # fmt: skip
"""Words before it that make it the batch of other work, or a part of the samples of a step."""


class BatchSize(NamedTuple):
    """Samples of a step; ``of_all``: the line says that they are those of all GPUs together. None: unknown."""

    n: int | None = None
    of_all: bool = False


UNKNOWN = BatchSize()


def batch_size_of(line: str) -> BatchSize:
    """What a line states; one of all GPUs before another. Two numbers in one line state none."""
    lower = line.lower()
    if "batch" not in lower or "size" not in lower:
        return UNKNOWN
    found = []
    for one in _STATED.finditer(line[:_LOOKED_AT]):
        words = set(re.split(r"[ _.-]", one["before"].lower()))
        if not words & _OF_OTHERS and int(one["n"].replace(",", "")):
            found.append(BatchSize(int(one["n"].replace(",", "")), bool(words & _OF_ALL)))
    best = {one for one in found if one.of_all} or set(found)
    return best.pop() if len(best) == 1 else UNKNOWN


class StatedBatch:
    """The batch size that holds for the next step of one log: as its own line states it, else the lines before."""

    def __init__(self) -> None:
        self._before: set[BatchSize] = set()

    def of_step(self, line: str) -> BatchSize:
        """That of a step with this line; lines before it that disagree leave it unknown."""
        own = batch_size_of(line)
        best = {one for one in self._before if one.of_all} or self._before
        return own if own.n else next(iter(best)) if len(best) == 1 else UNKNOWN

    def take(self, line: str) -> None:
        """Take a line that tells of no step."""
        found = batch_size_of(line)
        if found.n:
            self._before.add(found)
