"""Trials over a change of the clock, from workers that run side by side: every start and end against the truth."""

from __future__ import annotations

import heapq
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from handmade_studies import set_created_by, sqlite_study

import gpudiag as gd
from gpudiag.readers._studies.fold import settle, settle_rows
from gpudiag.readers._studies.optuna_clock import to_utc
from gpudiag.readers.trials import read_trials
from gpudiag.timezones import localize, parse_zone

BERLIN = parse_zone("Europe/Berlin")
AUTUMN, SPRING = "2025-10-26 01:00", "2025-03-30 01:00"
FORMAT = "%Y-%m-%d %H:%M:%S.%f"


def search(
    seed: int, workers: int, median_s: float, pause_s: float, turn: str = AUTUMN, hours: int = 5
) -> pd.DataFrame:
    """Starts and ends, UTC, of trials from some hours before the turn to as many after it, by number."""
    draw = np.random.default_rng(seed)
    turned_s = pd.Timestamp(turn, tz="UTC").timestamp()
    free = [turned_s - hours * 3600 + draw.uniform(0, 30) for _ in range(workers)]
    heapq.heapify(free)
    rows = []
    while (start := heapq.heappop(free)) < turned_s + hours * 3600:
        end = start + float(np.exp(draw.normal(np.log(median_s), 0.6)))
        rows.append((start, end))
        heapq.heappush(free, end + float(draw.exponential(pause_s)))
    seconds = pd.DataFrame(rows, columns=["start", "end"])
    return seconds.apply(lambda s: pd.to_datetime((s * 1e6).astype("int64"), unit="us", utc=True).dt.as_unit("us"))


def written(truth: pd.DataFrame, zone: str = "Europe/Berlin") -> pd.DataFrame:
    """What Optuna writes in that zone."""
    return truth.apply(lambda column: column.dt.tz_convert(zone).dt.tz_localize(None))


def wrong(found: pd.DataFrame, truth: pd.DataFrame) -> int:
    return int((found[["start", "end"]].reset_index(drop=True) != truth[["start", "end"]]).sum().sum())


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize(("median_s", "pause_s"), [(20, 0.5), (120, 5), (600, 1)])
def test_short_trials_come_back_to_the_microsecond(workers: int, median_s: float, pause_s: float) -> None:
    doubtful = 0
    for seed in range(8):
        truth = search(seed, workers, median_s, pause_s)
        local = written(truth)
        found = settle(pd.Series(range(len(truth))), local["start"], local["end"], BERLIN)
        assert wrong(pd.DataFrame({"start": found.start, "end": found.end}), truth) == 0, f"seed {seed}"
        doubtful += found.doubtful
    assert doubtful <= 8


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("median_s", [1800, 3600, 7200])
def test_trials_about_as_long_as_the_hour_are_right_or_said_to_be_doubtful(workers: int, median_s: float) -> None:
    for seed in range(8):
        truth = search(seed, workers, median_s, 5)
        local = written(truth)
        found = settle(pd.Series(range(len(truth))), local["start"], local["end"], BERLIN)
        assert wrong(pd.DataFrame({"start": found.start, "end": found.end}), truth) <= found.doubtful, f"seed {seed}"
        assert (found.start <= found.end).all()


@pytest.mark.parametrize(
    ("zone", "turn"),
    [("America/New_York", "2025-11-02 06:00"), ("Australia/Lord_Howe", "2026-04-04 15:00"), ("Europe/Berlin", SPRING)],
)
def test_other_zones_and_spring(zone: str, turn: str) -> None:
    for seed in range(6):
        truth = search(seed, 4, 300, 1, turn)
        local = written(truth, zone)
        found = settle(pd.Series(range(len(truth))), local["start"], local["end"], parse_zone(zone))
        assert wrong(pd.DataFrame({"start": found.start, "end": found.end}), truth) == 0


def test_the_order_of_the_rows_does_not_matter_nor_do_two_autumns() -> None:
    years = [search(seed, 2, 300, 1, turn) for seed, turn in enumerate(("2024-10-27 01:00", AUTUMN))]
    truth = pd.concat(years, ignore_index=True)
    number = pd.Series(range(len(truth)))
    shuffled = number.sample(frac=1, random_state=1)
    local = written(truth).loc[shuffled.index]
    found = settle(shuffled, local["start"], local["end"], BERLIN)
    assert wrong(pd.DataFrame({"start": found.start, "end": found.end}).sort_index(), truth) == 0


def test_a_heartbeat_decides_what_is_open_without_it() -> None:
    """A lone trial from 02:10 to 02:50: an hour between its passes is possible, its last heartbeat is at 01:49 UTC."""
    local = pd.DataFrame({"start": ["2025-10-26 02:10"], "end": ["2025-10-26 02:50"]}).apply(pd.to_datetime)
    number = pd.Series([0])
    assert settle(number, local["start"], local["end"], BERLIN).doubtful > 0
    seen = pd.Series(pd.to_datetime(["2025-10-26 01:49"]))
    found = settle(number, local["start"], local["end"], BERLIN, seen)
    assert found.end.tolist() == [pd.Timestamp("2025-10-26 01:50", tz="UTC")]


def test_open_and_waiting_trials_stay_open() -> None:
    truth = search(3, 2, 300, 1)
    truth.loc[70:72, "end"] = pd.NaT
    truth.loc[75, ["start", "end"]] = pd.NaT
    local = written(truth)
    found = settle(pd.Series(range(len(truth))), local["start"], local["end"], BERLIN)
    pd.testing.assert_series_equal(found.start, truth["start"], check_names=False)
    pd.testing.assert_series_equal(found.end, truth["end"], check_names=False)


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize(("version", "turn"), [("4.5.0", AUTUMN), ("4.5.0", SPRING), ("5.0.0", AUTUMN)])
def test_a_storage_in_local_time(tmp_path: Path, workers: int, version: str, turn: str) -> None:
    """In spring nothing in a file of Optuna 5 shows local time: no timestamp runs backwards."""
    truth = search(7, workers, 240, 1, turn, hours=3)
    path = sqlite_study(tmp_path / "o.db")
    set_created_by(path, version)
    local = written(truth).apply(lambda column: column.dt.strftime(FORMAT))
    with closing(sqlite3.connect(path)) as database, database:
        database.executemany(
            "INSERT INTO trials (number, study_id, state, datetime_start, datetime_complete) "
            "VALUES (?, 1, 'COMPLETE', ?, ?)",
            zip(range(len(truth)), local["start"], local["end"], strict=True),
        )
    out = read_trials(path, timezone="Europe/Berlin")
    assert wrong(out.trials, truth) == 0
    assert out.studies["clock"].tolist() == ["local"]
    assert ("though Optuna 5.0.0 created the storage" in out.notes[0]) == (version == "5.0.0")


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_journal_and_an_export_in_local_time(tmp_path: Path, workers: int) -> None:
    truth = search(11, workers, 240, 1, hours=3)
    local = written(truth).apply(lambda column: column.dt.strftime("%Y-%m-%dT%H:%M:%S.%f"))
    lines = [{"op_code": 0, "worker_id": "w", "study_name": "s", "directions": [1]}]
    for number, row in local.iterrows():
        lines += [
            {"op_code": 4, "worker_id": "w", "study_id": 0, "datetime_start": row["start"]},
            {"op_code": 6, "worker_id": "w", "trial_id": number, "state": 1, "values": [0.5],
             "datetime_complete": row["end"]},
        ]  # fmt: skip
    (tmp_path / "j.log").write_text("\n".join(json.dumps(line) for line in lines) + "\n")
    export = local.rename(columns={"start": "datetime_start", "end": "datetime_complete"}).assign(value=0.5)
    export.assign(state="COMPLETE").rename_axis("number").to_csv(tmp_path / "t.csv")
    for name in ("j.log", "t.csv"):
        assert wrong(read_trials(tmp_path / name, timezone="Europe/Berlin").trials, truth) == 0, name


def test_a_storage_in_utc_stays_utc_in_that_night() -> None:
    """Optuna 5 as it is: also with a trial that waited in the queue and started later than those after it."""
    truth = search(5, 4, 300, 1)
    naive = truth.apply(lambda column: column.dt.tz_localize(None)).assign(number=range(len(truth)), state="COMPLETE")
    naive.loc[60, ["start", "end"]] = (naive.loc[60, ["start", "end"]] + pd.Timedelta(minutes=40)).to_numpy()
    found = to_utc(naive, BERLIN, "5.0.0")
    assert found.clock == "utc"
    assert (found.start.dt.tz_localize(None) == naive["start"]).all()


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("by", ["start", "end"])
def test_a_task_log_by_starts_or_by_ends(tmp_path: Path, workers: int, by: str) -> None:
    truth = search(13, workers, 240, 1, hours=3).sort_values(by, kind="stable", ignore_index=True)
    local = written(truth).apply(lambda column: column.dt.strftime(FORMAT)).assign(task=truth.index, status="ok")
    (tmp_path / "tasks.jsonl").write_text(local.to_json(orient="records", lines=True))
    local.to_csv(tmp_path / "tasks.csv", index=False)
    for name in ("tasks.jsonl", "tasks.csv"):
        found = gd.load_run(tmp_path / name, timezone="Europe/Berlin").trials
        assert wrong(found.sort_values(by, kind="stable"), truth) == 0, name


@pytest.mark.parametrize("by", ["start", "end"])
def test_rows_by_ends_are_the_same_question_turned_round(by: str) -> None:
    for seed in range(6):
        truth = search(seed, 3, 900, 2).sort_values(by, kind="stable", ignore_index=True)
        read = written(truth).apply(lambda column: localize(column, BERLIN).time)
        found = settle_rows(read["start"], read["end"], BERLIN)
        assert wrong(pd.DataFrame({"start": found.start, "end": found.end}), truth) <= found.doubtful <= 4
