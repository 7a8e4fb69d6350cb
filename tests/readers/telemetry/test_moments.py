"""Lines that state a time, and forms of timestamps in columns."""

from __future__ import annotations

from datetime import datetime

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpudiag.readers._shape.moments import read_moment
from gpudiag.readers._shape.timestamp_forms import NVIDIA, swapped, tell_form


@pytest.mark.parametrize(
    ("line", "timestamp", "utc"),
    [
        ("Tue Jun  9 09:00:01 UTC 2020", "2020-06-09 09:00:01", True),
        ("Wed Feb 26 01:50:18 PM EST 2025", "2025-02-26 18:50:18", True),
        ("Mon Feb  9 00:38:34 CST 2026", "2026-02-09 00:38:34", False),
        ("Tue Oct 29 19:00:23 2024", "2024-10-29 19:00:23", False),
        ("Fri 21 Nov 2025 11:41:31 PM", "2025-11-21 23:41:31", False),
        ("==== 2024-11-19 19:40:10.286596 ====", "2024-11-19 19:40:10.286596", False),
        ("[04-03-2021 @ 13:32:39]", "2021-03-04 13:32:39", False),
        ("2025-09-24T11:48:33.5+08:00", "2025-09-24 03:48:33.5", True),
        ("12/24/2021 12:00:00 AM", "2021-12-24 00:00:00", False),
        ("2019-04-17_19:00:51", "2019-04-17 19:00:51", False),
    ],
)
def test_lines_that_state_a_time(line: str, timestamp: str, utc: bool) -> None:
    moment = read_moment(line)
    assert moment is not None and (moment.timestamp, moment.utc) == (datetime.fromisoformat(timestamp), utc)
    assert moment.day and moment.clock


def test_day_and_clock_apart() -> None:
    day, clock = read_moment("Mon 09/28/2020 "), read_moment("12:14 AM")
    assert day is not None and day.day and not day.clock and day.timestamp == datetime(2020, 9, 28)
    assert clock is not None and clock.clock and not clock.day and clock.timestamp.time().isoformat() == "00:14:00"


@pytest.mark.parametrize(
    "line", ["", "hello", "2 %, 588 MiB", "296.80 W", "2025-13-45 99:99:99", "Foo 12 12:00:00 2024"]
)
def test_lines_that_do_not(line: str) -> None:
    assert read_moment(line) is None


@pytest.mark.slow
@given(st.text(max_size=60))
def test_no_text_breaks_it(text: str) -> None:
    read_moment(text)


@pytest.mark.slow
@given(st.lists(st.datetimes(datetime(1995, 1, 1), datetime(2100, 1, 1)), min_size=1, max_size=8))
@settings(deadline=None, max_examples=60)
def test_every_form_gives_back_what_was_written(timestamps: list[datetime]) -> None:
    whole = [timestamp.replace(microsecond=0) for timestamp in timestamps]
    milli = [timestamp.replace(microsecond=timestamp.microsecond // 1000 * 1000) for timestamp in timestamps]
    written = {
        "nvidia": (milli, [s.strftime("%Y/%m/%d %H:%M:%S.") + f"{s.microsecond // 1000:03d}" for s in milli]),
        "iso": (timestamps, [s.isoformat() for s in timestamps]),
        "zoned": (timestamps, [s.isoformat() + "Z" for s in timestamps]),
        "comma": (milli, [s.strftime("%Y-%m-%d %H:%M:%S,") + f"{s.microsecond // 1000:03d}" for s in milli]),
        "american": (whole, [s.strftime("%m/%d/%Y %I:%M:%S %p") for s in whole]),
    }
    for name, (truth, cells) in written.items():
        form = tell_form(cells)
        assert form is not None, name
        read = [form.read(pl.Series(cells)).to_list()]
        if form.ambiguous:
            read.append(swapped(form).read(pl.Series(cells)).to_list())
        assert truth in read, name


def test_what_is_no_timestamp_is_null() -> None:
    cells = [
        "2026/02/15 06:12:48.455",
        "026/02/15 06:12:48.455",
        "2026/02/15 06:12",
        "100 %2025/06/12 06:12:48.455",
        None,
    ]
    assert NVIDIA.read(pl.Series(cells)).is_null().to_list() == [False, True, True, True, True]
    assert tell_form(["a", "b"]) is None and tell_form([]) is None
