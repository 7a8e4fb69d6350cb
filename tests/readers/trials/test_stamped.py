"""Timestamps of gpudiag against what Optuna stored: offsets of zones, trials without timestamps, damaged timestamps."""

from __future__ import annotations

from datetime import timedelta

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpudiag.readers._studies.stamped import PREFIX, apply_timestamps
from gpudiag.schema import STUDIES, TRIALS, conform

TRUE = pd.Timestamp("2026-03-01T10:00:00Z")


def table(n: int, offset_h: float = 0.0, study: str = "s") -> pd.DataFrame:
    """Trials of five minutes whose stored times are ``offset_h`` behind the truth, and a tenth of a second early."""
    start = pd.Series([TRUE + timedelta(minutes=10 * k) for k in range(n)]) - timedelta(hours=offset_h, seconds=0.1)
    frame = pd.DataFrame({"study": study, "trial": range(n), "state": "COMPLETE", "start": start})
    return frame.assign(end=start + timedelta(minutes=5))


def true_start(k: int) -> pd.Timestamp:
    return TRUE + timedelta(minutes=10 * k)


def timestamp(frame: pd.DataFrame, rows: list[int], *, ends: bool = True) -> pd.DataFrame:
    told = [true_start(k).isoformat() if k in rows else None for k in range(len(frame))]
    frame = frame.assign(**{PREFIX + "start_utc": pd.Series(told, dtype=object)})
    if ends:
        text = [(true_start(k) + timedelta(minutes=4.9)).isoformat() if k in rows else None for k in range(len(frame))]
        frame[PREFIX + "end_utc"] = pd.Series(text, dtype=object)
    return frame


def studies(*names: str, clock: str = "local") -> pd.DataFrame:
    return conform(pd.DataFrame({"study": names, "directions": "MINIMIZE", "clock": clock}), STUDIES)


def test_without_timestamps_nothing_changes() -> None:
    frame, known = table(3), studies("s")
    assert apply_timestamps(frame, known) == (frame, known, ())


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.integers(-56, 56), st.sets(st.integers(0, 9), min_size=1))
def test_trials_without_timestamps_follow_those_with(quarters: int, stamped: set[int]) -> None:
    frame, known, told = apply_timestamps(timestamp(table(10, quarters / 4), sorted(stamped)), studies("s"))
    assert known["clock"].tolist() == ["utc"]
    for k in range(10):
        late = timedelta(0) if k in stamped else timedelta(seconds=0.1)
        assert frame["start"][k] == true_start(k) - late
        length = timedelta(minutes=4.9) if k in stamped else timedelta(minutes=5)
        assert frame["end"][k] == frame["start"][k] + length
    assert f"{len(stamped)} of 10 trials" in told[0].note and "exact" in told[0].note and told[0].exact
    assert list(conform(frame, TRIALS)["start"]) == list(frame["start"])


def test_an_end_without_a_timestamp_is_moved_with_its_start() -> None:
    frame, _, _ = apply_timestamps(timestamp(table(4, 8.0), [0, 1, 2, 3], ends=False), studies("s"))
    assert (frame["end"] - frame["start"] == timedelta(minutes=5) - timedelta(seconds=0.1)).all()


def test_workers_in_two_zones_are_each_right_and_the_unstamped_keep_their_own() -> None:
    frame = timestamp(table(6, 8.0), [0, 1, 3, 4])
    frame.loc[3:5, ["start", "end"]] += timedelta(hours=13)
    before = frame.loc[[2, 5], "start"].tolist()
    out, known, told = apply_timestamps(frame, studies("s"))
    assert [out["start"][k] for k in (0, 1, 3, 4)] == [true_start(k) for k in (0, 1, 3, 4)]
    assert [out["start"][k] for k in (2, 5)] == before
    assert known["clock"].tolist() == ["local"] and "different clocks" in told[0].note and not told[0].exact


def test_other_studies_are_left_alone() -> None:
    frame = pd.concat([timestamp(table(3, 5.0, "a"), [0, 1, 2]), table(3, 5.0, "b")], ignore_index=True)
    out, known, told = apply_timestamps(frame, studies("a", "b"))
    assert known["clock"].tolist() == ["utc", "local"] and len(told) == 1
    assert out.loc[3:, "start"].tolist() == frame.loc[3:, "start"].tolist()


@pytest.mark.parametrize("junk", ["soon", 17, None, "2026-13-45", [1]])
def test_damaged_timestamps_are_no_timestamps(junk: object) -> None:
    frame = timestamp(table(3), [0, 1]).astype({PREFIX + "start_utc": object})
    frame.at[2, PREFIX + "start_utc"] = junk
    out, _, told = apply_timestamps(frame, studies("s"))
    assert out["start"].notna().all() and "2 of 3 trials" in told[0].note


def test_a_start_that_optuna_did_not_store_is_the_timestamp() -> None:
    frame = timestamp(table(3), [0, 1, 2], ends=False)
    frame.loc[1, ["start", "end"]] = pd.NaT
    out, known, _ = apply_timestamps(frame, studies("s"))
    assert out["start"].tolist() == [true_start(k) for k in range(3)] and pd.isna(out["end"][1])
    assert known["clock"].tolist() == ["utc"]


def test_place_is_filled_where_nothing_else_tells() -> None:
    frame = timestamp(table(3), [0, 1, 2]).assign(
        **{
            PREFIX + "pid": [7, None, "8"],
            PREFIX + "host": ["n1", None, "n2"],
            PREFIX + "gpu_uuid": [None, "GPU-1", "x"],
        }
    )
    frame["gpu"] = ["3", None, None]
    out, _, _ = apply_timestamps(frame, studies("s"))
    assert out["gpu"].tolist() == ["3", "GPU-1", "x"]
    assert out["pid"].tolist() == [7, pd.NA, 8] and out["host"].isna().tolist() == [False, True, False]


def test_a_failure_is_told_by_the_class_of_its_exception() -> None:
    frame = timestamp(table(3), [0, 1, 2]).assign(
        state=["FAIL", "PRUNED", "FAIL"], **{PREFIX + "exception": ["MemoryError", "TrialPruned", None]}
    )
    out, _, _ = apply_timestamps(frame, studies("s"))
    assert out["detail"].where(out["detail"].notna(), "").tolist() == ["MemoryError", "", ""]
