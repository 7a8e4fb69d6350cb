"""How one log writes the time of its lines: as moments, without the year, or as a time of day alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime, time, timedelta
from itertools import pairwise

from gpudiag.patterns import late
from gpudiag.readers._batches.line_timestamps import WITHIN, iso_of, line_timestamp
from gpudiag.readers._shape.timestamp_forms import TIMESTAMP

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_OF_DAY = r"(?P<clock>\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)"
_WRITER = r"(?:\[(?:rank|default)?_?\d{1,5}\]:? ?|\d{1,5}: )?\W{0,3}(?:(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)\W{1,3})?"
_NO_YEAR = late(
    rf"{_WRITER}(?:(?P<first>\d\d)[-/](?P<second>\d\d) "  # detectron2, mmengine, vLLM
    rf"|[IWEFD](?P<month>\d\d)(?P<day>\d\d) "  # glog, absl
    rf"|(?P<name>{'|'.join(_MONTHS)}) {{1,2}}(?P<of_month>\d{{1,2}}) ){_OF_DAY}(?!\d)"  # syslog
)
_TIME = late(rf"{_WRITER}{_OF_DAY}(?=[\]\s|)-]|$)")
_LEAP = 2000
"""Any leap year: of timestamps without a year only the differences count."""
_HALF_A_YEAR, _HALF_A_DAY = timedelta(days=180), timedelta(hours=12)
_DAYS = "day or month"
FORMS = {"moment": 0, _DAYS: 1, "no year": 2, "time of day": 3}


class LineClock:
    """Takes the lines of one log in their order.

    ``dated``: its timestamps are moments. Others have an unknown date: only the time between them counts. ``open``: a
    date may be read with the day first or the month first, and nothing in the log decides.
    """

    def __init__(self, form: str, *, day_first: bool | None = None) -> None:
        self._form, self._day_first = form, bool(day_first)
        self.open = form == _DAYS and day_first is None
        self.dated = form in ("moment", _DAYS) and not self.open
        self._last: datetime | None = None
        self._winter, self._leap = False, False  # whether lines lay before March, and on the last day of February

    @classmethod
    def of(cls, head: Sequence[str], lines: Iterable[str] = (), *, day_first: bool | None = None) -> LineClock:
        """The clock of a log with these lines at its head. All its ``lines`` are only looked at where they decide what
        is the day: a number above 12, or dates that go on from each other. ``day_first`` is taken where they do not.
        """
        n = dict.fromkeys(FORMS, 0)
        for line in head:
            if form := _form_of(line):
                n[form] += 1
        form = max(FORMS, key=lambda name: (n[name], -FORMS[name]))
        if not n[form]:
            return cls("moment")
        first = _days_first(lines or head, form) if form in (_DAYS, "no year") else None
        return cls(form, day_first=day_first if first is None else first)

    def stamp(self, line: str) -> str:
        """The timestamp of the next line as ISO 8601 text, in a year or on a day of our own where it has none; empty
        for a line without one.
        """
        if self._form == "moment":
            return line_timestamp(line)
        if self._form == _DAYS:
            match = TIMESTAMP.search(line[:WITHIN])
            parts = re.split(r"\D", match["date"]) if match else []
            if not match or len(parts) != 3 or len(parts[2]) != 4:
                return line_timestamp(line) if self.dated else ""
            day, month = parts[:2] if self._day_first else parts[1::-1]
            return iso_of(match, f"{parts[2]}-{month:0>2}-{day:0>2}")
        try:
            moment = self._of_year(line) if self._form == "no year" else self._of_day(line)
        except ValueError:
            return ""
        self._last = moment or self._last
        return moment.isoformat() if moment else ""

    def _of_year(self, line: str) -> datetime | None:
        """A moment in our year, or in the next where it would lie far before the line before."""
        if not (match := _NO_YEAR.match(line)):
            return None
        month, day = _month_and_day(match, day_first=self._day_first)
        self._winter, self._leap = self._winter or month < 3, self._leap or (month, day) == (2, 29)
        moment = datetime.combine(date(_LEAP, month, day), _time(match["clock"]))
        if self._last is not None and moment < self._last - _HALF_A_YEAR:
            return moment.replace(year=_LEAP + 1)
        between = month > 2 and self._winter and not self._leap
        return moment - timedelta(days=1) if between else moment  # what follows the 28th is the first of March

    def _of_day(self, line: str) -> datetime | None:
        """A moment on the day that puts it nearest to the line before: after midnight on the next."""
        if not (match := _TIME.match(line)):
            return None
        last = self._last or datetime(_LEAP, 1, 2)
        moment = datetime.combine(last.date() if self._last else date(_LEAP, 1, 2), _time(match["clock"]))
        if self._last is None or abs(moment - last) <= _HALF_A_DAY:
            return moment
        return moment + timedelta(days=1 if moment < last else -1)


def _form_of(line: str) -> str:
    if line_timestamp(line):
        return "moment"
    if (match := TIMESTAMP.search(line[:WITHIN])) and match["seconds"] and not match["date"].isdecimal():
        return _DAYS
    if _NO_YEAR.match(line):
        return "no year"
    return "time of day" if _TIME.match(line) else ""


def _time(clock: str) -> time:
    return time.fromisoformat(clock.replace(",", "."))


def _month_and_day(match: re.Match[str], *, day_first: bool) -> tuple[int, int]:
    if match["first"]:
        numbers = int(match["first"]), int(match["second"])
        return numbers[::-1] if day_first else numbers
    if match["name"]:
        return _MONTHS.index(match["name"]) + 1, int(match["of_month"])
    return int(match["month"]), int(match["day"])


def _days_first(lines: Iterable[str], form: str) -> bool | None:
    """Whether the day stands first in the dates; None where nothing tells, as where all are of one day."""
    dates = _numbers(lines, form)
    if any(first > 12 for first, _, _ in dates):
        return True
    if any(second > 12 for _, second, _ in dates) or all(first == second for first, second, _ in dates):
        return False
    jumps = []
    for days in ([date(year, second, first) for first, second, year in dates], [date(y, m, d) for m, d, y in dates]):
        back = sum(later < earlier for earlier, later in pairwise(days))
        jumps.append((back, max(days) - min(days)))
    return None if jumps[0] == jumps[1] else jumps[0] < jumps[1]


def _numbers(lines: Iterable[str], form: str) -> list[tuple[int, int, int]]:
    """The two numbers of each date that may be the day or the month, and its year, in the order of the lines."""
    found: list[tuple[int, int, int]] = []
    for line in lines:
        match = TIMESTAMP.search(line[:WITHIN]) if form == _DAYS else _NO_YEAR.match(line)
        if not match:
            continue
        parts = re.split(r"\D", match["date"]) if form == _DAYS else [match["first"], match["second"], str(_LEAP)]
        if len(parts) != 3 or not parts[0] or len(parts[2]) != 4:
            continue
        first, second, year = map(int, parts)
        if first and second and year and min(first, second) <= 12 and (not found or found[-1] != (first, second, year)):
            found.append((first, second, year))
    return found
