"""Numbers as logs of trainings write them: seconds, rates and clocks."""

from __future__ import annotations

import math
import re

LENGTH = (
    r"(?P<clock>\d{1,5}(?::\d\d){1,2}(?:\.\d{1,9})?)"
    r"|(?P<parts>\d{1,9} ?(?:days?|d|hours?|hrs?|h|minutes?|mins?|m)"
    r"(?:,? ?\d{1,9}(?:\.\d{1,9})? ?(?:hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)){1,3}\b(?!\s?/))"
    r"|(?P<number>[\d.]{1,15})\s*(?P<unit>ms|mins?|minutes?|m|hours?|hrs?|h|secs?|seconds?|s)\b"
)
"""A length of time: a clock, numbers with their units such as ``1h 2m 3s``, or one."""
_UNIT_S = {"ms": 0.001, "m": 60.0, "h": 3600.0}

_CLOCK = re.compile(r"(?:(\d{1,5}) days?,? )?(?:(\d{1,5}):)?(\d{1,5}):([0-5]?\d(?:\.\d{1,9})?)")
_PART = r"(?:(\d{{1,9}}(?:\.\d{{1,9}})?) ?{} ?)?"
_PARTS = re.compile(
    "".join(map(_PART.format, ("d(?:ays?)?", "h(?:ours?|rs?)?", "m(?:in(?:ute)?s?)?", "s(?:ec(?:ond)?s?)?", "ms")))
)
_PARTS_S = (86_400.0, 3600.0, 60.0, 1.0, 0.001)


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


def length_s(found: re.Match[str]) -> float:
    """Seconds of a ``LENGTH`` that was found."""
    if found["clock"]:
        return clock_s(found["clock"])
    if found["parts"]:
        return duration_s(found["parts"].lower().replace(",", ""))
    unit = found["unit"].lower()
    return number(found["number"]) * (_UNIT_S["ms"] if unit == "ms" else _UNIT_S.get(unit[0], 1.0))


def duration_s(text: str) -> float:
    """Seconds of a text that is nothing but a length of time: ``0:01:00``, ``1 day, 0:01:00`` or ``1m 03s``; NaN for
    another.
    """
    clock = _CLOCK.fullmatch(text)
    if clock:
        days, hours, minutes, seconds = (float(part or 0) for part in clock.groups())
        return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    parts = _PARTS.fullmatch(text)
    if not parts or not any(parts.groups()):
        return math.nan
    return sum(float(part) * unit_s for part, unit_s in zip(parts.groups(), _PARTS_S, strict=True) if part)


def is_clock(text: str) -> bool:
    """Whether a text is a length of time, or a time of day, as hours, minutes and seconds."""
    return _CLOCK.fullmatch(text) is not None
