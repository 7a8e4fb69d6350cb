"""The step that every reader ends with: UTC, bounds, order, one row per key."""

from __future__ import annotations

from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudiag.errors import InputError
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._shape.finish import finish
from gpudiag.readers._shape.tidy import SET_BACK
from gpudiag.readers.base import ReadOptions, Telemetry

SOURCE = Source(Path("some.log"), b"")


def run(gpu: pd.DataFrame, zone: str = "UTC", **more: object) -> tuple[Telemetry, dict[str, int]]:
    log = ProblemLog()
    telemetry = finish(SOURCE, "test", ReadOptions(ZoneInfo(zone)), log, gpu=gpu, **more)  # type: ignore[arg-type]
    return telemetry, {problem.kind: problem.count for problem in telemetry.problems}


def frame(rows: list[tuple[str | None, str, float]]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "time": pd.to_datetime([time for time, _, _ in rows], format="ISO8601").astype("datetime64[us]"),
            "gpu": [gpu for _, gpu, _ in rows],
            "util_pct": [util for _, _, util in rows],
            "line": range(1, len(rows) + 1),
        }
    )


def test_rows_are_utc_sorted_bounded_and_unique() -> None:
    rows = frame(
        [("2026-01-01 00:00:01", "10", 1), ("2026-01-01 00:00:01", "2", 120), ("2026-01-01", "10", 5), (None, "2", 3)]
    )
    telemetry, problems = run(rows, "Europe/Berlin")
    assert telemetry.gpu["gpu"].tolist() == ["2", "10", "10"] == sorted(telemetry.gpu["gpu"], key=int)
    assert telemetry.gpu["time"].iloc[1] == pd.Timestamp("2025-12-31 23:00", tz="UTC")
    assert "util_pct" in telemetry.gpu and np.isnan(telemetry.gpu["util_pct"].iloc[0])
    assert problems == {"row without a time": 1, "time goes back": 1, "util_pct out of bounds": 1}
    assert telemetry.clock == "local"


def test_the_hour_that_autumn_repeats_is_read_by_the_order_of_rows() -> None:
    local = pd.date_range("2025-10-26 00:30", periods=5, freq="30min", tz="UTC").tz_convert("Europe/Berlin")
    rows = frame([(str(timestamp.tz_localize(None)), "0", 1) for timestamp in local])
    telemetry, problems = run(rows, "Europe/Berlin")
    assert telemetry.gpu["time"].tolist() == local.tz_convert("UTC").tolist() and problems == {}


HOUR = [*range(0, 1800, 5)]


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (HOUR, [t + 1200 for t in HOUR], True),  # set back by ten minutes
        (HOUR, [t + 1197 for t in HOUR], True),  # not to the same instants
        (HOUR, [t + 1795 - 60 for t in HOUR], True),
        (HOUR, [t + 1795 - 59 for t in HOUR], False),
        (HOUR, [t + 1800 for t in HOUR], False),
        ([t + 1800 for t in HOUR], HOUR, False),  # an earlier log behind a later one
        (HOUR, HOUR, False),  # the same log again
        ([*HOUR, *[t + 1200 for t in HOUR], *[t + 2400 for t in HOUR]], [], True),
    ],
)
@pytest.mark.parametrize("gpus", [("0",), ("0", "1")])
def test_a_clock_that_is_set_back_is_told(
    before: list[int], after: list[int], told: bool, gpus: tuple[str, ...]
) -> None:
    """Once for all GPUs, whether their rows take turns or stand one GPU after the other."""
    start = pd.Timestamp("2026-01-01")
    seconds = [*before, *after]
    for turns in (True, False):
        pairs = [(t, g) for t in seconds for g in gpus] if turns else [(t, g) for g in gpus for t in seconds]
        _, problems = run(frame([(str(start + pd.Timedelta(seconds=t)), gpu, 5.0) for t, gpu in pairs]))
        times = 1 if after else 2
        assert problems.get(SET_BACK) == (times if told else None)


def test_rows_in_no_order_are_no_clock_that_is_set_back() -> None:
    start = pd.Timestamp("2026-01-01")
    seconds = np.random.default_rng(0).permutation(3600)
    _, problems = run(frame([(str(start + pd.Timedelta(seconds=int(t))), "0", 5.0) for t in seconds]))
    assert SET_BACK not in problems and problems["time goes back"] > 1000


def test_the_input_is_left_as_it_was() -> None:
    rows = frame([("2026-01-02", "1", 1), ("2026-01-01", "0", 200)])
    before = rows.copy(deep=True)
    run(rows)
    pd.testing.assert_frame_equal(rows, before)


def test_sizes_of_a_gpu_come_from_its_samples_unless_told() -> None:
    rows = frame([("2026-01-01", "0", 1), ("2026-01-02", "0", 1), ("2026-01-01", "1", 1)])
    rows["power_limit_w"] = [300.0, 250.0, np.nan]
    rows["mem_total_mib"] = [1000.0, 1000.0, 2000.0]
    known = pd.DataFrame({"gpu": ["1", "0", "2"], "name": ["B", "A", "C"], "mem_total_mib": [2048.0, np.nan, np.nan]})
    gpus = run(rows, gpus=known)[0].gpus
    assert gpus["gpu"].tolist() == ["0", "1", "2"] and gpus["name"].tolist() == ["A", "B", "C"]
    assert gpus["power_limit_w"].iloc[0] == 250, "the last one: a cap may be set on the way"
    assert gpus["mem_total_mib"].fillna(0).tolist() == [1000, 2048, 0]


def test_nothing_left_is_an_error_that_says_what_was_met() -> None:
    with pytest.raises(InputError, match=r"some.log: looks like test, .*1 x row without a time, first at line 1"):
        run(frame([(None, "0", 1)]))


SAMPLE = st.tuples(st.integers(0, 20), st.sampled_from(["0", "1", "10", "0b"]), st.integers(-50, 150))


@pytest.mark.slow
@given(st.lists(SAMPLE, min_size=1, max_size=40))
def test_one_row_per_gpu_and_instant_with_the_last_good_value(samples: list[tuple[int, str, int]]) -> None:
    rows = frame([(str(pd.Timestamp(2026, 1, 1, 0, 0, second)), gpu, float(util)) for second, gpu, util in samples])
    telemetry, problems = run(rows)
    truth: dict[tuple[str, int], float] = {}
    for second, gpu, util in samples:
        truth.setdefault((gpu, second), np.nan)
        if 0 <= util <= 100:
            truth[gpu, second] = util
    found = telemetry.gpu
    seconds = (found["time"] - pd.Timestamp("2026-01-01", tz="UTC")).dt.total_seconds()
    values = found["util_pct"] if "util_pct" in found else pd.Series(np.nan, index=found.index)
    keys = list(zip(found["gpu"], seconds.astype(int), strict=True))
    assert set(keys) == set(truth) and len(keys) == len(truth)
    assert all(np.array_equal(value, truth[key], equal_nan=True) for key, value in zip(keys, values, strict=True))
    assert problems.get("duplicate sample", 0) == len(samples) - len(truth)
    assert problems.get("util_pct out of bounds", 0) == sum(not 0 <= util <= 100 for _, _, util in samples)
