"""Which GPUs of a node a job had: ``gpu:a100:4(IDX:0-3)``, as slurmctld counts the devices of the node."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

MOST_GPUS = 1024
"""Of one node: a larger number is none."""
_LONGEST = 4096
"""Characters of what is said of the GPUs of one node."""
_PIECE = re.compile(r"gpu(?::(?P<kind>[^:(,]+))??(?::(?P<n>\d{1,4}))?(?:\((?P<how>[^()]*)\))?", re.IGNORECASE)
_COMMA = re.compile(r",(?![^(]*\))")
_RANGE = re.compile(r"(\d{1,4})(?:-(\d{1,4}))?")
_SLICE = re.compile(r"\d+[cg]\.|mig", re.IGNORECASE)
"""A slice of a GPU, which is counted by itself: its number is that of no GPU."""


def n_gpus(gres: str) -> int | None:
    """How many GPUs ``gpu:a100:4,shard:2`` holds, of one node or several; None where it names none, or not how many."""
    found = [piece for piece in map(_PIECE.fullmatch, _COMMA.split(gres[:_LONGEST])) if piece]
    counts = [int(piece["n"]) if piece["n"] else len(_listed(piece["how"] or "")) for piece in found]
    return sum(counts) if counts and all(counts) else None


def gpu_numbers(gres: str) -> tuple[int, ...]:
    """The numbers, in order; none where one is not stated, or is of a part of a GPU."""
    out: list[int] = []
    for text in _COMMA.split(gres) if len(gres) < _LONGEST else ():
        piece = _PIECE.fullmatch(text)
        if piece is None:
            continue
        numbers = _listed(piece["how"] or "")
        if not numbers or _SLICE.search(piece["kind"] or "") or (piece["n"] and int(piece["n"]) != len(numbers)):
            return ()
        out += numbers
    return tuple(sorted(out)) if len(set(out)) == len(out) else ()


def _listed(how: str) -> list[int]:
    """``IDX:0-1,3`` as 0, 1, 3."""
    label, _, ranges = how.partition(":")
    out: list[int] = []
    for one in ranges.split(",") if label.upper() == "IDX" else ():
        found = _RANGE.fullmatch(one)
        if found is None or int(found[2] or found[1]) >= MOST_GPUS:
            return []
        out += range(int(found[1]), int(found[2] or found[1]) + 1)
    return out


def written(by_node: Mapping[str, Iterable[int]]) -> str:
    """``node1:0,1;node2:0``; empty where the numbers on one node are not known."""
    texts = {node: ",".join(map(str, numbers)) for node, numbers in by_node.items()}
    return ";".join(f"{node}:{text}" for node, text in texts.items()) if all(texts.values()) else ""


def by_node(text: str) -> dict[str, tuple[int, ...]]:
    """What was ``written``; nothing of another text."""
    out = {}
    for part in text.split(";"):
        node, _, numbers = part.rpartition(":")
        if not node or not re.fullmatch(r"\d{1,4}(,\d{1,4})*", numbers):
            return {}
        out[node] = tuple(map(int, numbers.split(",")))
    return out
