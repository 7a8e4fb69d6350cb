"""Slurm's lists of nodes: ``node[01-03,7],gpu5`` as names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

MOST_NODES = 100_000
_PIECE = re.compile(r"[^\[\]]+|\[([^\[\]]*)\]")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")


def expanded(text: str) -> tuple[str, ...]:
    """The names, each once, in their order; nothing of what is no list of nodes (``None assigned``).

    Raises ValueError for brackets that hold no ranges of numbers, and for more than MOST_NODES names.
    """
    names: dict[str, None] = {}
    for one in _apart(text.strip()):
        if one and not one.startswith(("None", "(", "Unknown", "N/A")):
            names |= dict.fromkeys(_of(one))
    return tuple(names)


def _apart(text: str) -> Iterator[str]:
    """What stands between the commas that are in no brackets."""
    held: list[str] = []
    for part in text.split(","):
        held.append(part)
        inside = part.rfind("[") > part.rfind("]") or (len(held) > 1 and "]" not in part)
        if not inside:
            yield ",".join(held)
            held = []
    if held:
        yield ",".join(held)


def _of(one: str) -> Iterator[str]:
    pieces = [list(_numbers(found[1])) if found[1] is not None else [found[0]] for found in _PIECE.finditer(one)]
    if "".join(found[0] for found in _PIECE.finditer(one)) != one:
        raise ValueError(f"{one[:60]!r} is no list of nodes")
    size = 1
    for piece in pieces:
        size *= len(piece)
    if size > MOST_NODES:
        raise ValueError(f"{one[:60]!r} is more than {MOST_NODES:,} nodes")
    return map("".join, product(*pieces))


def _numbers(ranges: str) -> Iterator[str]:
    """``01-03,7`` as 01, 02, 03, 7."""
    for one in ranges.split(","):
        found = _RANGE.fullmatch(one)
        if found is None or int(found[2] or found[1]) - int(found[1]) > MOST_NODES:
            raise ValueError(f"{one[:60]!r} is no range of numbers")
        width = len(found[1])
        for number in range(int(found[1]), int(found[2] or found[1]) + 1):
            yield str(number).zfill(width)
