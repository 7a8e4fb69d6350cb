"""Values and stamps that no run can have: each costs itself, and nothing fails."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import pytest

import gpudiag as gd
from gpudiag.comparison.written import read_written

SAMPLES = Path(__file__).resolve().parent.parent.parent / "data" / "samples"
HEADER = "number,state,value,datetime_start,datetime_complete,duration\n"


def trials(folder: Path, start: str, end: str, *, value: str = "1.0", duration: str = "") -> gd.Run:
    good = "".join(f"{n},COMPLETE,0.5,2026-03-01 10:{n:02}:00,2026-03-01 10:{n:02}:30,\n" for n in range(5))
    (folder / "t.csv").write_text(f"{HEADER}{good}5,COMPLETE,{value},{start},{end},{duration}\n")
    return gd.load_run(folder / "t.csv", timezone="Asia/Taipei")


@pytest.mark.parametrize("year", ["0001", "1969", "1970", "2425", "9999"])
@pytest.mark.parametrize("zone", ["", "+00:00"])
def test_a_stamp_that_no_trial_can_have_is_unknown(year: str, zone: str, tmp_path: Path) -> None:
    run = trials(tmp_path, f"{year}-01-01 10:00:00{zone}", f"{year}-01-01 10:10:00{zone}")
    assert run.trials["start"].notna().tolist() == [True] * 5 + [False]
    assert [p.count for one in run.info.inputs for p in one.problems if p.kind == "timestamp that is no date"]
    found = gd.diagnose(run)
    assert not found.errors
    assert (run.trials["end"].max() - run.trials["start"].min()).total_seconds() == 270


def test_stamps_of_a_study_that_no_trial_can_have(tmp_path: Path) -> None:
    import sqlite3

    shutil.copy(SAMPLES / "healthy" / "optuna.db", tmp_path / "o.db")
    with sqlite3.connect(tmp_path / "o.db") as held:
        held.execute("UPDATE trials SET datetime_start = '0001-01-01 00:00:00' WHERE number = 0")
    run = gd.load_run(tmp_path / "o.db", timezone="Asia/Taipei")
    assert math.isnan(run.trials["start"].isna().map({True: math.nan, False: 0.0}).iloc[0])
    assert run.trials["start"].notna().sum() == len(run.trials) - 1 and not gd.diagnose(run).errors


def test_a_duration_of_ages_is_unknown(tmp_path: Path) -> None:
    run = trials(tmp_path, "2026-03-01 10:06:00", "", duration="99999999 days 00:00:00")
    assert not gd.diagnose(run).errors


@pytest.mark.parametrize("value", ["1e308", "-1e308", "inf", "nan", "1.7976931348623157e308"])
def test_values_at_the_end_of_all_numbers(value: str, tmp_path: Path) -> None:
    assert not gd.diagnose(trials(tmp_path, "2026-03-01 10:06:00", "2026-03-01 10:06:30", value=value)).errors


def test_the_best_trial_has_no_usable_end(tmp_path: Path) -> None:
    rows = "".join(f"{n},COMPLETE,{n},2026-03-01 10:{n + 1:02}:00,2026-03-01 09:00:00,\n" for n in range(10))
    rows += "10,COMPLETE,99,2026-03-01 10:20:00,2026-03-01 10:20:30,\n"
    (tmp_path / "t.csv").write_text(HEADER + rows)
    assert not gd.diagnose(gd.load_run(tmp_path / "t.csv", timezone="UTC")).errors


def test_a_board_that_says_it_has_no_memory(tmp_path: Path) -> None:
    head = "timestamp, index, utilization.gpu [%], memory.used [MiB], memory.total [MiB]\n"
    rows = "".join(f"2026/03/01 10:{n // 60:02}:{n % 60:02}.000, 0, 50 %, {n} MiB, 0 MiB\n" for n in range(1200))
    (tmp_path / "g.csv").write_text(head + rows)
    assert not gd.diagnose(gd.load_run(tmp_path / "g.csv", timezone="UTC")).errors


@pytest.mark.parametrize(
    "text", ["clock_offset_s = nan", "clock_offset_s = 1e300", "clock_offset_s = -inf", "x = " + "[" * 5000]
)
def test_a_run_toml_out_of_bounds_is_a_sentence(text: str, tmp_path: Path) -> None:
    shutil.copy(SAMPLES / "tiny-batch-laptop" / "gpu.csv", tmp_path)
    (tmp_path / "run.toml").write_text(text + "\n")
    with pytest.raises(gd.ConfigError, match=r"run\.toml"):
        gd.load_run(tmp_path)


def test_a_plan_of_a_hundred_thousand_brackets_is_none(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text("[" * 100_000)
    assert read_written(tmp_path / "plan.json") is None
