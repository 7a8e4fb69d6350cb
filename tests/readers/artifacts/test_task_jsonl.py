"""JSON Lines of batch tasks: who is recognised, what each spelling means, and what a torn file keeps."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from gpudiag.errors import InputError
from gpudiag.readers._io.source import Source
from gpudiag.readers.artifacts import task_jsonl
from gpudiag.readers.base import ReadOptions, Trials
from gpudiag.timezones import parse_zone


def write(folder: Path, *lines: object, name: str = "tasks.jsonl") -> Path:
    path = folder / name
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


def read(path: Path, zone: str = "Asia/Taipei", study: str | None = None) -> Trials:
    return task_jsonl.read(Source.open(path), ReadOptions(parse_zone(zone), study=study))


def window(label: str, status: str, timestamp: str, **more: object) -> dict[str, object]:
    """A line as a batch trainer writes it: one timestamp, and the span of its data beside it."""
    span = {"start": "2024-01-01", "end": "2024-03-31"}
    return {
        "batch_id": "b7",
        "symbol": "TCS",
        "window_label": label,
        "date_range": span,
        "status": status,
        "timestamp": timestamp,
    } | more


def test_one_timestamp_is_the_end_and_the_span_of_the_data_is_not_a_time(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        window("TCS_2024Q1", "success", "2025-10-28T10:01:02.5"),
        window("TCS_2024Q2", "failed", "2025-10-28T10:02:02", error="CUDA out of memory"),
    )
    out = read(path)
    trials = out.trials
    assert trials["state"].tolist() == ["COMPLETE", "FAIL"]
    assert trials["name"].tolist() == ["TCS_2024Q1", "TCS_2024Q2"]
    assert trials["trial"].tolist() == [0, 1]
    assert set(trials["study"]) == {"b7"}
    assert trials["start"].isna().all()
    assert trials["end"][0] == pd.Timestamp("2025-10-28T02:01:02.5Z")
    assert trials["detail"][1] == "CUDA out of memory"
    assert "duration_s" not in trials
    assert any("starts, and so overlap, are unknown" in note for note in out.notes)
    assert any("Asia/Taipei" in note for note in out.notes)
    assert out.studies["clock"].tolist() == ["local"]


def test_start_and_end_in_seconds_since_1970_with_places_and_parameters(tmp_path: Path) -> None:
    line = {"task": 7, "ok": True, "start": 1761645600.25, "end": 1761645609.75, "gpu": "cuda:1", "pid": 41}
    path = write(tmp_path, line | {"parameters": {"max_depth": 9, "boost": "dart"}, "worker_id": 2})
    out = read(path)
    row = out.trials.iloc[0]
    assert row["start"] == pd.Timestamp("2025-10-28T10:00:00.25Z")
    assert (row["end"] - row["start"]).total_seconds() == 9.5
    assert (row["gpu"], row["pid"], row["worker"], row["name"]) == ("1", 41, "2", "7")
    assert (row["params.max_depth"], row["params.boost"]) == (9, "dart")
    assert out.notes == ()
    assert out.studies["clock"].tolist() == ["utc"]


def test_milliseconds_since_1970_and_a_written_zone(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        {"name": "a", "status": "ok", "start": 1761645600250, "end": "2025-10-28T18:00:09.75+08:00"},
        {"name": "b", "status": "ok", "start": "2025-10-28T10:00:00.25Z", "end": "2025-10-28 10:00:09.75 UTC"},
    )
    trials = read(path, zone="America/New_York").trials
    assert trials["start"].tolist() == [pd.Timestamp("2025-10-28T10:00:00.25Z")] * 2
    assert trials["end"].tolist() == [pd.Timestamp("2025-10-28T10:00:09.75Z")] * 2


@pytest.mark.parametrize(
    ("more", "state"),
    [
        ({"status": "ok"}, "COMPLETE"),
        ({"status": "SUCCESS"}, "COMPLETE"),
        ({"status": "Timed out"}, "FAIL"),
        ({"state": "error"}, "FAIL"),
        ({"outcome": "queued"}, "WAITING"),
        ({"success": False}, "FAIL"),
        ({"failed": True}, "FAIL"),
        ({"failed": False}, "COMPLETE"),
        ({"exit_code": 0}, "COMPLETE"),
        ({"returncode": -9}, "FAIL"),
    ],
)
def test_every_spelling_of_an_outcome(tmp_path: Path, more: dict[str, object], state: str) -> None:
    path = write(tmp_path, {"task": "t", "seconds": 1.0} | more)
    assert task_jsonl.recognises(Source.open(path))
    assert read(path).trials["state"].tolist() == [state]


@pytest.mark.parametrize(
    ("more", "seconds"),
    [
        ({"seconds": 4.5}, 4.5),
        ({"duration_ms": 4500}, 4.5),
        ({"duration": "0:00:04.5"}, 4.5),
        ({"start": 10.0, "end": 14.5}, 4.5),
        ({"time": 4.5}, 4.5),
        ({"seconds": -1}, None),
        ({"seconds": "soon"}, None),
    ],
)
def test_a_stated_duration_is_kept_where_the_times_are_unknown(
    tmp_path: Path, more: dict[str, object], seconds: float | None
) -> None:
    trials = read(write(tmp_path, {"task": "t", "status": "ok"} | more)).trials
    assert trials["start"].isna().all() and trials["end"].isna().all()
    assert ("duration_s" not in trials) if seconds is None else trials["duration_s"].tolist() == [seconds]


def test_a_started_line_and_a_finished_line_are_one_task(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        {"task": "a", "status": "started", "ts": 1761645600},
        {"task": "b", "status": "started", "ts": 1761645601},
        {"task": "a", "status": "ok", "ts": 1761645610},
    )
    trials = read(path).trials
    assert trials["name"].tolist() == ["a", "b"]
    assert trials["state"].tolist() == ["COMPLETE", "RUNNING"]
    assert (trials["end"][0] - trials["start"][0]).total_seconds() == 10
    assert pd.isna(trials["end"][1])


def test_tasks_that_number_trials_keep_number_value_and_parameters(tmp_path: Path) -> None:
    lines = [
        {"trial": number, "status": "ok", "value": number / 8, "params_lr": 0.5, "seconds": 1} for number in (9, 4, 5)
    ]
    trials = read(write(tmp_path, *lines)).trials
    assert trials[["trial", "value", "params.lr"]].to_numpy().tolist() == [
        [4, 0.5, 0.5],
        [5, 0.625, 0.5],
        [9, 1.125, 0.5],
    ]
    assert not {"user_attrs.trial", "user_attrs.value"} & set(trials)
    again = read(write(tmp_path, *lines, lines[0])).trials  # a number of several tasks is none of theirs
    assert again["trial"].tolist() == [0, 1, 2, 3] and again["user_attrs.trial"].tolist() == [9, 4, 5, 9]
    words = read(write(tmp_path, *lines, lines[0] | {"trial": 3, "value": "good"})).trials
    assert words["trial"].tolist() == [3, 4, 5, 9] and words["user_attrs.value"].tolist()[0] == "good"
    one = {"trial": 3, "status": "running", "start": 1761645600}
    pair = read(write(tmp_path, one, one | {"status": "ok", "end": 1761645610})).trials
    assert pair[["trial", "state"]].to_numpy().tolist() == [[3, "COMPLETE"]]


def test_a_task_without_a_name_is_called_by_symbol_and_window(tmp_path: Path) -> None:
    trials = read(write(tmp_path, {"symbol": "TCS", "window": "2024Q1", "ok": True, "seconds": 1})).trials
    assert trials["name"].tolist() == ["TCS 2024Q1"]
    assert trials["user_attrs.symbol"].tolist() == ["TCS"]


def test_two_batches_in_one_file_number_their_own_tasks(tmp_path: Path) -> None:
    lines = [{"batch": batch, "task": str(i), "ok": True, "seconds": 1} for i, batch in enumerate("aab")]
    out = read(write(tmp_path, *lines))
    assert list(zip(out.trials["study"], out.trials["trial"], strict=True)) == [("a", 0), ("a", 1), ("b", 0)]
    assert out.studies["study"].tolist() == ["a", "b"]
    assert set(read(write(tmp_path, *lines), study="mine").trials["study"]) == {"mine"}


def test_a_device_kind_is_not_a_gpu(tmp_path: Path) -> None:
    trials = read(write(tmp_path, {"task": "t", "ok": True, "seconds": 1, "device": "gpu"})).trials
    assert "gpu" not in trials


def test_torn_and_foreign_lines_are_counted(tmp_path: Path) -> None:
    path = write(tmp_path, {"task": "a", "ok": True, "seconds": 1}, "", '{"task": "b", "o', {"note": "end"}, "[1, 2]")
    out = read(path)
    assert len(out.trials) == 1
    found = {problem.kind: problem for problem in out.problems}
    assert found["line that is not a JSON object"].count == 2
    assert found["line that is not a JSON object"].line == 3
    assert found["object without a known status"].line == 4
    assert all(problem.lost for problem in out.problems)


def test_a_file_without_a_task_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no line is a task; expected JSON objects with a status"):
        read(write(tmp_path, {"hello": 1}))


@pytest.mark.parametrize(
    "line",
    [
        {"op_code": 0, "worker_id": "w", "study_name": "s", "directions": [1]},
        {"_timestamp": 1761645600, "_runtime": 3.0, "system.gpu.0.gpu": 3.0, "state": "running"},
        {"level": "info", "status": "ok", "timestamp": "2025-10-28T10:00:00"},
        {"status": 200, "timestamp": "2025-10-28T10:00:00", "path": "/"},
        {"training_iteration": 1, "done": True, "status": "ok", "timestamp": 1761645600},
        {"status": "ok", "message": "no time at all"},
        {"number": 0, "timestamp": "2025-10-28T10:00:00"},
    ],
)
def test_other_json_lines_are_left_alone(tmp_path: Path, line: dict[str, object]) -> None:
    assert not task_jsonl.recognises(Source.open(write(tmp_path, line, line, line)))


def test_nothing_of_the_corpus_is_claimed(corpus: Path) -> None:
    claimed = [p for p in corpus.rglob("*") if p.is_file() and task_jsonl.recognises(Source.open(p))]
    assert claimed == []
