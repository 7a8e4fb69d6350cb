"""Spans of time as two sorted arrays, and the time line cut where anything begins or ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Spans(NamedTuple):
    """Disjoint spans in the order of their time; each holds its start and not its end."""

    start: np.ndarray
    end: np.ndarray

    def holds(self, at: np.ndarray) -> np.ndarray:
        """Whether each instant lies in a span."""
        return self.number(at) >= 0

    def number(self, at: np.ndarray) -> np.ndarray:
        """The span in which each instant lies, counted from 0; -1 in none."""
        if not len(self.start):
            return np.full(len(at), -1)
        found = np.searchsorted(self.start, at, "right") - 1
        return np.where((found >= 0) & (at < self.end[found]), found, -1)

    @property
    def total(self) -> float:
        return float((self.end - self.start).sum())


def union(start: np.ndarray, end: np.ndarray, *, apart: bool = False) -> Spans:
    """What is covered by any of these, which may overlap; empty ones count nothing. ``apart``: spans that only touch
    stay two.
    """
    kept = end > start
    start, end = start[kept], end[kept]
    if not len(start):
        return Spans(start, end)
    order = np.argsort(start, kind="stable")
    start, reach = start[order], np.maximum.accumulate(end[order])
    opens = np.append(True, start[1:] >= reach[:-1] if apart else start[1:] > reach[:-1])
    closes = np.append(opens[1:], True)
    return Spans(start[opens], reach[closes])


def pieces(spans: Sequence[Spans], within: Spans) -> tuple[np.ndarray, np.ndarray]:
    """The time of ``within`` cut at every start and end: middle and length of each piece.

    No span begins or ends within a piece, so that its middle speaks for all of it.
    """
    edges = np.unique(np.concatenate([edge for one in (*spans, within) for edge in one]))
    middle, length = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
    inside = within.holds(middle)
    return middle[inside], length[inside]
