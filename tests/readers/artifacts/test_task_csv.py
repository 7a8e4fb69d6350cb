"""CSV task lists: which are recognised, spellings of headers, torn rows."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from gpudiag.errors import InputError
from gpudiag.readers._io.source import Source
from gpudiag.readers.artifacts import task_csv
from gpudiag.readers.base import ReadOptions, Trials
from gpudiag.readers.identify import identify
from gpudiag.timezones import parse_zone


def put(folder: Path, text: str) -> Source:
    path = folder / "jobs.csv"
    path.write_text(text)
    return Source.open(path)


def read(folder: Path, text: str) -> Trials:
    source = put(folder, text)
    found = identify(source)
    assert found is not None and found[1].name == "task-csv"
    return task_csv.read(source, ReadOptions(parse_zone("Asia/Taipei")))


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_spellings_of_a_header(tmp_path: Path, mark: str) -> None:
    text = (
        "Task,Status,Start Time,End-Time,GPU,depth\n"
        "a,ok,2026-03-01 10:00:00,2026-03-01 10:01:40,1,9\n"
        "b,FAILED,2026-03-01 10:00:10,2026-03-01 10:00:20,0,7\n"
    )
    out = read(tmp_path, text.replace(",", mark))
    trials = out.trials
    assert trials["state"].tolist() == ["COMPLETE", "FAIL"] and trials["name"].tolist() == ["a", "b"]
    assert trials["start"][0] == pd.Timestamp("2026-03-01T02:00Z")
    assert (trials["end"] - trials["start"]).dt.total_seconds().tolist() == [100, 10]
    assert trials["gpu"].tolist() == ["1", "0"] and trials["user_attrs.depth"].tolist() == [9, 7]


def test_torn_rows_and_ends_before_starts_are_named_by_line(tmp_path: Path) -> None:
    out = read(tmp_path, "name,status,start,end\na,ok,1761645600,1761645500\nb,ok,1761645600,1761645700\nc,ok\n")
    problems = {problem.kind: problem.line for problem in out.problems}
    assert problems == {"row of another width": 4, "end before start": 2}
    assert out.trials["end"].isna().tolist() == [True, False]


def test_an_exit_code_and_a_duration(tmp_path: Path) -> None:
    out = read(tmp_path, "job,exit_code,elapsed\nx,0,4.5\ny,137,2\n")
    assert out.trials["state"].tolist() == ["COMPLETE", "FAIL"]
    assert out.trials["duration_s"].tolist() == [4.5, 2]


@pytest.mark.parametrize(
    ("header", "cell", "seconds", "ends"),
    [
        ("duration_s", "4.5", 4.5, True),
        ("runtime_ms", "4500", 4.5, True),
        ("Duration", "4.5s", 4.5, True),
        ("took", "1m 3s", 63, True),
        ("elapsed", "0:01:03", 63, True),
        ("Duration", "1.5min", 90, False),
        ("duration_min", "1.5", 90, False),
        ("hours", "0.5", 1800, False),
        ("duration", "90", 90, False),
    ],
)
def test_a_start_and_seconds_tell_the_end_and_rounded_minutes_do_not(
    tmp_path: Path, header: str, cell: str, seconds: float, ends: bool
) -> None:
    rows = (
        "".join(f"{name},ok,2026-03-01 10:00:00,{cell}\n" for name in "ab") + f"c,running,2026-03-01 10:00:00,{cell}\n"
    )
    trials = read(tmp_path, f"task,status,start,{header}\n{rows}").trials
    assert trials["end"].notna().tolist() == [ends, ends, False]
    assert trials["duration_s"].iloc[-1] == seconds
    if ends:
        assert (trials["end"] - trials["start"])[0] == pd.Timedelta(seconds=seconds)
    else:
        assert trials["duration_s"].tolist() == [seconds] * 3


def test_runs_of_wandb_begin_when_they_were_created(tmp_path: Path) -> None:
    out = read(
        tmp_path,
        '"Name","State","Notes","User","Tags","Created","Runtime","Sweep","lr"\n'
        '"sunny-1","finished","-","me","","2026-03-01T10:00:00.000Z","100","sweep-a","0.1"\n'
        '"calm-2","crashed","-","me","","2026-03-01T10:01:00.000Z","30","sweep-a","0.2"\n',
    )
    assert out.trials["state"].tolist() == ["COMPLETE", "FAIL"] and set(out.trials["study"]) == {"sweep-a"}
    assert out.trials["start"][0] == pd.Timestamp("2026-03-01T10:00Z")
    assert (out.trials["end"] - out.trials["start"]).dt.total_seconds().tolist() == [100, 30]


def test_when_a_record_was_created_is_no_end(tmp_path: Path) -> None:
    """Trackers create the record of a run as it begins."""
    text = "name,state,created_at,runtime\na,finished,2026-03-01T10:00:00Z,100\nb,crashed,2026-03-01T10:01:00Z,30\n"
    out = read(tmp_path, text)
    assert out.trials["end"].isna().all() and out.trials["duration_s"].tolist() == [100, 30] and out.notes == ()
    assert out.trials["user_attrs.created"][0] == "2026-03-01T10:00:00Z"


def test_trials_with_a_status_and_times_keep_number_and_value(tmp_path: Path) -> None:
    text = "trial,lr,value,status,duration_s\n7,.1,.5,done,60\n3,.2,,OOM,5\n"
    trials = read(tmp_path, text).trials
    assert trials["trial"].tolist() == [3, 7] and trials["state"].tolist() == ["FAIL", "COMPLETE"]
    assert trials["value"].isna().tolist() == [True, False] and trials["value"][trials["trial"] == 7].item() == 0.5


def test_an_experiment_of_its_own_for_each_task_is_its_name(tmp_path: Path) -> None:
    rows = [f"{name},ok,{k}.5" for k, name in enumerate("abcd")]
    trials = read(tmp_path, "\n".join(["experiment,status,seconds", *rows, ""])).trials
    assert set(trials["study"]) == {"jobs"} and trials["name"].tolist() == [*"abcd"]
    trials = read(tmp_path, "\n".join(["experiment,status,seconds", *rows, "a,ok,1", ""])).trials
    assert trials.groupby("study").size().to_dict() == {"a": 2, "b": 1, "c": 1, "d": 1}


@pytest.mark.parametrize(
    "text",
    [
        "number,state,value,datetime_start\n0,COMPLETE,1,2026-01-01\n",
        "Number,State,Value\n0,Complete,1\n",
        "timestamp,gpu_util,status\n2026-01-01,4,ok\n",
        "timestamp,status\n2026-01-01,ok\n",
        "task,status,seconds\na,purple,1\n",
        "done,status,training_iteration,duration\nTrue,ok,1,2\n",
        "task,status,seconds\n",
    ],
)
def test_other_tables_are_left_alone(tmp_path: Path, text: str) -> None:
    assert not task_csv.recognises(put(tmp_path, text))


def test_a_table_without_a_task_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no row is a task"):
        task_csv.read(put(tmp_path, "task,status,seconds\na,purple,1\n"), ReadOptions(parse_zone("UTC")))


@pytest.mark.parametrize(
    "rows",
    ['a,ok,"5\nb,ok,"6\nc,ok,"7\n', "a,ok,5\nb,ok,6\n", 'a,ok,5"\nb,ok,6\n'],
    ids=["in every line", "in the header", "closed one line below"],
)
def test_a_header_with_a_stray_quote_is_refused(tmp_path: Path, rows: str) -> None:
    source = put(tmp_path, 'name,status,"duration_s\n' + rows)
    with pytest.raises(InputError, match="expected the column names in line 1, but a quote"):
        task_csv.read(source, ReadOptions(parse_zone("UTC")))


def test_minutes_and_seconds_may_be_hours_and_minutes(tmp_path: Path) -> None:
    trials = read(tmp_path, "task,status,start,duration\na,ok,2026-03-01 10:00:00,01:30\n").trials
    assert trials["end"].isna().all()


def test_studies_of_tasks_that_have_names_stay_studies(tmp_path: Path) -> None:
    rows = "".join(f"s{k},x,ok,1\n" for k in range(3))
    assert set(read(tmp_path, f"study,name,status,seconds\n{rows}").trials["study"]) == {"s0", "s1", "s2"}


def test_a_process_id_that_is_none_is_unknown(tmp_path: Path) -> None:
    """Some put a worker's own long id there."""
    out = read(tmp_path, f"name,status,duration_s,pid\na,ok,4,{10**29}\nb,ok,5,41\n")
    assert out.trials["pid"].isna().tolist() == [True, False] and out.trials["pid"][1] == 41
