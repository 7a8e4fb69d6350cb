"""Lines that state a time by themselves: output of ``date``, decorated timestamps, the Windows prompt's clock."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from gpudiag.readers._shape.timestamp_forms import TIMESTAMP, parts_order
from gpudiag.units import FIRST_YEAR, LAST_YEAR


@dataclass(frozen=True)
class Moment:
    """The time a line of prose states. ``utc`` tells whether its zone was stated and understood.

    ``zone`` is the abbreviation it carries, if any; ``day`` and ``clock`` tell which parts it has.
    """

    timestamp: datetime
    utc: bool = False
    zone: str = ""
    day: bool = True
    clock: bool = True


_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_OFFSETS_H = {
    "UTC": 0, "GMT": 0, "Z": 0, "EST": -5, "EDT": -4, "MDT": -6, "PST": -8, "PDT": -7, "CET": 1, "CEST": 2,
    "EET": 2, "EEST": 3, "WEST": 1, "MSK": 3, "JST": 9, "KST": 9, "AEST": 10, "AEDT": 11, "NZST": 12, "NZDT": 13,
}  # fmt: skip
"""Abbreviations that mean one offset. CST, IST, BST, MST ... mean several and are left to the run's zone."""

_NAMED = re.compile(
    r"(?:[A-Z][a-z]{2},? +)?(?:(?P<month>[A-Z][a-z]{2}) +(?P<day>\d{1,2})|(?P<day2>\d{1,2}) +(?P<month2>[A-Z][a-z]{2}))"
    r"(?:,? +(?P<year>\d{4}))?,? +(?P<clock>\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?)(?: ?(?P<half>[AP]M))?"
    r"(?: +(?P<zone>[A-Z]{1,5}|[+-]\d{2}:?\d{2}))?(?: +(?P<year2>\d{4}))?"
)
_WINDOWS_DAY = re.compile(r"(?:[A-Z][a-z]{2} )?(?P<month>\d{1,2})/(?P<day>\d{1,2})/(?P<year>\d{4})")
_WINDOWS_CLOCK = re.compile(r"(?P<clock>\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?)(?: ?(?P<half>[AP]M))?")


def read_moment(line: str) -> Moment | None:
    """The time that a whole line states: output of ``date``, a timestamp with or without decoration around it."""
    text = line.strip().strip("=-*#<>[]()| ").strip()
    if not 4 < len(text) < 60:
        return None
    if match := TIMESTAMP.fullmatch(text):
        return _plain_moment(match)
    if match := _NAMED.fullmatch(text):
        return _named_moment(match)
    if match := _WINDOWS_DAY.fullmatch(text):
        day = _moment(int(match["year"]), int(match["month"]), int(match["day"]), "0:00", None)
        return day and replace(day, clock=False)
    if match := _WINDOWS_CLOCK.fullmatch(text):
        clock = _moment(FIRST_YEAR, 1, 1, match["clock"], match["half"])
        return clock and replace(clock, timestamp=clock.timestamp.replace(year=1970), day=False)
    return None


def _plain_moment(match: re.Match[str]) -> Moment | None:
    date = match["date"]
    numbers = re.findall(r"\d+", date) if not date.isdigit() else [date[:4], date[4:6], date[6:]]
    parts = {name: int(number) for name, number in zip(parts_order(match), numbers, strict=True)}
    return _moment(parts["Y"], parts["m"], parts["d"], match["clock"], match["half"], (match["zone"] or "").strip())


def _named_moment(match: re.Match[str]) -> Moment | None:
    month = (match["month"] or match["month2"]).lower()
    year = match["year"] or match["year2"]
    if month not in _MONTHS or year is None:
        return None
    day = int(match["day"] or match["day2"])
    return _moment(int(year), _MONTHS.index(month) + 1, day, match["clock"], match["half"], match["zone"] or "")


def _moment(year: int, month: int, day: int, clock: str, half: str | None, zone: str = "") -> Moment | None:
    if not FIRST_YEAR <= year < LAST_YEAR:
        return None
    hours, minutes, *rest = clock.replace(",", ".").split(":")
    hour = int(hours)
    if half:
        hour = hour % 12 + (12 if half.strip().upper() == "PM" else 0)
    try:
        timestamp = datetime(year, month, day, hour, int(minutes)) + timedelta(seconds=float(rest[0]) if rest else 0.0)
    except ValueError:
        return None
    offset = offset_of(zone)
    return Moment(timestamp - (offset or timedelta()), offset is not None, zone)


def offset_of(zone: str) -> timedelta | None:
    """How far a zone is from UTC, by its abbreviation or as ``+0530``; None if that means several offsets or none."""
    if zone in _OFFSETS_H:
        return timedelta(hours=_OFFSETS_H[zone])
    if match := re.fullmatch(r"([+-])(\d\d):?(\d\d)", zone):
        size = timedelta(hours=int(match[2]), minutes=int(match[3]))
        return size if match[1] == "+" else -size
    return None
