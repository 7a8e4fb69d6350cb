"""Time of samples whose lines say little of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudiag.readers._shape.moments import Moment
from gpudiag.readers._shape.ticks import apart, is_epoch, moment_column, since_midnight, spread, zone_note

START = datetime(2024, 10, 29, 19, 0, 0)


@given(st.lists(st.integers(0, 5), max_size=20))
def test_spread_keeps_order_and_stays_within_the_second(counts: list[int]) -> None:
    timestamps = [Moment(START + timedelta(seconds=at)) for at, count in enumerate(counts) for _ in range(count)]
    moved = np.array([moment.timestamp for moment in timestamps], dtype="datetime64[us]") + spread(timestamps)
    assert (np.diff(moved) > np.timedelta64(0, "us")).all()
    assert (moved.astype("datetime64[s]") == np.array([m.timestamp for m in timestamps], dtype="datetime64[s]")).all()


@pytest.mark.parametrize("samples", [2, 3, 4, 5])
def test_spread_divides_the_second_by_the_number_of_samples(samples: int) -> None:
    moved = spread([Moment(START)] * samples).astype(int)
    assert moved.tolist() == [1_000_000 * k // samples for k in range(samples)]


def test_spread_leaves_fractions_gaps_and_lone_samples_alone() -> None:
    half = Moment(START + timedelta(milliseconds=500))
    assert spread([half, half, None, None, Moment(START)]).astype(int).tolist() == [0, 0, 0, 0, 0]
    assert spread([]).size == 0


def test_moments_with_a_zone_become_utc_and_mixed_ones_local() -> None:
    zoned = Moment(START, utc=True)
    assert moment_column([zoned, None], UTC).tolist() == [pd.Timestamp(START, tz="UTC"), pd.NaT]
    mixed = moment_column([zoned, Moment(START)], ZoneInfo("Asia/Taipei"))
    assert mixed.tolist() == [pd.Timestamp(START + timedelta(hours=8)), pd.Timestamp(START)]


def test_only_ambiguous_zone_names_are_noted() -> None:
    assert zone_note([Moment(START, utc=True, zone="EST"), None]) == []
    assert "CST" in zone_note([Moment(START, zone="CST")])[0]


def test_midnight_is_a_large_step_back_only() -> None:
    clock = np.array([86_399, 1, 0, 43_200], dtype="timedelta64[s]").astype("timedelta64[us]")
    seconds = (since_midnight(clock) - np.datetime64("1970-01-01")).astype("timedelta64[s]").astype(int)
    assert seconds.tolist() == [86_399, 86_401, 86_400, 129_600]


def test_bounds_of_an_epoch() -> None:
    assert is_epoch(1.7e9) and not is_epoch(None) and not is_epoch(16559.0) and not is_epoch(1.7e12)


@pytest.mark.parametrize(("seconds", "name"), [(1, "second"), (60, "minute")])
def test_samples_that_share_a_coarse_timestamp_share_its_length(seconds: int, name: str) -> None:
    timestamps = np.repeat(np.datetime64(START, "us") + np.arange(5) * np.timedelta64(seconds, "s"), 4)
    moved, notes = apart(timestamps, np.zeros(20, int), {"util_pct": np.arange(20.0)})
    assert (np.diff(moved) == np.timedelta64(250_000 * seconds, "us")).all() and moved[0] == timestamps[0]
    assert notes == [f"Several samples share each {name}; they were spread over it evenly."]


def test_samples_written_twice_and_lone_duplicates_stay_at_their_timestamp() -> None:
    seconds = np.datetime64(START, "us") + np.arange(10) * np.timedelta64(1, "s")
    code, values = np.zeros(20, int), np.arange(10.0)
    twice = np.repeat(seconds, 2)
    gap = np.where(np.arange(20) < 10, np.nan, 1.0)
    moved, notes = apart(twice, code, {"util_pct": np.repeat(values, 2), "power_w": gap})
    assert notes == [] and (moved == twice).all()
    once = np.insert(seconds, 3, seconds[3])
    assert apart(once, code[:11], {"util_pct": np.arange(11.0)})[1] == []
    two_gpus = np.tile(seconds, 2)
    assert apart(two_gpus, np.repeat([0, 1], 10), {"util_pct": np.arange(20.0)})[1] == []
    fractions = twice + np.timedelta64(1, "ms")
    assert apart(fractions, code, {"util_pct": np.arange(20.0)})[1] == []
