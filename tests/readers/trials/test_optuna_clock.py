"""Zone-less timestamps of a study: the evidence decides, in its order, and what was decided is said."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from handmade_studies import execute, frozen, set_created_by, sqlite_study

from gpudiag.readers._studies.optuna_clock import Clocked, to_utc
from gpudiag.readers.trials import read_trials
from gpudiag.timezones import parse_zone

TAIPEI = parse_zone("Asia/Taipei")  # UTC+8, no summer time
BERLIN = parse_zone("Europe/Berlin")


def table(*starts: str, minutes: float = 10, heartbeats: list[str | None] | None = None) -> pd.DataFrame:
    start = pd.Series(pd.to_datetime(list(starts))).astype("datetime64[us]")
    frame = pd.DataFrame({"number": range(len(starts)), "state": "COMPLETE", "start": start})
    frame["end"] = start + pd.Timedelta(minutes=minutes)
    if heartbeats is not None:
        frame["heartbeat"] = pd.to_datetime(pd.Series(heartbeats)).astype("datetime64[us]")
    return frame


def starts(clocked: Clocked) -> list[str]:
    return clocked.start.dt.strftime("%Y-%m-%d %H:%M").tolist()


def test_the_creator_decides_where_nothing_else_does() -> None:
    timestamps = table("2025-10-24 12:00", "2025-10-24 12:10")
    old, new = to_utc(timestamps, TAIPEI, "4.9.0"), to_utc(timestamps, TAIPEI, "5.0.0")
    assert (old.clock, starts(old)) == ("local", ["2025-10-24 04:00", "2025-10-24 04:10"])
    assert (new.clock, starts(new)) == ("utc", ["2025-10-24 12:00", "2025-10-24 12:10"])
    assert "assumed" in old.why and "assumed" in new.why
    assert "not stated" in to_utc(timestamps, TAIPEI, "").why


@pytest.mark.parametrize("version", ["4.9.0", "5.0.0"])
def test_heartbeats_outweigh_the_creator(version: str) -> None:
    """A heartbeat is UTC: eight hours before a local end in Taipei, or just before an end in UTC."""
    local = table("2025-10-24 12:00", "2025-10-24 12:10", heartbeats=["2025-10-24 04:09", None])
    utc = table("2025-10-24 12:00", "2025-10-24 12:10", heartbeats=["2025-10-24 12:09:30", None])
    assert to_utc(local, TAIPEI, version).clock == "local"
    assert starts(to_utc(local, TAIPEI, version)) == ["2025-10-24 04:00", "2025-10-24 04:10"]
    assert to_utc(utc, TAIPEI, version).clock == "utc"
    assert "shown by 1 heartbeats" in to_utc(utc, TAIPEI, version).why


def test_heartbeats_of_another_zone_than_the_one_given() -> None:
    found = to_utc(table("2025-10-24 12:00", heartbeats=["2025-10-24 17:09"]), TAIPEI, "4.9.0")
    assert starts(found) == ["2025-10-24 17:00"]  # UTC-5, whatever the run's zone says
    assert found.meaning(TAIPEI) == "clocks at -5 h from UTC"


def test_heartbeats_show_a_study_that_went_on_under_another_version() -> None:
    mixed = table(
        "2025-10-24 12:00",
        "2025-10-24 12:10",
        "2025-10-24 04:20",
        "2025-10-24 04:30",
        heartbeats=["2025-10-24 04:09", None, None, "2025-10-24 04:39"],
    )
    found = to_utc(mixed, TAIPEI, "4.9.0")
    assert found.clock == "mixed"
    assert starts(found)[0] == "2025-10-24 04:00" and starts(found)[3] == "2025-10-24 04:30"


def test_a_long_trial_whose_heartbeats_are_rare() -> None:
    """Six hours between heartbeats: any offset of that width would fit, but only one of UTC and Taipei does."""
    utc = table("2025-10-24 12:00", minutes=300, heartbeats=["2025-10-24 12:09"])
    local = table("2025-10-24 12:00", minutes=300, heartbeats=["2025-10-24 04:09"])
    assert to_utc(utc, TAIPEI, "4.9.0").clock == "utc"
    assert to_utc(local, TAIPEI, "5.0.0").clock == "local"


def test_heartbeats_that_tell_nothing() -> None:
    both = table("2025-10-24 12:00", minutes=600, heartbeats=["2025-10-24 12:09"])
    far = table("2025-10-24 12:00", heartbeats=["2025-10-25 12:09"])
    failed = table("2025-10-24 12:00", heartbeats=["2025-10-24 12:09"]).assign(state="FAIL")
    for timestamps in (both, far, failed):
        assert "assumed" in to_utc(timestamps, parse_zone("Europe/London"), "4.9.0").why


def test_one_jump_back_that_fits_the_zone_is_the_change_of_version() -> None:
    resumed = table("2025-10-24 12:00", "2025-10-24 12:10", "2025-10-24 04:20", "2025-10-24 04:30")
    found = to_utc(resumed, TAIPEI, "4.9.0")
    assert found.clock == "mixed"
    assert starts(found) == ["2025-10-24 04:00", "2025-10-24 04:10", "2025-10-24 04:20", "2025-10-24 04:30"]
    assert "at trial 2" in found.why


def test_jumps_that_do_not_fit_are_said_and_nothing_is_shifted() -> None:
    timestamps = ("2025-10-24 12:00", "2025-10-24 11:00", "2025-10-24 12:10", "2025-10-24 11:10")
    found = to_utc(table(*timestamps), TAIPEI, "4.9.0")
    assert found.clock == "local"
    assert "the starts run back 2 times" in found.why and "nothing was shifted" in found.why
    assert (found.start.dt.tz_convert(TAIPEI).dt.strftime("%Y-%m-%d %H:%M") == list(timestamps)).all()


def test_the_hour_that_autumn_repeats() -> None:
    """Clocks in Berlin went back from 03:00 to 02:00 on 2025-10-26: the step back is no change of version."""
    night = table("2025-10-26 01:50", "2025-10-26 02:30", "2025-10-26 02:50", "2025-10-26 02:10", "2025-10-26 03:10")
    found = to_utc(night, BERLIN, "4.9.0")
    assert found.clock == "local"
    assert starts(found) == [
        "2025-10-25 23:50",
        "2025-10-26 00:30",
        "2025-10-26 00:50",
        "2025-10-26 01:10",
        "2025-10-26 02:10",
    ]


def test_no_timestamp_at_all() -> None:
    frame = table("2025-10-24 12:00")
    frame[["start", "end"]] = pd.NaT
    assert to_utc(frame.astype({"start": "datetime64[us]", "end": "datetime64[us]"}), TAIPEI, "").clock == "unknown"


def test_through_a_file(tmp_path: Path) -> None:
    path = sqlite_study(tmp_path / "o.db", *(frozen(i) for i in range(3)))
    set_created_by(path, "5.0.0")
    execute(
        path,
        "UPDATE trials SET datetime_start = '2025-10-24 12:00:00', datetime_complete = '2025-10-24 12:10:00.000000'",
        "INSERT INTO trial_heartbeats (trial_id, heartbeat) VALUES (1, '2025-10-24 04:09:50')",
    )
    out = read_trials(path, timezone="Asia/Taipei")
    assert set(out.trials["start"]) == {pd.Timestamp("2025-10-24T04:00Z")}
    assert out.studies["clock"].tolist() == ["local"]
    assert out.notes == (
        "Study 's': timestamps read as local time of Asia/Taipei (shown by 1 heartbeats, which fit Asia/Taipei).",
    )


def test_rustuna_writes_utc(tmp_path: Path) -> None:
    """As Rustuna 0.1.0 to 0.2.0 leave a file: a version of Optuna that it is like, and no schema revision."""
    path = sqlite_study(tmp_path / "o.db", *(frozen(i) for i in range(2)))
    set_created_by(path, "4.6.0.dev")
    noon = (
        "UPDATE trials SET datetime_start = '2026-11-22 12:00:00.065520', datetime_complete = '2026-11-22 12:10:00.1'"
    )
    execute(path, noon)
    assert set(read_trials(path, timezone="Asia/Taipei").trials["start"].dt.hour) == {4}
    execute(path, "DELETE FROM alembic_version")
    out = read_trials(path, timezone="Asia/Taipei")
    assert set(out.trials["start"]) == {pd.Timestamp("2026-11-22T12:00:00.065520Z")}
    assert out.notes == (
        "Study 's': timestamps read as UTC (assumed, because Rustuna created the storage and it writes UTC).",
    )
