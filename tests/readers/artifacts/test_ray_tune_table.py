"""A table of Ray Tune's results: one trial for the rows of one id."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from gpudiag.errors import InputError
from gpudiag.readers._io.source import Source
from gpudiag.readers.artifacts import ray_tune_table
from gpudiag.readers.base import ReadOptions, Trials
from gpudiag.readers.identify import identify
from gpudiag.timezones import parse_zone

HEADER = (
    "accuracy,done,training_iteration,trial_id,date,timestamp,time_total_s,pid,hostname,config/lr,config/kind,logdir"
)
BEGIN_S = 1599737035  # 2020-09-10 11:23:55 UTC, 19:23:55 in Taipei


def read(folder: Path, *rows: str) -> Trials:
    path = folder / "results.csv"
    path.write_text("\n".join([HEADER, *rows]) + "\n")
    found = identify(Source.open(path))
    assert found is not None and found[1].name == "ray-tune-table"
    return ray_tune_table.read(Source.open(path), ReadOptions(parse_zone("Asia/Taipei")))


def row(trial: str, step: int, at_s: int, took_s: float, *, done: bool = True) -> str:
    date = pd.Timestamp(BEGIN_S + at_s, unit="s", tz="Asia/Taipei").strftime("%Y-%m-%d_%H-%M-%S")
    logdir = f"/home/me/ray/Train_{trial}_{date}"
    return f"0.{step},{done},{step},{trial},{date},{BEGIN_S + at_s},{took_s},41,node,0.5,a,{logdir}"


def test_a_row_is_a_trial_that_began_its_duration_before_its_timestamp(tmp_path: Path) -> None:
    out = read(tmp_path, row("a1", 3, 300, 300.0), row("b2", 1, 400, 90.0))
    assert out.trials["state"].tolist() == ["COMPLETE", "COMPLETE"] and out.trials["value"].tolist() == [0.3, 0.1]
    start = pd.Timestamp(BEGIN_S, unit="s", tz="UTC")
    assert (out.trials["start"] - start).dt.total_seconds().tolist() == [0.0, 310.0]
    assert (out.trials["end"] - start).dt.total_seconds().tolist() == [300.0, 400.0]
    assert out.trials["params.lr"].tolist() == [0.5, 0.5] and out.trials["params.kind"].tolist() == ["a", "a"]
    assert not out.trials.filter(like="config/").columns.size and "me" not in out.trials["user_attrs.folder"].iloc[0]


def test_rows_of_one_trial_are_its_reports(tmp_path: Path) -> None:
    out = read(tmp_path, row("a1", 1, 100, 100.0, done=False), row("a1", 2, 200, 200.0), "torn,row")
    assert len(out.trials) == 1 and out.reports["value"].tolist() == [0.1, 0.2]
    assert (out.trials["end"] - out.trials["start"]).dt.total_seconds().tolist() == [200.0]
    assert [problem.kind for problem in out.problems] == ["torn row"]


def test_an_underscore_makes_no_number(tmp_path: Path) -> None:
    rows = [row(f"1234e567_0000{k}", 3, 300 + k, 300.0).replace("0.5,a", "64_64,a") for k in range(2)]
    out = read(tmp_path, *rows)
    assert len(out.trials) == 2 and out.trials["params.lr"].tolist() == ["64_64"] * 2


def test_a_result_that_is_no_number_is_no_value(tmp_path: Path) -> None:
    words = row("b2", 1, 400, 90.0).replace("0.1,", "failed,", 1)
    out = read(tmp_path, row("a1", 1, 100, 100.0, done=False), row("a1", 2, 200, 200.0), words)
    assert out.trials["value"].iloc[0] == 0.2 and out.trials["value"].isna().tolist() == [False, True]
    assert out.reports["trial"].tolist() == [0, 0]


def test_a_header_alone_says_that_it_holds_no_result(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no result of Ray Tune"):
        read(tmp_path)


@pytest.mark.parametrize(("pid", "begins_s"), [(41, 300.0), (42, 299.6)])
def test_a_process_begins_no_trial_before_the_end_of_the_one_before(pid: int, begins_s: float, tmp_path: Path) -> None:
    # Timestamps are rounded down: the first ended at 300.2 s, the second at 400.6 s.
    out = read(tmp_path, row("a1", 1, 300, 300.2), row("b2", 1, 400, 100.4).replace(",41,", f",{pid},"))
    start = pd.Timestamp(BEGIN_S, unit="s", tz="UTC")
    assert (out.trials["start"] - start).dt.total_seconds().tolist()[1] == pytest.approx(begins_s)
