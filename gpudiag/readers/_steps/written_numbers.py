"""Numbers as logs of trainings write them: seconds, rates and clocks."""

from __future__ import annotations

import math


def number(text: str) -> float:
    """The number; NaN for text that only looks like one."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def each_s(rate: float) -> float:
    """Seconds of one, at so many a second; NaN for none."""
    return 1 / rate if rate > 0 else math.nan


def clock_s(text: str) -> float:
    """Seconds of ``[D days, ][H:]MM:SS``, or of plain seconds."""
    days, _, clock = text.rpartition(", ")
    total = 0.0
    for part in clock.split(":"):
        total = 60 * total + number(part)
    return total + 86_400 * (int(days.split()[0]) if days else 0)
