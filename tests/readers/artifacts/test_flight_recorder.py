"""Dumps of the flight recorder: what each entry is, of which rank, and what is refused."""

from __future__ import annotations

import gzip
import json
import pickle
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from writtendumps import START, Call, Dump, calls

import gpudiag as gd
from gpudiag.errors import InputError
from gpudiag.readers import artifacts, telemetry, trials
from gpudiag.readers._io.source import Source
from gpudiag.readers.artifacts.flight_recorder import READER
from gpudiag.readers.artifacts.flight_recorder_pickle import READER as PICKLE
from gpudiag.readers.base import ReadOptions
from gpudiag.schema import COLLECTIVES, conform
from gpudiag.timezones import parse_zone

DUMP = Dump(3, [*calls(4, first=2), Call(5, 5.0, None, "broadcast", (7,)), Call(6, 5.5, None, started=False)])
MINIATURE = """{"entries": [{"collective_seq_id": 1, "input_dtypes": ["Float"], "input_sizes": [[3, 4]],
 "is_p2p": false, "op_id": 1, "output_dtypes": ["Float"], "output_sizes": [[3, 4]], "p2p_seq_id": 0, "pg_id": 0,
 "process_group": ["0", "default_pg"], "profiling_name": "nccl:all_reduce", "record_id": 0, "retired": false,
 "state": "scheduled", "time_created_ns": 1724968491423291000, "time_discovered_completed_ns": 0,
 "time_discovered_started_ns": 0, "timeout_ms": 600000}], "nccl_comm_state": {}, "pg_config": {"0":
 {"desc": "default_pg", "name": "0", "ranks": "[0, 1]"}}, "pg_status": {"0": {"last_completed_collective": "-1",
 "last_enqueued_collective": "1", "last_started_collective": "-1"}}, "version": "2.4"}"""
"""Keys and their order as dump_nccl_trace_json writes them."""


def read(path: Path) -> pd.DataFrame:
    out = READER.read(Source.open(path), ReadOptions(parse_zone("UTC"))).collectives
    pd.testing.assert_frame_equal(out, conform(out, COLLECTIVES))
    return out


def written(tmp_path: Path, held: object, name: str = "nccl_trace_rank_1.json") -> Path:
    path = tmp_path / name
    path.write_text(held if isinstance(held, str) else json.dumps(held), encoding="utf-8")
    return path


@pytest.mark.parametrize("from_pickle", [False, True])
def test_every_entry_is_a_row_with_its_values(tmp_path: Path, from_pickle: bool) -> None:
    rows = read(DUMP.write(tmp_path, from_pickle=from_pickle, written_s=900))
    assert rows["seq"].tolist() == [2, 3, 4, 5, 6] and rows["record"].tolist() == [0, 1, 2, 3, 4]
    assert rows["state"].tolist() == ["completed"] * 3 + ["started", "scheduled"]
    assert rows["name"].tolist() == ["all_reduce"] * 3 + ["broadcast", "all_reduce"]
    assert set(rows["rank"]) == {3} and set(rows["group"]) == {"0"} and set(rows["group_ranks"]) == {"0,1,2,3"}
    assert (rows["time"] - pd.Timestamp(START)).dt.total_seconds().tolist() == [2.0, 3.0, 4.0, 5.0, 5.5]
    assert (rows["completed"] - rows["time"]).dt.total_seconds().tolist()[:3] == [0.01] * 3
    assert rows["completed"].isna().tolist() == [False] * 3 + [True] * 2 and rows["started"].isna().sum() == 1
    assert rows["input_sizes"].tolist()[2:4] == ["1024x8", "7"] and rows["input_elements"].tolist()[2:4] == [8192, 7]
    assert set(rows["timeout_s"]) == {600.0} and set(rows["timed_out"]) == {0}
    assert set(rows["written"]) == {pd.Timestamp(START) + pd.Timedelta(seconds=900)}


def test_a_dump_in_miniature(tmp_path: Path) -> None:
    (row,) = read(written(tmp_path, MINIATURE)).to_dict("records")
    assert (row["rank"], row["group"], row["group_title"], row["group_ranks"]) == (1, "0", "default_pg", "0,1")
    assert (row["name"], row["seq"], row["state"], row["input_elements"]) == ("all_reduce", 1, "scheduled", 12)
    assert row["time"] == pd.Timestamp("2024-08-29 21:54:51.423291", tz="UTC")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["nccl_trace_rank_12", "trace_12.json", "rank12.json.gz", "12.json", "comm-Rank-12.pkl.json"]
)
def test_the_rank_is_in_the_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    data = json.dumps(DUMP.as_json()).encode()
    path.write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    assert set(read(path)["rank"]) == {12}


def test_without_a_rank_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="end its name in the rank, as in nccl_trace_rank_3"):
        read(written(tmp_path, DUMP.as_json(), "trace.json"))
    assert set(read(written(tmp_path, DUMP.as_json() | {"rank": 7}, "trace.json"))["rank"]) == {7}


def test_exactly_one_reader_of_all_registries_recognises_it(tmp_path: Path) -> None:
    readers = (*telemetry.READERS, *trials.READERS, *artifacts.READERS)
    pickled = tmp_path / "nccl_trace_rank_0"
    pickled.write_bytes(pickle.dumps(DUMP.as_json(from_pickle=True), protocol=2))
    for path, expected in ((DUMP.write(tmp_path), READER), (written(tmp_path, MINIATURE), READER), (pickled, PICKLE)):
        assert [one.name for one in readers if one.recognises(Source.open(path))] == [expected.name]


def test_a_rank_that_called_nothing_has_a_row_that_says_so(tmp_path: Path) -> None:
    for from_pickle in (False, True):
        (row,) = read(Dump(2, []).write(tmp_path, from_pickle=from_pickle)).to_dict("records")
        assert (row["rank"], row["state"]) == (2, "none") and pd.isna(row["time"])


def test_a_dump_without_its_collectives_is_refused(tmp_path: Path) -> None:
    held = {name: value for name, value in DUMP.as_json().items() if name != "entries"}
    with pytest.raises(InputError, match="includecollectives=true and onlyactive=false"):
        read(written(tmp_path, held))


def test_a_pickle_is_refused_with_a_command_that_makes_json_of_it(tmp_path: Path) -> None:
    path = tmp_path / "nccl trace_rank_3"
    path.write_bytes(pickle.dumps(DUMP.as_json(from_pickle=True), protocol=2))
    with pytest.raises(InputError) as caught:
        gd.load_run(path)
    said = str(caught.value)
    assert "\n" not in said and "in pickle, which gpudiag never opens" in said
    command = said[said.index("python -c") :]
    subprocess.run(command.replace("python", sys.executable, 1), shell=True, check=True)
    assert len(gd.load_run(tmp_path).collectives) == len(DUMP.calls), "the pickle beside it is passed over"


@pytest.mark.parametrize("change", [
    {"collective_seq_id": -1}, {"collective_seq_id": 1.5}, {"collective_seq_id": True}, {"state": "running"},
    {"profiling_name": None}, {"record_id": None}, {"process_group": []}, {"collective_seq_id": 10**300},
])  # fmt: skip
def test_a_damaged_entry_is_counted_and_of_unknown_state(tmp_path: Path, change: dict[str, Any]) -> None:
    held = DUMP.as_json()
    held["entries"][-1] |= change
    out = READER.read(Source.open(written(tmp_path, held)), ReadOptions(parse_zone("UTC")))
    assert out.collectives["state"].tolist()[-1] == "unknown" and len(out.collectives) == 5
    assert [(one.kind, one.count, one.lost) for one in out.problems] == [("damaged entry", 1, True)]


@pytest.mark.parametrize("change", [
    {"time_created_ns": "soon"}, {"time_created_ns": 10**30}, {"time_created_ns": -5}, {"time_created_ns": True},
])  # fmt: skip
def test_a_time_that_is_none_is_unknown(tmp_path: Path, change: dict[str, Any]) -> None:
    held = DUMP.as_json()
    held["entries"][0] |= change
    out = READER.read(Source.open(written(tmp_path, held)), ReadOptions(parse_zone("UTC")))
    assert out.collectives["time"].isna().tolist() == [True] + [False] * 4
    assert [one.kind for one in out.problems] == ["time that is none"]


def test_odd_sizes_and_limits_are_unknown(tmp_path: Path) -> None:
    held = DUMP.as_json()
    held["entries"] = held["entries"][:1]
    held["entries"][0] |= {"input_sizes": [[-1]], "output_sizes": "x", "timeout_ms": -3, "input_dtypes": [1]}
    (row,) = read(written(tmp_path, held)).to_dict("records")
    assert "input_elements" not in row and "output_sizes" not in row and "timeout_s" not in row


@pytest.mark.parametrize("text", [json.dumps(DUMP.as_json())[:-400], json.dumps(DUMP.as_json())[:-1]])
def test_a_cut_dump_is_not_read_in_part(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match="cut or damaged; copy it again"):
        read(written(tmp_path, text))


@pytest.mark.slow
def test_cut_anywhere_or_changed_at_random_it_is_read_or_refused_in_one_sentence(tmp_path: Path) -> None:
    data, chance = json.dumps(DUMP.as_json()).encode(), random.Random(1)
    for turn in range(120):
        changed = bytearray(data)
        for _ in range(chance.randint(1, 6)):
            changed[chance.randrange(len(data))] = chance.randrange(256)
        path = tmp_path / "rank_1.json"
        path.write_bytes(data[: len(data) * turn // 60] if turn < 60 else bytes(changed))
        try:
            run = gd.load_run(path)
            assert len(run.collectives)
        except InputError as error:
            assert "\n" not in str(error)


def test_dumps_are_tables_of_a_run(tmp_path: Path) -> None:
    for rank in range(4):
        Dump(rank, calls(5)).write(tmp_path)
    run = gd.load_run(tmp_path)
    assert len(run.collectives) == 20 and set(run.collectives["rank"]) == {0, 1, 2, 3}
    assert [one.kind for one in run.info.inputs] == ["artifacts"] * 4
