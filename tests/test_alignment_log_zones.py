"""A log in local time beside one in UTC of the same steps: one training, on the clock of the one with a zone."""

from __future__ import annotations

import pandas as pd
import pytest

from gpudiag.alignment.log_zones import logs_in_one_zone
from gpudiag.readers.base import Trials
from gpudiag.report.format import duration
from gpudiag.schema import STEPS, conform

START = pd.Timestamp("2026-03-01 09:00", tz="UTC")


def log(path: str, clock: str, late_s: float = 0.0, n: int = 60, each_s: float = 12.0) -> Trials:
    time = [START + pd.Timedelta(seconds=each_s * k + late_s) for k in range(1, n + 1)]
    rows = pd.DataFrame({"time": time, "step": range(1, n + 1), "unit": "step", "path": path, "line": range(1, n + 1)})
    return Trials(steps=conform(rows.assign(series="steps"), STEPS), clock=clock)


def moved_s(*parts: Trials) -> list[float]:
    after = logs_in_one_zone(parts)
    return [(b.steps["time"] - a.steps["time"]).iloc[0].total_seconds() for a, b in zip(parts, after, strict=True)]


@pytest.mark.parametrize("late_s", [3600.0, -19_800.0, 900.0])
def test_a_log_in_local_time_is_put_on_the_clock_of_event_files(late_s: float) -> None:
    parts = log("/r/train.log", "local", late_s + 0.05), log("/r/tb/events", "utc")
    assert moved_s(*parts) == [-late_s, 0]
    (note,) = logs_in_one_zone(parts)[0].notes
    assert (
        f"{duration(abs(late_s))} {'after' if late_s > 0 else 'before'} it" in note
        and "timezone" in note
        and "train.log" in note
    )


@pytest.mark.parametrize(
    "other",
    [
        log("/r/events", "utc", 1800.0 + 1200.0),
        log("/r/events", "utc", each_s=12.5),
        log("/r/events", "local"),
        log("/r/events", "utc", n=15),
        log("/other/events", "utc"),
    ],
    ids=["no whole quarter", "another pace", "no zone either", "few steps", "another folder"],
)
def test_what_shows_no_zone_moves_nothing(other: Trials) -> None:
    assert moved_s(log("/r/train.log", "local", 3600.0), other) == [0, 0]


def test_a_log_whose_own_event_file_fits_as_it_is_stays_beside_a_training_an_hour_before() -> None:
    assert moved_s(log("/r/b.log", "local", 3600.0), log("/r/b", "utc", 3600.0), log("/r/a", "utc")) == [0, 0, 0]


def test_beside_gpus_in_local_time_the_event_file_is_moved() -> None:
    parts = log("/r/train.log", "local", 3600.0), log("/r/events", "utc")
    after = logs_in_one_zone(parts, local_gpus=True)
    assert after[0] is parts[0] and after[1].steps["time"].iloc[0] == parts[0].steps["time"].iloc[0]
    assert "timezone" in after[1].notes[0]
