"""Axes that read well: clock times in a named zone, durations in words, legends above the data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.dates import date2num, num2date
from matplotlib.ticker import FixedLocator, Formatter, FuncFormatter, MaxNLocator, NullLocator

from gpudiag.report.format import duration, safe
from gpudiag.timezones import parse_zone
from gpudiag.units import DAY_S

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

UNITS_S = (("d", DAY_S), ("h", 3600.0), ("min", 60.0), ("s", 1.0), ("ms", 0.001))
MOST_IN_STRIP = 5
"""Names of a legend beside each other: more are wider than the picture, which then shrinks."""
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
UNDATED_YEAR = 1970
CHANGE = timedelta(hours=1)
"""By how much clocks are put forward or back."""
LARGEST = 1e300
"""What an axis can still be drawn to: matplotlib multiplies limits."""
SHORTEST_AXIS_S = 2.0
SHORTEST_S = 0.01
"""Durations below are drawn at it, for zero has no place on a logarithmic axis."""
TICK_STEPS_S = (
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 14400, 21600, 43200,
    DAY_S, 2 * DAY_S, 7 * DAY_S, 14 * DAY_S, 28 * DAY_S,
)  # fmt: skip
DURATION_TICKS_S: tuple[tuple[float, ...], ...] = (
    (
        0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 3, 5, 7, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 420, 600, 900,
        1200, 1800, 2700, 3600, 5400, 7200, 10800, 18000, 28800, 43200, 86400, 172800, 345600, 604800,
    ),
    (0.01, 0.1, 1, 2, 5, 10, 20, 60, 120, 300, 600, 1200, 3600, 7200, 18000, 43200, 86400, 172800, 604800),
    (0.01, 0.1, 1, 10, 60, 600, 3600, 21600, 86400, 604800, 2592000),
)  # fmt: skip
FEWEST_DURATION_TICKS, MOST_DURATION_TICKS = 3, 8


def day_numbers(time: pd.Series) -> np.ndarray:
    """UTC timestamps as matplotlib's days since 1970; NaT becomes NaN."""
    return np.asarray(date2num(time.dt.tz_convert(None).to_numpy()), dtype=float)


class ClockFormatter(Formatter):
    """Clock time on every tick, and the day below the first tick and wherever it changes; the zone's name at the time
    below ticks of an hour that the clocks show twice.
    """

    def __init__(self, zone: tzinfo) -> None:
        self.zone = zone

    def __call__(self, x: float, pos: int | None = None) -> str:
        return f"{num2date(x, tz=self.zone):%Y-%m-%d %H:%M:%S}"

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        # num2date can be a microsecond short of a whole second; a sum in the zone would forget which hour it is of two.
        timestamps = [(num2date(value) + timedelta(microseconds=5)).astimezone(self.zone) for value in values]
        days = [_day(timestamp) for timestamp in timestamps]
        if all(timestamp.hour == timestamp.minute == timestamp.second == 0 for timestamp in timestamps):
            return days
        clock = "%H:%M" if all(timestamp.second == 0 for timestamp in timestamps) else "%H:%M:%S"
        below = [day if i == 0 or day != days[i - 1] else "" for i, day in enumerate(days)]
        names = [f"{timestamp:%Z}" if _repeated_s(timestamp) else "" for timestamp in timestamps]
        return [
            "\n".join(filter(None, (f"{timestamp:{clock}}", " ".join(filter(None, both)))))
            for timestamp, *both in zip(timestamps, below, names, strict=True)
        ]


def _repeated_s(timestamp: datetime) -> float:
    """By how much the clocks are put back where they show this time twice, 0 where they show it once."""
    first, second = (_offset(timestamp.replace(fold=fold)) for fold in (0, 1))
    return max((first - second).total_seconds(), 0.0)


def _offset(timestamp: datetime) -> timedelta:
    return timestamp.utcoffset() or timedelta()


def _day(timestamp: datetime) -> str:
    if timestamp.year == UNDATED_YEAR:
        return f"day {timestamp.timetuple().tm_yday}"
    return f"{timestamp.day} {MONTHS[timestamp.month - 1]}"


def clock_ticks(low: float, high: float, zone: tzinfo, most: int) -> list[float]:
    """At most ``most`` + 1 round instants from ``low`` to ``high`` (day numbers), round on that zone's clocks."""
    step_s = next((step for step in TICK_STEPS_S if (high - low) * DAY_S <= step * most), None)
    step = timedelta(seconds=step_s or DAY_S * math.ceil((high - low) / most))
    first = num2date(low, tz=zone)
    midnight = first.replace(hour=0, minute=0, second=0, microsecond=0)
    # Sums of a timestamp and a step count on the wall clock, so that ticks stay round across a clock change.
    since = first.replace(tzinfo=None) - midnight.replace(tzinfo=None)
    if _offset(num2date(min(low + CHANGE / timedelta(days=1), high), tz=zone)) < _offset(first):
        since -= CHANGE  # clocks are put back, and show again what they showed before the axis began
    timestamp, ticks = midnight + math.floor(since / step) * step, set[float]()
    while float(date2num(timestamp.astimezone(UTC))) <= high:
        twice = _repeated_s(timestamp) >= step.total_seconds()
        for fold in (0, 1) if twice else (0,):
            instant = timestamp.replace(fold=fold).astimezone(UTC)
            shown = step > CHANGE or instant.astimezone(zone).hour == timestamp.hour  # no clock shows an hour left out
            if shown and low <= (tick := float(date2num(instant))) <= high:
                ticks.add(tick)
        timestamp += step
    return sorted(ticks)


def time_axis(ax: Axes, low: float, high: float, timezone: str, *, ticks: int = 9) -> None:
    """Make x a time axis from ``low`` to ``high`` (day numbers) in that zone, which its label names.

    Readers put a log that states no day at the start of 1970, one that states no time at its first instant.
    """
    undated = num2date(high).year == UNDATED_YEAR
    counted = undated and 0 <= low * DAY_S < 60
    zone = UTC if undated else parse_zone(timezone)
    pad = max((high - low) * 0.01, (SHORTEST_AXIS_S / DAY_S - (high - low)) / 2)
    ax.set_xlim(low - pad, high + pad)
    ax.xaxis.set_major_locator(FixedLocator(clock_ticks(low - pad, high + pad, zone, ticks)))
    ax.xaxis.set_major_formatter(ClockFormatter(zone))
    if counted:
        ax.set_xlabel("time since the log began [h:min]")
    elif undated:
        ax.set_xlabel("time of a day not recorded")
    else:
        first, last = num2date(low, tz=zone).year, num2date(high, tz=zone).year
        ax.set_xlabel(f"time in {first if first == last else f'{first} to {last}'} [{timezone}]")


def padded(low: float, high: float) -> tuple[float, float]:
    """Limits of an axis with room beyond both ends, apart even where all values are one or differ by rounding."""
    low, high = (min(max(float(end), -LARGEST), LARGEST) for end in (low, high))
    size = max(abs(low), abs(high))
    pad = 0.05 * (high - low) if high - low > 1e-9 * size else 0.1 * size or 0.5
    return low - pad, high + pad


def duration_scale(ax: Axes, which: str, low: float, high: float) -> None:
    """Make ``which`` ('x' or 'y') a logarithmic axis of seconds with ticks such as 10 s, 1 min, 1 h."""
    low, high = low / 1.3, high * 1.3
    axis = ax.xaxis if which == "x" else ax.yaxis
    (ax.set_xlim if which == "x" else ax.set_ylim)(low, high)
    (ax.set_xscale if which == "x" else ax.set_yscale)("log")
    axis.set_major_locator(FixedLocator(duration_ticks(low, high)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda seconds, _: duration(seconds)))


def duration_ticks(low: float, high: float) -> list[float]:
    """Round durations from ``low`` to ``high`` seconds, the most that can be read."""
    for choices in DURATION_TICKS_S:
        ticks = [tick for tick in choices if low <= tick <= high]
        if len(ticks) <= MOST_DURATION_TICKS:
            break
    if len(ticks) >= FEWEST_DURATION_TICKS:
        return ticks
    _, size = natural_unit(low)
    steps = MaxNLocator(5, steps=[1, 2, 5, 10]).tick_values(low / size, high / size)
    return [float(step * size) for step in steps if low <= step * size <= high]


def count_axis(ax: Axes, which: str, ticks: int = 8) -> None:
    """Whole numbers only on ``which`` ('x' or 'y')."""
    (ax.xaxis if which == "x" else ax.yaxis).set_major_locator(MaxNLocator(ticks, integer=True, min_n_ticks=1))


def legend_above(ax: Axes, handles: Sequence[Artist], columns: int | None = None, *, size: float | None = None) -> None:
    """A legend above the axes, so that it can hide no data: one strip, for more than five names two. ``size`` of its
    letters in points.
    """
    if handles:
        columns = columns or (len(handles) if len(handles) <= MOST_IN_STRIP else math.ceil(len(handles) / 2))
        ax.legend(
            handles=list(handles), loc="lower left", bbox_to_anchor=(0, 1), ncols=columns,
            borderpad=0.2, borderaxespad=0.3, fontsize=size,
        )  # fmt: skip


def gpu_rows(ax: Axes, gpus: Sequence[Any], *, labels: bool = True) -> None:
    """One row a GPU from the top down; every n-th is named where names would touch."""
    every = -(-len(gpus) // 32)
    shown = range(0, len(gpus), every)
    margin = max(0.5, 1.2 - 0.35 * len(gpus))
    ax.set_ylim(len(gpus) - 1 + margin, -margin)
    ax.set_yticks(list(shown), [short(str(gpus[i])) for i in shown])
    ax.tick_params(axis="y", length=0, labelleft=labels)
    ax.grid(visible=False, axis="y")
    if labels:
        ax.set_ylabel("GPU [index]")


def rows_inch(n: int) -> float:
    """Height of a figure with ``n`` rows of GPUs: enough for each up to a page."""
    return min(1.6 + 0.3 * n, 7.0)


def natural_unit(seconds: float) -> tuple[str, float]:
    """The unit in which a duration is spoken of, and its length in seconds."""
    return next((unit for unit in UNITS_S if seconds >= unit[1]), UNITS_S[-1] if seconds > 0 else UNITS_S[-2])


def short(name: str, longest: int = 14) -> str:
    """A name that fits beside an axis; the middle of a long one, such as a UUID, is left out."""
    name = safe(name)
    return name if len(name) <= longest else f"{name[: longest - 7]}…{name[-6:]}"
