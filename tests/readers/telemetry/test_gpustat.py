"""gpustat text and JSON: options, spellings, hosts, unknown values."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from gpudiag.errors import InputError
from gpudiag.readers.base import Telemetry
from gpudiag.readers.telemetry import read_telemetry

HEAD = "compute3                          Mon Dec 19 18:33:32 2022  465.19.01\n"


def read(text: str, folder: Path) -> Telemetry:
    path = folder / "gpu.txt"
    path.write_text(text, encoding="utf-8")
    return read_telemetry(path, timezone="UTC")


@pytest.mark.parametrize(
    ("row", "wanted"),
    [
        ("[0] Tesla P4 | 44'C,  ?? %,   3 %,   28 /  75 W |  1059 /  7606 MB | root:python/7468(1049M)",
         {"temp_c": 44, "util_pct": 3, "power_w": 28, "power_limit_w": 75, "mem_used_mib": 1059}),
        ("[0] Tesla P4 | 44\N{DEGREE SIGN}C,  30 %,   3 % (E:  5 %  D:  6 %),  28 W |  1059 /  7606 MB |",
         {"fan_pct": 30, "util_pct": 3, "enc_pct": 5, "dec_pct": 6, "power_w": 28}),
        ("[0] GeForce RTX 2080 Ti | 50C,  16 % |  5865 / 10989 MB", {"temp_c": 50, "util_pct": 16}),
        ("[0] GeForce RTX 2080 Ti | ??'C,  ?? % |  5865 / 10989 MB | user(?M)", {"mem_used_mib": 5865}),
    ],
)  # fmt: skip
def test_values(row: str, wanted: dict[str, float], tmp_path: Path) -> None:
    table = read(HEAD + row + "\n", tmp_path).gpu
    known = {name: table[name].tolist()[0] for name in table if name not in ("time", "gpu")}
    assert {name: value for name, value in known.items() if name in wanted} == wanted
    if "??'C" in row:
        assert set(known) == {"mem_used_mib", "mem_total_mib"}


def test_only_processes_with_a_pid_are_rows(tmp_path: Path) -> None:
    rows = "root:python/711(3709M) anna(12M) root/712(?M)"
    table = read(f"{HEAD}[0] P4 | 44'C,  3 % |  1059 /  7606 MB | {rows}\n", tmp_path).processes
    assert table["pid"].tolist() == [711, 712] and table["name"].isna().tolist() == [False, True]
    assert table["mem_used_mib"].isna().tolist() == [False, True]


@pytest.mark.parametrize(
    ("date", "utc"),
    [
        ("2020-09-28 00:14:16", "2020-09-28 00:14:16"),
        ("Mon 24 Aug 2020 06:47:36 AM UTC", "2020-08-24 06:47:36"),
        ("Mo 24 Aug 2020 06:47:36", "2020-08-24 06:47:36"),
    ],
)
def test_the_date_line_as_locales_write_it(date: str, utc: str, tmp_path: Path) -> None:
    text = f"DESKTOP-1                        {date}  451.67\n[0] P4 | 44'C,  3 % |  1059 /  7606 MB\n"
    telemetry = read(text, tmp_path)
    assert telemetry.gpu["time"].tolist() == [pd.Timestamp(utc, tz="UTC")]
    assert telemetry.gpus["driver"].tolist() == ["451.67"]


def test_a_recorded_screen_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="gpustat -i 1"):
        read("\x1b[?1049h\x1b[1;24rEvery 1.0s: gpustat\x1b[3;1H[0] P4 | 44'C,  3 % | 1 / 2 MB\x1b[1;40Hhost", tmp_path)


def test_a_torn_row_is_counted(tmp_path: Path) -> None:
    telemetry = read(f"{HEAD}[0] P4 | 44'C,  3 % |  1059 /  7606 MB\n[1] P4 | 44'C,  3 % |  10\n", tmp_path)
    assert [(problem.kind, problem.line, problem.lost) for problem in telemetry.problems] == [("torn row", 3, True)]


def test_rows_before_the_first_date_are_not_given_one(tmp_path: Path) -> None:
    row = "[0] P4 | 44'C,  3 % |  1059 /  7606 MB\n"
    telemetry = read(row + HEAD + row, tmp_path)
    assert len(telemetry.gpu) == 1 and [problem.line for problem in telemetry.problems] == [1]


def document(second: int, **gpu: object) -> str:
    row = {"index": 0, "utilization.gpu": 5, "memory.used": 10, **gpu}
    return json.dumps({"hostname": "n1", "query_time": f"2019-08-23T11:28:{second}.9", "gpus": [row]}, indent=4) + "\n"


def test_json_numbers_null_and_text(tmp_path: Path) -> None:
    telemetry = read(document(10, **{"power.draw": None, "fan.speed": "broken", "temperature.gpu": 67}), tmp_path)
    row = telemetry.gpu.iloc[0]
    assert row["util_pct"] == 5 and row["temp_c"] == 67 and "power_w" not in row and "fan_pct" not in row
    assert row["time"] == pd.Timestamp("2019-08-23 11:28:10.9", tz="UTC")


def test_damaged_json_costs_its_document(tmp_path: Path) -> None:
    telemetry = read(document(10) + document(11)[:60] + "\n" + document(12) + '{"gpus": ' + "[" * 9000, tmp_path)
    assert telemetry.gpu["time"].dt.second.tolist() == [10, 12]
    assert sum(problem.count for problem in telemetry.problems if problem.lost) >= 2


def test_json_of_two_hosts(tmp_path: Path) -> None:
    telemetry = read(document(10) + document(10).replace('"n1"', '"n2"'), tmp_path)
    assert sorted(telemetry.gpu["gpu"]) == ["n1/0", "n2/0"]
