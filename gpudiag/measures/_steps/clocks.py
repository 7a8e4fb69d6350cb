"""The clock of a log: which of its timestamps are moments, and which of its lines it tells apart."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from gpudiag.spans import seconds

WHOLE_SECONDS_S = 10.0
"""A clock that shows whole seconds tells shorter times to no better than a tenth."""
WHOLE_S = 1.0
MOST_DIGITS = 6
EXACT_S = 4e-7
"""Seconds since 1970 as floating-point numbers are off by up to a quarter of a microsecond."""


def in_order(time: np.ndarray) -> np.ndarray:
    """The timestamps without those, as few as may be, that lie before an earlier line's: they are no moments."""
    stamps = time.astype(np.int64)
    known = np.flatnonzero(~np.isnat(time))
    if not len(known) or (np.diff(stamps[known]) >= 0).all():
        return time
    ends: list[int] = []  # the last line of the best sequence of each length, and before each line the one it follows
    values: list[int] = []
    before = np.full(len(time), -1)
    for at in known:
        length = bisect_right(values, stamps[at])
        before[at] = ends[length - 1] if length else -1
        ends[length : length + 1] = [int(at)]
        values[length : length + 1] = [int(stamps[at])]
    out = np.full(len(time), np.datetime64("NaT", "us"))
    line = ends[-1]
    while line >= 0:
        out[line] = time[line]
        line = int(before[line])
    return out


def clock_of(time: np.ndarray, log_s: np.ndarray, elapsed: np.ndarray) -> np.ndarray:
    """Seconds by the timestamps, or by those without a year and the bar's clock where no line has any; NaN unknown."""
    return np.where(np.isnan(log_s), elapsed, log_s) if np.isnat(time).all() else seconds(time)


def tick_of(clock: np.ndarray) -> float:
    """The power of ten of a second of which all times are multiples, one second at most; 0 where none are known."""
    known = clock[~np.isnan(clock)]
    if not len(known):
        return 0.0
    digits = next((n for n in range(MOST_DIGITS) if (np.abs(known - np.round(known, n)) < EXACT_S).all()), MOST_DIGITS)
    return float(10.0**-digits)


def is_coarse(clock: np.ndarray) -> bool:
    """Whether it shows whole seconds."""
    return tick_of(clock) >= WHOLE_S


def apart(clock: np.ndarray, bar: np.ndarray, told: np.ndarray) -> np.ndarray:
    """Lines far enough apart for a clock of whole seconds, the last of each bar, and those on both sides of other work
    that the log tells of: others tell of no time between.
    """
    keep = np.append(np.diff(bar) > 0, True)
    seen, of_bar = -np.inf, -1
    for at in range(len(clock)):
        if bar[at] != of_bar:
            seen, of_bar = -np.inf, bar[at]
        elif told[at]:
            keep[at - 1], seen = True, -np.inf
        keep[at] |= not clock[at] < seen + WHOLE_SECONDS_S
        if keep[at] and not np.isnan(clock[at]):
            seen = clock[at]
    return keep
