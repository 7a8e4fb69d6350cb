"""Stretches of time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

Window: TypeAlias = tuple[int, int]
"""Start and end in microseconds since 1970."""

SILENCE_S = 6 * 3600.0
"""A longer silence of all GPUs ends a session, where no trials say what belongs together (a default without a source:
longer than an outage that somebody mends, shorter than a night)."""

PAUSE_S = 3600.0
"""A shorter stretch without a trial is a gap (a default without a published source)."""


def microseconds(time: pd.Series) -> np.ndarray:
    """UTC timestamps as whole microseconds since 1970, perhaps the column itself; NaT is the least of int64."""
    return time.to_numpy("datetime64[us]").view(np.int64)


def seconds(time: pd.Series | np.ndarray) -> np.ndarray:
    """UTC timestamps as seconds since 1970; NaT is NaN."""
    moments = np.asarray(time, "datetime64[us]")
    return np.where(np.isnat(moments), np.nan, moments.astype(np.int64) / 1e6)


def held_within(
    start: np.ndarray, end: np.ndarray, left: np.ndarray, right: np.ndarray, worth: np.ndarray | None = None
) -> np.ndarray:
    """How much of the spans from ``left`` to ``right`` lies between each start and end, all on one scale of time.

    A span that is cut counts in proportion. ``worth``: what each whole span holds, its length where that is not given.
    """
    if not len(left):
        return np.zeros(len(start))
    each = right - left if worth is None else worth
    upto = np.cumsum(each)
    edges, held = np.column_stack([left, right]).ravel(), np.column_stack([upto - each, upto]).ravel()
    return np.asarray(np.interp(end, edges, held) - np.interp(start, edges, held))


def clipped(windows: list[Window], limits: tuple[int, int]) -> list[Window]:
    """What of the windows lies within the limits."""
    inside = [(max(low, limits[0]), min(high, limits[1])) for low, high in windows]
    return [(low, high) for low, high in inside if low < high]


def overlap(windows: Iterable[Window], apart: Sequence[Window]) -> list[Window]:
    """What of each window lies in windows that are in order and apart: one search each, not one by one."""
    starts, ends = [low for low, _ in apart], [high for _, high in apart]
    out = []
    for low, high in windows:
        met = apart[bisect_right(ends, low) : bisect_left(starts, high)]
        out += [(max(low, start), min(high, end)) for start, end in met]
    return out


def union(spans: Iterable[Window]) -> list[Window]:
    """Windows that overlap or touch as one, in order."""
    out: list[Window] = []
    for low, high in sorted(spans):
        if out and low <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], high))
        else:
            out.append((low, high))
    return out


def without(windows: Iterable[Window], holes: Iterable[Window]) -> list[Window]:
    """What of the windows lies in none of the holes, which are in order and apart."""
    known = list(holes)
    ends = [high for _, high in known]
    out = []
    for start, end in windows:
        at = bisect_right(ends, start)
        while at < len(known) and known[at][0] < end:
            if start < known[at][0]:
                out.append((start, known[at][0]))
            start, at = known[at][1], at + 1
        if start < end:
            out.append((start, end))
    return out


def length_us(windows: Iterable[Window]) -> int:
    """Microseconds of all windows."""
    return sum(high - low for low, high in windows)
