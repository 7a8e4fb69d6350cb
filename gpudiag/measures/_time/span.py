"""Windows of time, and the one that a run was narrowed to by :meth:`gpudiag.run.Run.between`."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

import numpy as np

from gpudiag.run import Run

Window = tuple[int, int]
"""Start and end in microseconds since 1970."""

ALWAYS = (int(np.iinfo(np.int64).min), int(np.iinfo(np.int64).max))


def limits_us(run: Run) -> tuple[int, int]:
    """First and last microsecond (since 1970) that count; the ends of int64 where the run was not narrowed."""
    low, high = run.info.between
    return ALWAYS[0] if low is None else low.value // 1000, ALWAYS[1] if high is None else high.value // 1000


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
