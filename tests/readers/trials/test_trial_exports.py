"""Exports of a study: CSV, optuna-dashboard CSV, JSON, YAML and Parquet, in every shape they come in."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
from handmade_studies import frozen, sqlite_study, write_study
from optuna.exceptions import ExperimentalWarning
from optuna.storages import InMemoryStorage

import gpudiag as gd
from gpudiag.errors import InputError
from gpudiag.readers._io.source import Source
from gpudiag.readers._studies.flat import NO_NUMBER
from gpudiag.readers._studies.given_states import NO_STATES, state_of
from gpudiag.readers._studies.other_dates import MINUTES
from gpudiag.readers._studies.timestamps import DATE_ALONE, duration_s, to_utc
from gpudiag.readers._studies.trial_rows import HEADER_AGAIN, NUMBER_TWICE, UNKNOWN_STATE
from gpudiag.readers.identify import identify
from gpudiag.readers.trials import READERS, read_trials

STATES = ("COMPLETE", "PRUNED", "FAIL", "RUNNING", "WAITING")


@pytest.fixture
def study() -> optuna.Study:
    """One trial of every state, without the choices that text cannot tell apart (None, 3 and 2.5)."""
    trials = [frozen(i, state, user_attrs={"acc": 0.5 + i, "note": "a,b"}) for i, state in enumerate(STATES)]
    for trial in trials:
        trial.params.pop("optimizer")
        trial.distributions.pop("optimizer")
    return write_study(InMemoryStorage(), "s", trials)


@pytest.fixture
def expected(study: optuna.Study) -> pd.DataFrame:
    return read_trials(study).trials


def check(path: Path, expected: pd.DataFrame, reader: str, zone: str | None = None) -> None:
    assert [r.name for r in READERS if r.recognises(Source.open(path))] == [reader]
    out = read_trials(path, study="s", timezone=zone)
    assert out.problems == ()
    assert out.reader == reader
    pd.testing.assert_frame_equal(out.trials, expected, check_like=True)


def test_csv_with_and_without_index(tmp_path: Path, study: optuna.Study, expected: pd.DataFrame) -> None:
    study.trials_dataframe().to_csv(tmp_path / "with.csv")
    study.trials_dataframe().to_csv(tmp_path / "without.csv", index=False)
    check(tmp_path / "with.csv", expected, "optuna-trials-csv")
    check(tmp_path / "without.csv", expected, "optuna-trials-csv")


@pytest.mark.parametrize("index", [False, True])
def test_csv_of_a_multi_index_frame(tmp_path: Path, study: optuna.Study, expected: pd.DataFrame, index: bool) -> None:
    study.trials_dataframe(multi_index=True).to_csv(tmp_path / "two-lines.csv", index=index)
    check(tmp_path / "two-lines.csv", expected, "optuna-trials-csv")
    flat = study.trials_dataframe(multi_index=True)
    flat.columns = [str(column) for column in flat.columns]
    flat.to_csv(tmp_path / "tuples.csv", index=index)
    check(tmp_path / "tuples.csv", expected, "optuna-trials-csv")


@pytest.mark.parametrize(("encoding", "separator"), [("utf-16", ","), ("utf-8-sig", ";"), ("utf-8", "\t")])
def test_csv_from_a_spreadsheet(
    tmp_path: Path, study: optuna.Study, expected: pd.DataFrame, encoding: str, separator: str
) -> None:
    study.trials_dataframe().to_csv(
        tmp_path / "t.csv", index=False, encoding=encoding, sep=separator, lineterminator="\r\n"
    )
    check(tmp_path / "t.csv", expected, "optuna-trials-csv")


@pytest.mark.parametrize("header", [str, str.capitalize, lambda name: name.replace("_", " ", 1).capitalize()])
def test_csv_with_a_header_in_title_case_and_blanks_behind_its_commas(
    tmp_path: Path, study: optuna.Study, expected: pd.DataFrame, header: Callable[[str], str]
) -> None:
    written = study.trials_dataframe().rename(columns=header).to_csv(index=False)
    (tmp_path / "t.csv").write_text(written.replace(",", ", ").replace("a, b", "a,b"))
    check(tmp_path / "t.csv", expected, "optuna-trials-csv")


def test_a_column_beside_the_one_of_optuna_with_that_name_is_another(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("number,value,Value,state\n0,0.5,7,COMPLETE\n")
    assert read_trials(tmp_path / "t.csv").trials[["value", "user_attrs.Value"]].to_numpy().tolist() == [[0.5, 7]]


def test_parquet(tmp_path: Path, study: optuna.Study, expected: pd.DataFrame) -> None:
    study.trials_dataframe().to_parquet(tmp_path / "t.parquet")
    check(tmp_path / "t.parquet", expected, "optuna-trials-parquet")


def test_parquet_of_others_is_left_alone(tmp_path: Path) -> None:
    pd.DataFrame({"number": [1], "x": [2]}).to_parquet(tmp_path / "t.parquet")
    assert not any(reader.recognises(Source.open(tmp_path / "t.parquet")) for reader in READERS)


PRINTS = """
import contextlib, pathlib, sys
from optuna.cli import main
storage, folder = sys.argv[1:]
for style in ("json", "yaml"):
    for flatten in ("", "-flatten"):
        sys.argv = ["optuna", "trials", "--storage", storage, "--study-name", "s", "-f", style]
        sys.argv += ["--flatten"] if flatten else []
        with (pathlib.Path(folder) / f"{style}{flatten}.txt").open("w") as out, contextlib.redirect_stdout(out):
            assert not main()
"""


@pytest.mark.slow
def test_what_the_command_line_prints(tmp_path: Path) -> None:
    """One process prints all four: to start it takes longest."""
    trials = [frozen(i, state) for i, state in enumerate(STATES)]
    trials[0].value = float("inf")
    path = sqlite_study(tmp_path / "o.db", *trials)
    subprocess.run([sys.executable, "-c", PRINTS, f"sqlite:///{path}", str(tmp_path)], check=True)
    theirs = read_trials(path).trials
    for style in ("json", "yaml"):
        for name in (f"{style}.txt", f"{style}-flatten.txt"):
            out = read_trials(tmp_path / name, study="s")
            assert out.reader == f"optuna-cli-{style}", name
            assert out.trials["state"].tolist() == theirs["state"].tolist(), name
            np.testing.assert_array_equal(out.trials["value"], theirs["value"])
            assert np.isposinf(out.trials["value"][0]), name
            assert out.trials["params.lr"].tolist() == theirs["params.lr"].tolist(), name
            assert out.trials["start"].dt.floor("s").equals(theirs["start"].dt.floor("s")), name


def test_two_objectives_with_and_without_names(tmp_path: Path) -> None:
    trials = [frozen(i, value=None, values=[1.0 + i, 2.0], intermediate_values={}) for i in range(2)]
    study = write_study(InMemoryStorage(), "s", trials, ["minimize", "maximize"])
    study.trials_dataframe().to_csv(tmp_path / "a.csv")
    with pytest.warns(ExperimentalWarning):
        study.set_metric_names(["accuracy", "loss"])
    study.trials_dataframe().to_csv(tmp_path / "b.csv")
    for name in "ab":
        trials_read = read_trials(tmp_path / f"{name}.csv").trials
        assert trials_read[["value_0", "value_1"]].to_numpy().tolist() == [[1, 2], [2, 2]]
        assert "value" not in trials_read
    assert read_trials(tmp_path / "b.csv").notes[-1] == "Objectives: value_0 is 'accuracy', value_1 is 'loss'."


def test_intermediate_values_of_an_export_are_reports(tmp_path: Path) -> None:
    study = write_study(InMemoryStorage(), "s", [frozen(0), frozen(1, "FAIL")])
    study.trials_dataframe(attrs=("number", "value", "state", "intermediate_values")).to_csv(tmp_path / "t.csv")
    out = read_trials(tmp_path / "t.csv")
    assert out.reports[["trial", "step", "value"]].to_numpy().tolist() == [[0, 0, 1.0], [0, 1, 0.5]]


def test_columns_of_the_user_and_mixed_fractions(tmp_path: Path) -> None:
    path = tmp_path / "best_runs.csv"
    path.write_text(
        "number,value,datetime_start,datetime_complete,duration,params_x,state,remark\n"
        "1,0.5,2025-10-24 12:00:00.125,2025-10-24 12:00:01.250000,0 days 00:00:01.125,1,COMPLETE,good\n"
        "0,,2025-10-24 12:00:00,,,2,RUNNING,\n"
        "2,1,,,0 days 00:03:12,3,COMPLETE,\n"
    )
    out = read_trials(path, timezone="Asia/Taipei")
    trials = out.trials
    assert trials["trial"].tolist() == [0, 1, 2]
    assert set(trials["study"]) == {"best_runs"}
    assert (trials["end"] - trials["start"])[1].total_seconds() == 1.125
    assert trials["start"][0] == pd.Timestamp("2025-10-24T04:00Z")
    np.testing.assert_array_equal(trials["duration_s"], [np.nan, np.nan, 192.0])
    assert trials["user_attrs.remark"][1] == "good"
    assert out.notes == ("Study 'best_runs': timestamps without a zone read as local time of Asia/Taipei (assumed).",)


def test_without_a_state_column_a_value_means_complete(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(
        "number,value,datetime_complete,params_x\n0,1.5,2025-10-24,1\n1,,2025-10-24,2\n2,,,3\n"
    )
    assert read_trials(tmp_path / "t.csv").trials["state"].tolist() == ["COMPLETE", "FAIL", "RUNNING"]


def test_rows_without_a_state_are_said_to_be_taken_as_complete(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        "number,value,datetime_complete,params_x\n0,1.5,2025-10-24 10:00:00,1\n1,nan,2025-10-24 11:00:00,2\n"
    )
    out = read_trials(path, timezone="UTC")
    assert out.trials["state"].tolist() == ["COMPLETE", "FAIL"] and out.notes[-1] == NO_STATES
    path.write_text("number,value,state\n0,1.5,COMPLETE\n")
    assert NO_STATES not in read_trials(path).notes


def test_words_for_nothing_are_nothing_and_a_value_that_is_no_number_is_told(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    header = "number,value,state,datetime_start,datetime_complete\n"
    path.write_text(header + "0,0.5,COMPLETE,2026-03-01 10:00:00,2026-03-01 10:01:00\n1,None,RUNNING,NaT,None\n")
    out = read_trials(path, timezone="UTC")
    assert out.problems == () and out.trials["value"].isna().tolist() == [False, True]
    path.write_text(header + "0,81.5%,COMPLETE,,\n1,,FAIL,,\n2,NA,FAIL,,\n")
    (told,) = read_trials(path).problems
    assert (told.kind, told.count, told.example) == (NO_NUMBER, 1, "81.5%")


@pytest.mark.parametrize("kind", ["trials", "tasks"])
@pytest.mark.parametrize(
    ("start", "end", "first", "took_s", "note"),
    [
        # As 3 January and 3 February the trials would lie a month apart.
        ("3/1/2026 23:50", "3/2/2026 0:10", "2026-03-01 23:50", 1200, "month first: the other way time jumps"),
        ("01.03.2026 23:50:00", "02.03.2026 00:10:30", "2026-03-01 23:50", 1230, "day first: the other way time jumps"),
        ("13/03/2026 10:00:00", "13/03/2026 10:00:05", "2026-03-13 10:00", 5, ""),
        ("03/13/2026 11:59:00 PM", "03/14/2026 12:01:00 AM", "2026-03-13 23:59", 120, ""),
        ("2026-03-13 23:59", "2026/3/14 0:01", "2026-03-13 23:59", 120, MINUTES),
        ("2026-03-13 23:59", "2026-03-14 00:01:30", "2026-03-13 23:59", 150, ""),
    ],
)
def test_dates_that_begin_with_the_day_or_the_month(
    tmp_path: Path, kind: str, start: str, end: str, first: str, took_s: float, note: str
) -> None:
    path = tmp_path / "t.csv"
    header = "number,value,state,datetime_start,datetime_complete" if kind == "trials" else "task,x,status,start,end"
    path.write_text(f"{header}\n0,1.5,COMPLETE,{start},{end}\n1,2.5,COMPLETE,{end},\n")
    run = gd.load_run(path, timezone="UTC")
    assert run.trials["start"][0] == pd.Timestamp(first, tz="UTC") and [one.problems for one in run.info.inputs] == [()]
    assert (run.trials["end"] - run.trials["start"]).dt.total_seconds()[0] == took_s
    notes = " ".join(note for one in run.info.inputs for note in one.notes)
    assert note in notes and (MINUTES in notes) == (end in ("3/2/2026 0:10", "2026/3/14 0:01"))


@pytest.mark.parametrize("more", ["datetime_complete", "duration_s"])
def test_dates_alone_are_no_times(tmp_path: Path, more: str) -> None:
    """At midnight all trials of a day would run at once, and take no time or whole days."""
    path = tmp_path / "t.csv"
    cell = "60" if more == "duration_s" else "2026-03-01"
    path.write_text(f"number,value,state,datetime_start,{more}\n" + f"{{}},1,COMPLETE,2026-03-01,{cell}\n" * 2)
    path.write_text(path.read_text().format(0, 1))
    out = read_trials(path, timezone="UTC")
    assert out.trials[["start", "end"]].isna().all(axis=None)
    told = {one.kind: (one.count, one.example) for one in out.problems}
    assert told == {DATE_ALONE: (2 if more == "duration_s" else 4, "2026-03-01")}
    if more == "duration_s":
        assert out.trials["duration_s"].tolist() == [60, 60]
    path.write_text("task,status,start,end\na,ok,2026-03-01,2026-03-02\n")
    (trial,) = gd.load_run(path, timezone="UTC").trials.itertuples()
    assert pd.isna(trial.start) and pd.isna(trial.end)


def test_torn_rows_and_repeated_headers_are_counted(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(
        "number,value,state,params_x\n0,1.5,COMPLETE,1\nnumber,value,state,params_x\n0,9,COMPLETE,9\n1,2\n2,3,DREAMING,4\n3,1,FAI"
    )
    out = read_trials(tmp_path / "t.csv")
    assert out.trials["trial"].tolist() == [0] and out.trials["value"].tolist() == [1.5]
    assert {p.kind: p.count for p in out.problems} == {
        "last line without its end, its last cell may be cut": 1,
        "row of another width": 2,
        HEADER_AGAIN: 1,
        UNKNOWN_STATE: 1,
        NUMBER_TWICE: 1,
    }


@pytest.mark.slow
def test_states_by_other_names_are_states_and_unknown_ones_are_told(tmp_path: Path) -> None:
    words = ["COMPLETE", "failed", "ERROR", "crashed", "killed", "OOM", "finished", "Pruned", "TERMINATED", "lost"]
    rows = "".join(f"{n},1.5,{word},2026-03-01 10:0{n}:00,2026-03-01 10:0{n}:30,0.1\n" for n, word in enumerate(words))
    path = tmp_path / "t.csv"
    path.write_text(f"number,value,state,datetime_start,datetime_complete,params_x\n{rows}")
    run = gd.load_run(path, timezone="UTC")
    assert run.trials["state"].tolist() == ["COMPLETE", *["FAIL"] * 5, "COMPLETE", "PRUNED"]
    assert run.trials["detail"].dropna().tolist() == ["killed", "oom"]
    (told,) = [one for one in gd.diagnose(run).findings if one.rule == "input-unread"]
    assert "trials whose state is none that is known (TERMINATED, lost)" in told.summary


@pytest.mark.parametrize(
    ("word", "state"),
    [
        ("<TrialState.COMPLETE: 1>", "COMPLETE"),
        ("Early-stopped", "PRUNED"),
        ("early stopping", "PRUNED"),
        ("out of memory", "FAIL"),
        ("preempted", "FAIL"),
        ("Interrupted", "FAIL"),
        ("exception", "FAIL"),
        ("stopped", "STOPPED"),
    ],
)
def test_spellings_of_states(word: str, state: str) -> None:
    assert state_of(word) == state


def test_an_underscore_makes_no_number(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("number,value,state,params_hidden\n0,1.5,COMPLETE,64_64\n1,0.5,COMPLETE,128_64\n")
    assert read_trials(path).trials["params.hidden"].tolist() == ["64_64", "128_64"]


def test_an_integer_that_no_float_holds_stays_what_it_is(tmp_path: Path) -> None:
    """Seeds of 64 bits, of which some trials have none."""
    seeds = [2**53 + 1, 2**53, 2**64 - 1]
    rows = "".join(f"{n},0.5,COMPLETE,{seed},{n}\n" for n, seed in enumerate(seeds))
    (tmp_path / "t.csv").write_text(f"number,value,state,params_seed,params_x\n{rows}3,,FAIL,,1.5\n")
    params = read_trials(tmp_path / "t.csv").trials[["params.seed", "params.x"]]
    assert params["params.seed"].tolist() == [*seeds, None] and params["params.x"].tolist() == [0.0, 1.0, 2.0, 1.5]


def test_no_usable_row_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("number,value,state\nx,y,z\n")
    with pytest.raises(InputError, match="none of its 1 rows is a trial"):
        read_trials(tmp_path / "t.csv")


def test_a_dashboard_csv_has_no_times_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text(
        "Number,State,Objective 0,Objective 1,Param x,UserAttribute y\r\n0,COMPLETE,1.5,2.5,3,z\r\n1,RUNNING,,,4,\r\n"
    )
    out = read_trials(path)
    assert out.reader == "optuna-dashboard-csv"
    assert out.trials["params.x"].tolist() == [3, 4]
    assert out.trials["user_attrs.y"][0] == "z"
    assert out.trials[["value_0", "value_1"]].iloc[0].tolist() == [1.5, 2.5]
    assert "carries no times" in out.notes[-1]


@pytest.mark.filterwarnings("ignore:'epoch' date format")
@pytest.mark.parametrize("dates", ["epoch", "iso"])
@pytest.mark.parametrize("orient", ["columns", "split", "records"])
def test_json_of_a_frame(tmp_path: Path, study: optuna.Study, expected: pd.DataFrame, orient: Any, dates: Any) -> None:
    given = {"orient": orient, "date_format": dates, "date_unit": "us"}
    study.trials_dataframe().to_json(tmp_path / "t.json", double_precision=15, **given)
    check(tmp_path / "t.json", expected, "optuna-cli-json")


@pytest.mark.parametrize("orient", ["columns", "split"])
def test_a_cut_json_of_a_frame_says_what_to_write(tmp_path: Path, study: optuna.Study, orient: Any) -> None:
    path = tmp_path / "t.json"
    path.write_text(study.trials_dataframe().to_json(orient=orient, date_format="iso")[:-30])
    with pytest.raises(InputError, match="is no whole table; write the table again, with orient"):
        read_trials(path)


def test_json_lines_are_trials(tmp_path: Path, study: optuna.Study, expected: pd.DataFrame) -> None:
    path = tmp_path / "t.jsonl"
    study.trials_dataframe().to_json(path, orient="records", lines=True, date_format="iso", date_unit="us")
    check(path, expected, "optuna-cli-json", "UTC")
    found = identify(Source.open(path))
    assert found is not None and found[1].name == "optuna-cli-json"
    rows = [{"number": n, "state": "TrialState.COMPLETE", "values": [n, -n], "params": {"lr": n / 8}} for n in (3, 5)]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows) + '{"number": 6, "sta')
    out = read_trials(path)
    assert out.trials[["trial", "value_0", "value_1", "params.lr"]].to_numpy().tolist() == [
        [3, 3, -3, 0.375], [5, 5, -5, 0.625]
    ]  # fmt: skip
    assert [(one.kind, one.line, one.lost) for one in out.problems] == [("line that is not a JSON object", 3, True)]


def test_a_cut_json_list_keeps_its_good_part(tmp_path: Path) -> None:
    records = [{"number": i, "value": 1.0, "params": {"x": i}, "state": "COMPLETE"} for i in range(3)]
    (tmp_path / "t.json").write_text(json.dumps(records)[:-20])
    out = read_trials(tmp_path / "t.json")
    assert out.trials["trial"].tolist() == [0, 1]
    assert out.problems[0].kind == "incomplete: the list is cut"


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("2025-10-24 12:00:00", "2025-10-24T04:00:00Z"),
        ("2025-10-24T12:00:00.5", "2025-10-24T04:00:00.5Z"),
        ("2025-10-24 12:00:00,250", "2025-10-24T04:00:00.25Z"),
        ("2025/10/24 12:00", "2025-10-24T04:00:00Z"),
        ("2025-10-24T12:00:00Z", "2025-10-24T12:00:00Z"),
        ("2025-10-24 12:00:00 UTC", "2025-10-24T12:00:00Z"),
        ("2025-10-24T12:00:00+02:00", "2025-10-24T10:00:00Z"),
        ("2025-10-24 12:00:00.5-05", "2025-10-24T17:00:00.5Z"),
        ("2025-10-24 12:00+00", "2025-10-24T12:00:00Z"),
        ("2025-10-24", "2025-10-23T16:00:00Z"),
        (1761307200, "2025-10-24T12:00:00Z"),
        ("1761307200.25", "2025-10-24T12:00:00.25Z"),
        (1761307200_250, "2025-10-24T12:00:00.25Z"),
        (1761307200_250000, "2025-10-24T12:00:00.25Z"),
        (1761307200_250000000, "2025-10-24T12:00:00.25Z"),
    ],
)
def test_timestamps(cell: object, expected: str) -> None:
    from gpudiag.timezones import parse_zone

    found = to_utc([cell, None], parse_zone("Asia/Taipei"))
    assert found.time[0] == pd.Timestamp(expected)
    assert pd.isna(found.time[1]) and found.bad == 0


@pytest.mark.parametrize(
    ("cell", "seconds"),
    [
        ("0 days 00:03:12", 192.0),
        ("1 days 00:00:01.250000", 86401.25),
        ("1 day, 0:00:01.25", 86401.25),
        ("0:11:56.998922", 716.998922),
        (timedelta(minutes=1), 60.0),
    ],
)
def test_durations(cell: object, seconds: float) -> None:
    assert duration_s(cell) == pytest.approx(seconds, abs=1e-9)


@pytest.mark.parametrize("cell", [None, "", "0 d", "soon", "-1 days +23:59:58", float("nan")])
def test_what_is_no_duration(cell: object) -> None:
    assert np.isnan(duration_s(cell))


def test_a_timestamp_that_is_none() -> None:
    from gpudiag.timezones import parse_zone

    found = to_utc(["yesterday", "", float("nan"), "2025-10-24"], parse_zone("UTC"))
    assert (found.bad, found.example, found.clock) == (1, "yesterday", "local")
