"""Nextflow's trace file: tasks with their states, times from durations, sizes, in human units and raw."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

import gpudiag as gd
from gpudiag.errors import InputError
from gpudiag.readers._batches.nextflow_cells import mib, percent, seconds
from gpudiag.readers._io.source import Source
from gpudiag.readers.artifacts import nextflow_trace
from gpudiag.readers.base import ReadOptions, Trials
from gpudiag.readers.identify import identify
from gpudiag.timezones import parse_zone

HEADER = "task_id hash native_id name status exit submit duration realtime %cpu peak_rss peak_vmem rchar wchar"
FIRST = (
    "5|02/5852bd|2315|TRAIN (fold 1)|COMPLETED|0|2026-03-01 10:00:00.500|1m 39s|17.5s|379.6%|1.2 GB|36 MB|108.1 MB|0"
)
LAST = "9|c4/cfcba8|2319|EVAL (fold 9)|ABORTED|-|2026-03-01 11:00:00.250|-|-|-|-|-|-|-"


def read(folder: Path, *rows: str, header: str = HEADER, zone: str = "Asia/Taipei", delimiter: str = "\t") -> Trials:
    path = folder / "trace.txt"
    text = "\n".join([header.replace(" ", "|"), *rows]) + "\n"
    path.write_text(text.replace("|", delimiter), encoding="utf-8")
    found = identify(Source.open(path))
    assert found is not None and found[1].name == "nextflow-trace"
    return nextflow_trace.read(Source.open(path), ReadOptions(parse_zone(zone)))


def test_the_first_and_the_last_row(tmp_path: Path) -> None:
    out = read(tmp_path, FIRST, LAST)
    first, last = out.trials.to_dict("records")
    assert (first["study"], first["trial"], first["name"], first["state"]) == ("trace", 0, "TRAIN (fold 1)", "COMPLETE")
    assert first["end"] == pd.Timestamp("2026-03-01T02:01:39.500Z")
    assert first["start"] == pd.Timestamp("2026-03-01T02:01:22Z")
    assert (first["user_attrs.hash"], first["user_attrs.native_id"]) == ("02/5852bd", "2315")
    assert (first["user_attrs.cpu_pct"], first["user_attrs.peak_rss_mib"]) == (379.6, pytest.approx(1228.8))
    assert (first["user_attrs.rchar_mib"], first["user_attrs.wchar_mib"]) == (108.1, 0)
    assert (last["state"], last["detail"]) == ("FAIL", "ABORTED") and pd.isna(last["start"]) and pd.isna(last["end"])
    assert math.isnan(last["user_attrs.peak_rss_mib"]) and out.problems == ()
    assert out.studies["clock"].tolist() == ["local"] and "local time of Asia/Taipei" in out.notes[-1]
    assert "wrote no start" in out.notes[0]


@pytest.mark.parametrize(
    ("status", "code", "state", "detail"),
    [
        ("COMPLETED", "0", "COMPLETE", None), ("FAILED", "137", "FAIL", "FAILED, exit code 137"),
        ("FAILED", "-", "FAIL", "FAILED"), ("RUNNING", "-", "RUNNING", None), ("SUBMITTED", "-", "WAITING", None),
        ("NEW", "-", "WAITING", None),
    ],
)  # fmt: skip
def test_states(tmp_path: Path, status: str, code: str, state: str, detail: str | None) -> None:
    (row,) = read(tmp_path, FIRST.replace("COMPLETED|0", f"{status}|{code}")).trials.to_dict("records")
    assert row["state"] == state
    assert (None if pd.isna(row.get("detail")) else row["detail"]) == detail


@pytest.mark.slow
def test_a_task_from_the_cache_did_not_run(tmp_path: Path) -> None:
    """A resumed pipeline: of three tasks that ran one failed, whatever the cache held."""
    cached = FIRST.replace("COMPLETED", "CACHED")
    failed = FIRST.replace("COMPLETED|0", "FAILED|1")
    out = read(tmp_path, cached, FIRST, cached, failed, FIRST)
    assert out.trials[["trial", "state"]].to_numpy().tolist() == [[0, "COMPLETE"], [1, "FAIL"], [2, "COMPLETE"]]
    assert "2 tasks came from the cache of an earlier run and did not run in this one." in out.notes
    run = gd.load_run(tmp_path / "trace.txt", timezone="UTC")
    assert gd.measures.measure_search(run).trial_worker_h == pytest.approx(3 * 17.5 / 3600)
    assert gd.measures.measure_trials(run).fail_pct == pytest.approx(100 / 3)


def test_where_all_came_from_the_cache_there_is_no_trial(tmp_path: Path) -> None:
    out = read(tmp_path, FIRST.replace("COMPLETED", "CACHED"))
    assert out.trials.empty and any("1 task came from the cache" in note for note in out.notes)
    assert gd.diagnose(gd.load_run(tmp_path / "trace.txt", timezone="UTC")).findings == ()


def test_raw_numbers_are_milliseconds_and_bytes(tmp_path: Path) -> None:
    raw = "5|02/5852bd|2315|TRAIN (fold 1)|COMPLETED|0|1772330400500|99000|17500|379.6|1288490189|37748736|1048576|0"
    out = read(tmp_path, raw, zone="America/New_York")
    (row,) = out.trials.to_dict("records")
    assert row["end"] == pd.Timestamp("2026-03-01T02:01:39.500Z") and row["start"] == pd.Timestamp(
        "2026-03-01T02:01:22Z"
    )
    assert (row["user_attrs.peak_rss_mib"], row["user_attrs.rchar_mib"]) == (pytest.approx(1228.8), 1.0)
    assert out.studies["clock"].tolist() == ["utc"] and not any("local time" in note for note in out.notes)


@pytest.mark.parametrize("delimiter", ["\t", ",", ";"])
def test_stated_starts_and_ends_hold(tmp_path: Path, delimiter: str) -> None:
    header = "task_id hash status start complete realtime hostname cpus attempt"
    row = "5|02/5852bd|COMPLETED|2026-03-01 10:00:00.500|2026-03-01 10:30:00.250|29m 1s|n7|8|2"
    out = read(tmp_path, row, header=header, delimiter=delimiter)
    (trial,) = out.trials.to_dict("records")
    assert (trial["start"], trial["end"]) == (
        pd.Timestamp("2026-03-01T02:00:00.5Z"),
        pd.Timestamp("2026-03-01T02:30:00.25Z"),
    )
    assert (trial["host"], trial["user_attrs.cpus"], trial["user_attrs.attempt"]) == ("n7", 8, 2)
    assert not any("wrote no start" in note for note in out.notes)


def test_durations_are_added_across_a_change_of_clocks(tmp_path: Path) -> None:
    late = FIRST.replace("2026-03-01 10:00:00.500", "2026-03-29 01:30:00.000").replace("1m 39s|17.5s", "3h|2h")
    (row,) = read(tmp_path, late, zone="Europe/Berlin").trials.to_dict("records")
    assert (row["start"], row["end"]) == (pd.Timestamp("2026-03-29T01:30Z"), pd.Timestamp("2026-03-29T03:30Z"))


def test_a_task_begins_no_earlier_than_it_was_submitted(tmp_path: Path) -> None:
    (row,) = read(tmp_path, FIRST.replace("1m 39s|17.5s", "17s|17.5s")).trials.to_dict("records")
    assert row["start"] == pd.Timestamp("2026-03-01T02:00:00.500Z")


def test_wrong_cells_are_counted_and_the_row_is_kept(tmp_path: Path) -> None:
    rows = [FIRST.replace("1m 39s", "1 min"), FIRST.replace("17.5s", "-5s"), FIRST.replace("1.2 GB", "lots"),
            FIRST.replace("379.6%", "NaN%"), FIRST.replace("2026-03-01 10", "2026-13-01 10"), FIRST]  # fmt: skip
    out = read(tmp_path, *rows)
    assert len(out.trials) == 6
    assert out.trials["start"].isna().tolist() == [True, True, False, False, True, False]
    assert {one.kind: (one.count, one.lost) for one in out.problems} == {
        "cell of duration that is none": (1, False), "cell of realtime that is none": (1, False),
        "cell of peak_rss that is none": (1, False), "cell of %cpu that is none": (1, False),
        "timestamp that is no date": (1, False),
    }  # fmt: skip


def test_torn_and_unknown_rows_are_lost_and_hostile_names_stay_text(tmp_path: Path) -> None:
    hostile = FIRST.replace("TRAIN (fold 1)", "<img src=x> \"quoted, 'name")
    out = read(tmp_path, FIRST[:60], HEADER.replace(" ", "|"), FIRST.replace("COMPLETED", "WHAT"), hostile, "")
    assert out.trials["name"].tolist() == ["<img src=x> \"quoted, 'name"]
    assert [(one.kind, one.line) for one in out.problems] == [
        ("row of another width", 2),
        ("row without a known status", 4),
    ]
    with pytest.raises(InputError, match="holds no task"):
        read(tmp_path)


def test_what_may_hold_secrets_is_not_kept(tmp_path: Path) -> None:
    out = read(
        tmp_path,
        "1|a/b|COMPLETED|1s|export KEY=hunter2|hunter2|/w/hunter2",
        header="task_id hash status realtime script env workdir",
    )
    assert "hunter2" not in out.trials.to_csv()


@pytest.mark.parametrize(
    ("cell", "wanted"),
    [("325ms", 0.325), ("7.2s", 7.2), ("1m 39s", 99), ("2d 3h 1m", 183660), ("1500", 1.5), ("0", 0), ("0ms", 0)],
)
def test_durations(cell: str, wanted: float) -> None:
    assert seconds(cell) == pytest.approx(wanted)


@pytest.mark.parametrize("cell", ["", "-1s", "1 m", "1m39s", "s", "1e3s", "9999999d", "9" * 30, "²", "nans", "1:30"])
def test_what_is_no_duration(cell: str) -> None:
    assert math.isnan(seconds(cell))


def test_sizes_and_shares() -> None:
    assert [mib(cell) for cell in ("540 B", "1 KB", "11 MB", "1.5 TB", "0", "1048576")] == pytest.approx(
        [540 / 2**20, 1 / 1024, 11, 1.5 * 2**20, 0, 1]
    )
    assert all(math.isnan(mib(cell)) for cell in ("", "B", "-1 MB", "1 mb", "1 XB", "1.2.3 MB"))
    assert percent("0.0%") == 0 and percent("1599.5%") == 1599.5 and math.isnan(percent("-3%"))


@pytest.mark.parametrize(
    "header",
    ["task_id status", "status submit duration", "task_id hash native_id name", "task_id\thash\tstatus\tsubmit\tloss"],
)
def test_other_tables_are_none(tmp_path: Path, header: str) -> None:
    (tmp_path / "t.txt").write_text(header.replace(" ", "\t") + "\n1\t2\t3\t4\t5\n")
    assert not nextflow_trace.recognises(Source.open(tmp_path / "t.txt"))
