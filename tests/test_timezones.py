"""Zone-less timestamps become UTC; what a clock change makes doubtful is counted."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, timezone, tzinfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpudiag.errors import ConfigError
from gpudiag.timezones import localize, machine_zone, parse_zone, transitions

ZONES = ["UTC", "Asia/Taipei", "Asia/Kolkata", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]


def naive(*texts: str) -> pd.Series:
    return pd.Series(pd.to_datetime(list(texts))).astype("datetime64[us]")


@settings(max_examples=60, deadline=None)
@given(
    zone=st.sampled_from(ZONES),
    start=st.datetimes(datetime(2023, 1, 1), datetime(2026, 1, 1)),
    step_s=st.integers(1, 1200),
    n=st.integers(2, 400),
)
def test_a_log_written_in_local_time_comes_back(zone: str, start: datetime, step_s: int, n: int) -> None:
    """Dense timestamps in order carry enough to undo local time, clock changes included."""
    # A log of a few timestamps that lies wholly within a repeated hour cannot be told apart: keep away at its ends.
    utc = pd.Series(pd.date_range(start, periods=n, freq=pd.Timedelta(seconds=step_s), tz="UTC").as_unit("us"))
    tz = parse_zone(zone)
    for moment, _ in transitions(tz, start.replace(tzinfo=UTC) - timedelta(days=1), utc.iloc[-1] + timedelta(days=1)):
        near = timedelta(hours=3)
        if abs(utc.iloc[0] - moment) < near or abs(utc.iloc[-1] - moment) < near:
            return
    local = utc.dt.tz_convert(tz).dt.tz_localize(None)
    result = localize(local, tz)
    pd.testing.assert_series_equal(result.time, utc.astype("datetime64[us, UTC]"))
    assert (result.ambiguous, result.nonexistent) == (0, 0)


def test_the_order_decides_in_the_hour_that_autumn_repeats() -> None:
    timestamps = naive(
        "2025-10-26 01:50", "2025-10-26 02:30", "2025-10-26 02:10", "2025-10-26 02:50", "2025-10-26 03:20"
    )
    result = localize(timestamps, parse_zone("Europe/Berlin"))
    assert result.time.dt.strftime("%H:%M").tolist() == ["23:50", "00:30", "01:10", "01:50", "02:20"]
    assert result.ambiguous == 0


def test_a_repeated_hour_without_any_hint_takes_the_first_pass_and_is_counted() -> None:
    result = localize(naive("2025-10-26 02:30", "2025-10-26 02:31"), parse_zone("Europe/Berlin"))
    assert result.time.dt.strftime("%H:%M").tolist() == ["00:30", "00:31"]
    assert result.ambiguous == 2


def test_a_timestamp_in_the_hour_that_spring_skips_moves_forward_and_is_counted() -> None:
    result = localize(naive("2025-03-30 02:30", "2025-03-30 12:00"), parse_zone("Europe/Berlin"))
    assert result.time.dt.strftime("%H:%M").tolist() == ["01:00", "10:00"]
    assert result.nonexistent == 1


def test_unknown_timestamps_and_the_index_stay() -> None:
    timestamps = naive("2025-10-24 19:00", "2025-10-24 19:01").set_axis([7, 3])
    timestamps[3] = pd.NaT
    result = localize(timestamps, parse_zone("Asia/Taipei"))
    assert result.time.isna().tolist() == [False, True] and result.time.index.tolist() == [7, 3]
    assert localize(naive(), parse_zone("Asia/Taipei")).time.empty


def test_timestamps_centuries_apart_and_offsets_without_a_name() -> None:
    far = localize(naive("1700-01-01 00:00", "2200-06-01 12:00"), timezone(timedelta(hours=-5)))
    assert far.time.dt.strftime("%Y-%m-%d %H").tolist() == ["1700-01-01 05", "2200-06-01 17"]


def test_transitions_are_found_to_the_minute() -> None:
    year = datetime(2025, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)
    assert transitions(parse_zone("Europe/Berlin"), *year) == [
        (datetime(2025, 3, 30, 1, tzinfo=UTC), timedelta(hours=1)),
        (datetime(2025, 10, 26, 1, tzinfo=UTC), timedelta(hours=-1)),
    ]
    assert transitions(parse_zone("Australia/Lord_Howe"), *year)[0][1] == timedelta(minutes=-30)
    assert transitions(parse_zone("Asia/Taipei"), *year) == []


def test_an_unknown_zone_is_refused_with_examples() -> None:
    with pytest.raises(
        ConfigError, match=r"time zone 'Asia/Taipeh' is not in the zone database; expected an IANA name"
    ):
        parse_zone("Asia/Taipeh")


@pytest.mark.parametrize(
    ("setting", "zone"),
    [("CST-8", timezone(timedelta(hours=8))), ("UTC0", UTC), ("Asia/Taipei", parse_zone("Asia/Taipei"))],
)
def test_a_machine_may_name_its_zone_as_posix_does(setting: str, zone: tzinfo, monkeypatch: pytest.MonkeyPatch) -> None:
    with machine_set_to(setting, monkeypatch):
        assert machine_zone() == zone


def test_a_zone_of_the_c_library_with_summer_time_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = "CET-1CEST,M3.5.0,M10.5.0/3"
    with machine_set_to(rules, monkeypatch), pytest.raises(ConfigError, match=f"TZ is '{rules}'; expected an IANA"):
        machine_zone()


@contextmanager
def machine_set_to(zone: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The variable TZ, as the C library sees it too, and tzlocal, which keeps its first answer."""
    monkeypatch.setenv("TZ", zone)
    monkeypatch.setattr("tzlocal.unix._cache_tz", None)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.slow
@pytest.mark.parametrize("zone", ["Asia/Taipei", "Europe/Berlin"])
def test_a_million_timestamps_over_a_clock_change_stay_in_order(zone: str) -> None:
    timestamps = pd.Series(np.datetime64("2025-10-20", "us") + np.arange(1_000_000) * np.timedelta64(1, "s"))
    assert localize(timestamps, parse_zone(zone)).time.is_monotonic_increasing
