"""On which day telemetry lies that has times of day alone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from typing import NamedTuple

import numpy as np

from gpudiag.timezones import localize
from gpudiag.units import DAY_S, SECOND_US

DAY_US = round(DAY_S * SECOND_US)


class Day(NamedTuple):
    """``number``: of the day of the first sample, counted from 1970; ``offset_s``: what is added to a moment (UTC) for
    the time of the telemetry as it was read.
    """

    number: int
    offset_s: float

    @property
    def date(self) -> str:
        """As in 2026-03-01."""
        return f"{datetime.fromtimestamp(self.number * DAY_S, UTC):%Y-%m-%d}"


def on_day(time: np.ndarray, number: int, zone: tzinfo) -> np.ndarray:
    """Times of a day (datetime64, as of 1970) as UTC, where the first day has that number and clocks show ``zone``."""
    ordered, place = np.unique(time, return_inverse=True)
    moments: np.ndarray = localize(ordered + np.timedelta64(number * DAY_US, "us"), zone).utc
    return moments[place]


def days_with(first_s: float, last_s: float, start_s: np.ndarray, end_s: np.ndarray, zone: tzinfo) -> Iterator[Day]:
    """The days on which telemetry that lasts so long shares time with any of the intervals (UTC)."""
    low, high = int((start_s.min() - last_s) // DAY_S) - 1, int((end_s.max() - first_s) // DAY_S) + 1
    for number in range(low, high + 1):
        day = _day(first_s, number, zone)
        if bool(((start_s + day.offset_s < last_s) & (end_s + day.offset_s > first_s)).any()):
            yield day


def nearest_day(first_s: float, last_s: float, middle_s: float, zone: tzinfo) -> Day:
    """The day that puts the middle of the telemetry nearest to a moment."""
    about = int((middle_s - (first_s + last_s) / 2) // DAY_S)
    days = [_day(first_s, number, zone) for number in range(about - 1, about + 3)]
    return min(days, key=lambda day: abs(middle_s + day.offset_s - (first_s + last_s) / 2))


def _day(first_s: float, number: int, zone: tzinfo) -> Day:
    first = np.array([round(first_s * SECOND_US)], "datetime64[us]")
    moment = float(on_day(first, number, zone).astype(np.int64)[0]) / SECOND_US
    return Day(number, first_s - moment)
