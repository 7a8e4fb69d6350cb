"""Ticks are round on the zone's clocks, few enough to read, and durations are in words."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.dates import date2num, num2date
from matplotlib.figure import Figure

from gpudiag.plots._draw.axes import ClockFormatter, clock_ticks, duration_scale, padded, time_axis

BERLIN = ZoneInfo("Europe/Berlin")
TAIPEI = ZoneInfo("Asia/Taipei")


def number(*parts: int, zone: ZoneInfo = BERLIN) -> float:
    return float(date2num(datetime(*parts, tzinfo=zone).astimezone(UTC)))


@pytest.mark.slow
@given(st.floats(19000, 21000), st.floats(1e-4, 1000), st.sampled_from(["UTC", "Asia/Kathmandu", "America/New_York"]))
def test_ticks_lie_within_and_are_few(low: float, span: float, zone: str) -> None:
    ticks = clock_ticks(low, low + span, ZoneInfo(zone), 9)
    assert all(low - 1e-6 <= tick <= low + span for tick in ticks)
    assert ticks == sorted(set(ticks))
    assert 2 <= len(ticks) <= 11


def test_ticks_are_round_on_both_sides_of_a_clock_change() -> None:
    ticks = clock_ticks(number(2026, 10, 24, 13), number(2026, 10, 26, 13), BERLIN, 9)
    assert [num2date(tick, tz=BERLIN).hour % 6 for tick in ticks] == [0] * len(ticks)


def test_an_hour_that_the_clocks_show_twice_has_the_ticks_of_both() -> None:
    low = number(2025, 10, 26, 0)
    for step, n in ((30, 11), (60, 6)):
        ticks = clock_ticks(low, low + 5 / 24, BERLIN, n - 1)
        assert np.diff(ticks) * 24 * 60 == pytest.approx([step] * (n - 1), abs=1e-3), "even in time"
        labels = ClockFormatter(BERLIN).format_ticks(ticks)
        assert [label for label in labels if "CE" in label] == (
            ["02:00\nCEST", "02:30\nCEST", "02:00\nCET", "02:30\nCET"] if step == 30 else ["02:00\nCEST", "02:00\nCET"]
        )
    late = [number(2025, 10, 26, 0) + minutes / 24 / 60 for minutes in (150, 180, 210, 240)]
    assert ClockFormatter(BERLIN).format_ticks(late) == ["02:30\n26 Oct CEST", "02:00\nCET", "02:30\nCET", "03:00"]


def test_an_hour_that_the_clocks_leave_out_has_no_tick() -> None:
    low = number(2025, 3, 30, 0)
    ticks = clock_ticks(low, low + 4 / 24, BERLIN, 9)
    assert np.diff(ticks) * 24 * 60 == pytest.approx([30] * 8, abs=1e-3)
    clock = [label.partition("\n")[0] for label in ClockFormatter(BERLIN).format_ticks(ticks)]
    assert clock == ["00:00", "00:30", "01:00", "01:30", "03:00", "03:30", "04:00", "04:30", "05:00"]
    low = number(2025, 3, 30, 3, 10)  # an hour before this, the clocks showed no such time
    clock = ClockFormatter(BERLIN).format_ticks(clock_ticks(low, low + 4 / 24 / 60, BERLIN, 4))
    assert clock == ["03:10\n30 Mar", "03:12", "03:14"]


def test_labels_show_the_day_where_it_changes() -> None:
    ticks = [number(2026, 11, 20, 18, zone=TAIPEI) + i * 0.25 for i in range(3)]
    assert ClockFormatter(TAIPEI).format_ticks(ticks) == ["18:00\n20 Nov", "00:00\n21 Nov", "06:00"]
    days = [number(2026, 11, 20, zone=TAIPEI) + i for i in range(2)]
    assert ClockFormatter(TAIPEI).format_ticks(days) == ["20 Nov", "21 Nov"]


def test_the_axis_names_year_and_zone() -> None:
    ax = Figure().add_subplot()
    time_axis(ax, number(2026, 12, 31, 20), number(2027, 1, 1, 4), "Europe/Berlin")
    assert ax.get_xlabel() == "time in 2026 to 2027 [Europe/Berlin]"


@pytest.mark.parametrize(
    ("low", "label", "first"),
    [
        (0.0, "time since the log began [h:min]", "00:00\nday 1"),
        (0.5, "time of a day not recorded", "12:00"),
    ],
)
def test_a_log_without_dates_shows_none(low: float, label: str, first: str) -> None:
    ax = Figure().add_subplot()
    time_axis(ax, low, low + 0.3, "Asia/Taipei")
    assert ax.get_xlabel() == label
    assert ax.get_xticklabels()[0].get_text().startswith(first)
    assert "Jan" not in "".join(text.get_text() for text in ax.get_xticklabels())


def test_one_instant_still_has_an_axis() -> None:
    ax = Figure().add_subplot()
    time_axis(ax, 20000.0, 20000.0, "UTC")
    low, high = ax.get_xlim()
    assert (high - low) * 86400 == pytest.approx(2)


@pytest.mark.parametrize(
    ("low", "high"), [(2, 900), (0.1, 90000), (100, 100), (3, 4), (620, 860), (0.041, 0.041), (9e5, 9e6)]
)
def test_duration_axis_has_ticks_at_round_durations(low: float, high: float) -> None:
    figure = Figure()
    ax = figure.add_subplot()
    duration_scale(ax, "x", low, high)
    shown = [tick for tick in ax.get_xticks() if ax.get_xlim()[0] <= tick <= ax.get_xlim()[1]]
    labels = [ax.xaxis.get_major_formatter()(tick, 0) for tick in shown]
    assert 2 <= len(labels) == len(set(labels)) <= 8, labels


@pytest.mark.parametrize("value", [0.0, 1e-300, 5.0, 0.1 + 0.2, 1e18, -1e18, 1e300, 1.7e308])
def test_limits_of_values_that_are_all_one_lie_apart(value: float) -> None:
    ax = Figure().add_subplot()
    low, high = padded(value, value)
    ax.set(xlim=(low, high), ylim=padded(value, np.nextafter(value, np.inf)))  # a warning is an error here
    assert low < min(value, 1e300) < high and ax.get_ylim()[0] < ax.get_ylim()[1]


def test_limits_leave_a_twentieth_beyond_both_ends() -> None:
    assert padded(-1.0, 3.0) == pytest.approx((-1.2, 3.2))
