"""Tables of trials of several studies: each is read apart, and no row is lost without a word."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import gpudiag as gd
from gpudiag.errors import StudyNotFound
from gpudiag.readers._studies.trial_rows import GONE_ON, HEADER_AGAIN, NUMBER_TWICE, SAID_AGAIN
from gpudiag.readers.trials import read_trials

ROWS = """study_name,number,value,state,datetime_start,datetime_complete,params_x
fold 2,0,0.5,COMPLETE,2026-03-01 10:00:00,2026-03-01 10:01:00,1
fold 2,1,0.4,COMPLETE,2026-03-01 10:01:00,2026-03-01 10:02:00,2
fold 1,1,,FAIL,2026-03-01T10:01:00+00:00,2026-03-01T10:03:00+00:00,4
fold 1,0,0.6,COMPLETE,2026-03-01T10:00:00+00:00,2026-03-01T10:00:30+00:00,3
,0,0.7,COMPLETE,,,5
"""
BY_STUDY = {("fold 2", 0): 1, ("fold 2", 1): 2, ("fold 1", 0): 3, ("fold 1", 1): 4, ("all.trials", 0): 5}


def _csv(path: Path) -> Path:
    path.write_text(ROWS)
    return path


def _frame(path: Path) -> pd.DataFrame:
    return pd.read_csv(_csv(path))


def _json(path: Path) -> Path:
    _frame(path).to_json(path, orient="records")
    return path


def _parquet(path: Path) -> Path:
    _frame(path).to_parquet(path)
    return path


@pytest.mark.parametrize("write", [_csv, _json, _parquet])
def test_each_study_of_a_table_is_read_apart(tmp_path: Path, write: Callable[[Path], Path]) -> None:
    out = read_trials(write(tmp_path / "all.trials.table"), timezone="Asia/Taipei")
    keys = zip(out.trials["study"], out.trials["trial"], strict=True)
    assert dict(zip(keys, out.trials["params.x"], strict=True)) == BY_STUDY
    assert (
        list(dict.fromkeys(out.trials["study"])) == out.studies["study"].tolist() == ["fold 2", "fold 1", "all.trials"]
    )
    assert out.studies["clock"].tolist() == ["local", "utc", "unknown"]
    assert set(out.studies["directions"]) == {""} and out.problems == ()
    start = out.trials.set_index(["study", "trial"])["start"]
    assert start["fold 2", 0] == pd.Timestamp("2026-03-01T02:00Z") and start["fold 1", 0] == pd.Timestamp(
        "2026-03-01T10:00Z"
    )
    assert out.notes == ("Study 'fold 2': timestamps without a zone read as local time of Asia/Taipei (assumed).",)
    assert "user_attrs.study_name" not in out.trials


def test_one_study_of_a_table_can_be_asked_for(tmp_path: Path) -> None:
    path = _csv(tmp_path / "all.trials.csv")
    assert read_trials(path, study="fold 1").trials["params.x"].tolist() == [3, 4]
    assert gd.load_run(path, study="fold 1", timezone="UTC").trials["params.x"].tolist() == [3, 4]
    with pytest.raises(StudyNotFound, match=r"has no study 'fold 3'.*it has 'fold 2', 'fold 1', 'all.trials'"):
        read_trials(path, study="fold 3")


@pytest.mark.slow
def test_a_loss_in_another_study_is_none_of_the_one_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(ROWS + "fold 1,0,0.9,COMPLETE,,,6\n")
    rules = {name: [one.rule for one in gd.diagnose(gd.load_run(path, study=name, timezone="UTC")).findings]
             for name in (None, "fold 1", "fold 2")}  # fmt: skip
    assert ["input-unread" in found for found in rules.values()] == [True, True, False]


def test_a_frame_names_studies_as_a_file_does(tmp_path: Path) -> None:
    run = gd.load_run(_frame(tmp_path / "t.csv").dropna(subset="study_name"), timezone="UTC")
    assert run.trials.groupby("study", sort=False).size().to_dict() == {"fold 2": 2, "fold 1": 2}


def test_numbers_name_studies_and_reports_follow_them(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        "study,number,value,state,intermediate_values_0,intermediate_values_1\n"
        "7,0,1.5,COMPLETE,3,2\n7,1,1.5,COMPLETE,4,\n12,0,2.5,COMPLETE,5,6\n"
    )
    out = read_trials(path)
    assert out.studies["study"].tolist() == ["7", "12"]
    assert out.reports[["study", "trial", "step", "value"]].to_numpy().tolist() == [
        ["7", 0, 0, 3.0], ["7", 0, 1, 2.0], ["7", 1, 0, 4.0], ["12", 0, 0, 5.0], ["12", 0, 1, 6.0]
    ]  # fmt: skip


@pytest.mark.slow
def test_another_trial_of_a_number_is_no_silent_loss(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    row = "{0},{1},COMPLETE,2026-03-01 10:0{0}:00,2026-03-01 10:0{0}:30\n"
    header = "number,value,state,datetime_start,datetime_complete\n"
    path.write_text(header + "".join(row.format(n, value) for value in (1, 2) for n in range(3)))
    assert {one.kind: (one.count, one.lost) for one in read_trials(path).problems} == {NUMBER_TWICE: (3, True)}
    (told,) = [one for one in gd.diagnose(gd.load_run(path, timezone="UTC")).findings if one.rule == "input-unread"]
    assert "3 of 6 left out; a column study_name tells studies apart" in told.summary
    path.write_text(header + "".join(row.format(n, 1) for n in (0, 1, 2, 0, 1, 2, 2)))
    out = read_trials(path)
    assert {one.kind: (one.count, one.lost) for one in out.problems} == {SAID_AGAIN: (4, False)}
    assert out.trials["trial"].tolist() == [0, 1, 2]
    assert "input-unread" not in {one.rule for one in gd.diagnose(gd.load_run(path, timezone="UTC")).findings}


def test_a_table_that_was_appended_to_as_trials_went_on_tells_how_they_ended(tmp_path: Path) -> None:
    """Each time with all trials so far, and with the header; another trial of the same number is still one."""
    path = tmp_path / "t.csv"
    header = "number,value,state,datetime_start,datetime_complete\n"
    runs = "{0},,RUNNING,2026-03-01 10:0{0}:00,\n"
    done = "{0},{0}.5,COMPLETE,2026-03-01 10:0{0}:00,2026-03-01 10:0{0}:30\n"
    went_on = [header, runs.format(0), runs.format(1), header, done.format(0), runs.format(1), runs.format(2)]
    path.write_text("".join([*went_on, header, done.format(0), done.format(1), runs.format(2)]))
    out = read_trials(path)
    assert out.trials["state"].tolist() == ["COMPLETE", "COMPLETE", "RUNNING"]
    assert out.trials["value"].tolist()[:2] == [0.5, 1.5] and out.trials["end"].notna().tolist() == [True, True, False]
    assert {one.kind: (one.count, one.lost) for one in out.problems} == {
        HEADER_AGAIN: (2, False), GONE_ON: (4, False), SAID_AGAIN: (1, False)
    }  # fmt: skip
    path.write_text(header + runs.format(0) + done.format(0).replace("10:00:00", "11:00:00"))
    out = read_trials(path)
    assert out.trials["state"].tolist() == ["RUNNING"] and out.problems[0].kind == NUMBER_TWICE


def test_a_header_that_repeats_leaves_numbers_numbers(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    header = "number,value,state,params_lr,params_n\n"
    path.write_text(f"{header}0,0.5,COMPLETE,0.1,8\n{header}1,0.25,COMPLETE,0.2,16\n")
    out = read_trials(path)
    assert out.trials[["params.lr", "params.n"]].to_numpy().tolist() == [[0.1, 8], [0.2, 16]]
    assert [(one.kind, one.count, one.lost) for one in out.problems] == [(HEADER_AGAIN, 1, False)]


def test_rows_below_a_header_of_other_columns_are_lost_and_told(tmp_path: Path) -> None:
    """They would be read under the names of the first one, a weight decay as a learning rate."""
    path = tmp_path / "t.csv"
    header = "number,value,state,params_lr\n"
    rows = "1,0.5,COMPLETE,0.01\n2,0.5,COMPLETE,0.02\n"
    path.write_text(f"{header}0,0.5,COMPLETE,0.1\n{header.replace('_lr', '_wd')}{rows}")
    out = read_trials(path)
    assert out.trials[["trial", "params.lr"]].to_numpy().tolist() == [[0, 0.1]]
    assert [(one.count, one.lost) for one in out.problems] == [(2, True)]


@pytest.mark.parametrize("kind", ["csv", "parquet", "json"])
def test_a_number_that_joining_tables_made_a_float_is_one(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"t.{kind}"
    frame = pd.DataFrame({"number": [0.0, 3.0], "value": [1.5, 0.5], "state": ["COMPLETE"] * 2, "params_lr": 0.1})
    if kind == "json":
        path.write_text(json.dumps(frame.to_dict("records")))
    else:
        frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    assert read_trials(path).trials["trial"].tolist() == [0, 3]
    own = frame.rename(columns={"number": "trial"}).drop(columns="state")
    own.to_csv(tmp_path / "own.csv", index=False)
    assert read_trials(tmp_path / "own.csv").trials["trial"].tolist() == [0, 3]
