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
    for day in _days(first_s, np.arange(low, high + 1), zone):
        if bool(((start_s + day.offset_s < last_s) & (end_s + day.offset_s > first_s)).any()):
            yield day


def nearest_day(first_s: float, last_s: float, middle_s: float, zone: tzinfo) -> Day:
    """The day that puts the middle of the telemetry nearest to a moment."""
    about = int((middle_s - (first_s + last_s) / 2) // DAY_S)
    days = _days(first_s, np.arange(about - 1, about + 3), zone)
    return min(days, key=lambda day: abs(middle_s + day.offset_s - (first_s + last_s) / 2))


def _days(first_s: float, numbers: np.ndarray, zone: tzinfo) -> Iterator[Day]:
    """The days of these numbers, told apart by what the clocks of the zone were on each."""
    shown = (round(first_s * SECOND_US) + numbers * DAY_US).astype("datetime64[us]")
    moments = localize(shown, zone).utc.astype(np.int64) / SECOND_US
    yield from (Day(int(number), first_s - float(moment)) for number, moment in zip(numbers, moments, strict=True))
