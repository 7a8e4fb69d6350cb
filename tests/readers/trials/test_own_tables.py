"""Tables of trials that people write themselves: read where their columns are certain, refused with what they lack."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gpudiag as gd
from gpudiag.errors import UnknownInput
from gpudiag.readers._io.source import Source
from gpudiag.readers._studies.flat import UNREAD_LENGTH
from gpudiag.readers.identify import identify
from gpudiag.readers.trials import read_trials


def written(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    "header",
    ["Trial Number,Value", "trial_number,value", "trial,objective", "trial_id,Value", "Trial,Objective Value"],
)
def test_a_number_and_a_value_are_a_table_of_trials(tmp_path: Path, header: str) -> None:
    path = written(tmp_path / "mine.csv", f"{header},lr", "3,0.5,0.1", "4,,0.2", "9,0.25,0.3")
    trials = read_trials(path).trials
    assert trials["trial"].tolist() == [3, 4, 9] and set(trials["study"]) == {"mine"}
    np.testing.assert_array_equal(trials["value"], [0.5, np.nan, 0.25])
    assert trials["state"].tolist() == ["COMPLETE", "RUNNING", "COMPLETE"]
    assert trials["user_attrs.lr"].tolist() == [0.1, 0.2, 0.3]


@pytest.mark.parametrize("metric", ["val_acc", "Best Val Loss", "F1"])
def test_beside_times_the_only_metric_is_the_value(tmp_path: Path, metric: str) -> None:
    path = written(tmp_path / "t.csv", f"Trial,lr,{metric},duration_s", "0,0.1,0.5,60", "1,0.2,,30", "2,0.3,0.7,90")
    out = read_trials(path)
    np.testing.assert_array_equal(out.trials["value"], [0.5, np.nan, 0.7])
    assert out.trials["state"].tolist() == ["COMPLETE", "FAIL", "COMPLETE"]
    assert out.trials["duration_s"].tolist() == [60, 30, 90] and metric.lower().replace(" ", "_") in out.notes[0]


def test_times_and_states_of_other_names(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", "trial,value,started_at,Finished,value_std",
                   "0,0.5,2026-03-01 10:00:00,2026-03-01 10:01:00,7", "1,,2026-03-01 10:01:00,2026-03-01 10:03:00,",
                   "2,,2026-03-01 10:03:00,,")  # fmt: skip
    trials = read_trials(path, timezone="UTC").trials
    assert (trials["end"] - trials["start"]).dt.total_seconds().tolist()[:2] == [60.0, 120.0]
    assert trials["state"].tolist() == ["COMPLETE", "FAIL", "RUNNING"]
    assert trials["value"][0] == 0.5 and trials["user_attrs.value_std"][0] == 7
    trials = read_trials(written(tmp_path / "t.csv", "trial,value,elapsed_s", "0,1,12.5", "1,,-3", "2,,60")).trials
    np.testing.assert_array_equal(trials["duration_s"], [12.5, np.nan, 60.0])
    assert trials["state"].tolist() == ["COMPLETE", "RUNNING", "FAIL"]
    trials = read_trials(written(tmp_path / "t.csv", "Trial,Value,Status", "0,1,ok", "1,2,Pruned", "2,,oom")).trials
    assert trials["state"].tolist() == ["COMPLETE", "PRUNED", "FAIL"]


@pytest.mark.parametrize(
    ("column", "cell", "seconds", "ends"),
    [
        ("duration_s", "90.5", 90.5, True),
        ("Duration (s)", "90.5", 90.5, True),
        ("runtime_ms", "90500", 90.5, True),
        ("duration", "0 days 00:01:30.5", 90.5, True),
        ("duration", "1m 30.5s", 90.5, True),
        ("duration", "01:30.5", 90.5, True),
        ("duration [min]", "1.5", 90.0, False),
        ("duration", "1.5 min", 90.0, False),
        ("hours", "0.5", 1800.0, False),
    ],
)
def test_a_length_with_a_unit_is_one_and_to_the_second_tells_the_end(
    tmp_path: Path, column: str, cell: str, seconds: float, ends: bool
) -> None:
    rows = [f"0,0.5,{cell},2026-03-01 10:00:00", f"1,,{cell},2026-03-01 10:01:00", "2,,,2026-03-01 10:02:00"]
    out = read_trials(written(tmp_path / "t.csv", f"trial,value,{column},started_at", *rows), timezone="UTC")
    assert out.trials["state"].tolist() == ["COMPLETE", "FAIL", "RUNNING"] and out.problems == ()
    took = (out.trials["end"] - out.trials["start"]).dt.total_seconds() if ends else out.trials["duration_s"]
    np.testing.assert_array_equal(took, [seconds, seconds, np.nan])
    assert out.trials["end"].isna().all() != ends and f"user_attrs.{column}" not in out.trials


@pytest.mark.parametrize(("column", "cell"), [("duration", "90.5"), ("runtime", "90.5"), ("duration", "01:30")])
def test_a_length_without_a_unit_is_told_where_nothing_else_tells_it(tmp_path: Path, column: str, cell: str) -> None:
    path = written(tmp_path / "t.csv", f"trial,value,{column}", f"0,0.5,{cell}", "1,0.4,")
    out = read_trials(path)
    assert [(one.kind, one.count, one.example) for one in out.problems] == [(UNREAD_LENGTH, 1, f"{column} {cell}")]
    assert "duration_s" not in out.trials or out.trials["duration_s"].isna().all()
    times = "2026-03-01 10:00:00,2026-03-01 10:01:00"
    path = written(tmp_path / "t.csv", f"trial,value,{column},started_at,ended_at", f"0,0.5,{cell},{times}")
    assert read_trials(path, timezone="UTC").problems == ()


def test_an_end_and_a_length_of_optuna_tell_the_start(tmp_path: Path) -> None:
    header = "number,value,state,datetime_complete,duration"
    row = "0,0.5,COMPLETE,2026-03-01 10:01:30.5,0 days 00:01:30.5"
    trials = read_trials(written(tmp_path / "t.csv", header, row), timezone="UTC").trials
    assert trials["start"].tolist() == [pd.Timestamp("2026-03-01T10:00Z")]


def test_columns_of_optuna_beside_another_number_are_its(tmp_path: Path) -> None:
    header = "trial_number,value,state,datetime_start,datetime_complete,params_lr"
    path = written(tmp_path / "t.csv", header, "4,0.5,COMPLETE,2026-03-01 10:00:00,2026-03-01 10:01:00,0.1")
    trials = read_trials(path, timezone="UTC").trials
    assert trials[["trial", "value", "params.lr", "state"]].to_numpy().tolist() == [[4, 0.5, 0.1, "COMPLETE"]]


def test_a_list_and_a_frame_are_read_as_the_file_is(tmp_path: Path) -> None:
    rows = [{"trial": 0, "value": 0.5, "params": {"lr": 0.1}}, {"trial": 1, "value": None, "params": {"lr": 0.2}}]
    (tmp_path / "t.json").write_text(json.dumps(rows))
    assert read_trials(tmp_path / "t.json").trials["params.lr"].tolist() == [0.1, 0.2]
    run = gd.load_run(pd.DataFrame({"Trial Number": [0, 1], "Value": [0.5, None], "lr": [0.1, 0.2]}))
    assert run.trials[["trial", "state"]].to_numpy().tolist() == [[0, "COMPLETE"], [1, "RUNNING"]]


def test_parquet_is_read_as_the_same_table_in_csv(tmp_path: Path) -> None:
    starts = pd.date_range("2026-03-01 10:00", periods=3, freq="1min")
    frame = pd.DataFrame({"trial": [3, 4, 9], "objective": [0.5, None, 0.25], "started_at": starts, "lr": 0.1})
    frame["ended_at"] = starts + pd.Timedelta("50s")
    frame.to_parquet(tmp_path / "mine.parquet")
    frame.to_csv(tmp_path / "mine.csv", index=False)
    held, text = (read_trials(tmp_path / f"mine.{kind}", timezone="UTC") for kind in ("parquet", "csv"))
    assert held.reader == "optuna-trials-parquet" and held.trials["state"].tolist() == ["COMPLETE", "FAIL", "COMPLETE"]
    pd.testing.assert_frame_equal(held.trials, text.trials)
    frame.assign(trial=[3, 3, 3]).to_parquet(tmp_path / "steps.parquet")
    assert identify(Source.open(tmp_path / "steps.parquet")) is None
    frame.rename(columns={"objective": "points"}).to_parquet(tmp_path / "short.parquet")
    with pytest.raises(UnknownInput, match=r"needs a column trial .* its columns are trial, points, started_at, lr"):
        read_trials(tmp_path / "short.parquet")


@pytest.mark.parametrize(
    ("lines", "reader"),
    [
        (["trial,epoch,loss", "0,0,1", "0,1,.5", "0,2,.3"], "metrics-csv"),
        (["trial,epoch,value,loss", "0,0,1,1", "0,1,.5,1", "0,2,.3,1"], "metrics-csv"),
        (["trial,epoch,step,value", "0,0,0,1", "0,0,1,1"], "lightning-csv"),
        (["trial_id,training_iteration,time_total_s,timestamp,value", "a_0,1,3.5,1767200000,2"], "ray-tune-table"),
        (["trial,value,status,duration_s,gpu", "0,0.5,ok,5,0", "1,0.6,ok,6,1"], "task-csv"),
        (["trial,val_loss,status,duration", "0,0.5,ok,5", "0,0.6,ok,6"], "task-csv"),
        (["trial,value,timestamp,gpu_util", *(f"{n},1,2026-03-01 10:00:{n:02},7{n}" for n in range(3))], "table-csv"),
        (["study,trial,state,start,end,value", "s,0,COMPLETE,2026-03-01T10:00Z,,1"], "gpudiag-export"),
    ],
)
def test_what_others_read_stays_theirs(tmp_path: Path, lines: list[str], reader: str) -> None:
    found = identify(Source.open(written(tmp_path / "t.csv", *lines)))
    assert found is not None and found[1].name == reader


@pytest.mark.parametrize(
    "lines",
    [
        ["trial,accuracy,lr", "0,0.5,0.1"],
        ["trial,value,fold", "0,0.5,1", "0,0.6,2"],
        ["trial,loss,val_loss,duration_s", "0,0.5,0.6,5"],
        ["trial,score,duration_s", "0,0.5,5", "0,0.6,5"],
        ["trial_id,value", "a8f3,0.5", "b8f3,0.6"],
        ["trial,value", "0,red", "1,green"],
        ["number,value,lr", "0,0.5,0.1"],
    ],
)
def test_what_is_not_certain_is_refused_with_what_is_needed(tmp_path: Path, lines: list[str]) -> None:
    path = written(tmp_path / "t.csv", *lines)
    said = "needs a column trial with a whole number of its own for each row, and a column value with numbers; its "
    with pytest.raises(UnknownInput, match=said + "columns are " + lines[0].replace(",", ", ")):
        read_trials(path)
    assert identify(Source.open(path)) is None


def test_a_study_column_tells_equal_numbers_apart(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", "study,trial,value", "a,0,1", "b,0,2")
    assert read_trials(path).trials[["study", "trial", "value"]].to_numpy().tolist() == [["a", 0, 1.0], ["b", 0, 2.0]]
