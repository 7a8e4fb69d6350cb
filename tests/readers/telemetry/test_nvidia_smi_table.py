"""Tables in a loop: cells by form, the time of snapshots, faults that show in the table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gpudiag.errors import InputError
from gpudiag.readers.base import Telemetry
from gpudiag.readers.telemetry import read_telemetry

HEAD = """\
+---------------------------------------------------------------------------------------+
| NVIDIA-SMI 535.154.05             Driver Version: 535.154.05   CUDA Version: 12.2     |
|-----------------------------------------+----------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |         Memory-Usage | GPU-Util  Compute M. |
|                                         |                      |               MIG M. |
|=========================================+======================+======================|
"""
NAME = "|   0  NVIDIA GeForce RTX 3060 L...    Off| 00000000:01:00.0 Off |                  N/A |\n"
GOOD = "| 30%   57C    P2              21W /  80W|   5918MiB /  6144MiB |     69%      Default |\n"
TAIL = """\
|                                         |                      |                  N/A |
+-----------------------------------------+----------------------+----------------------+

+---------------------------------------------------------------------------------------+
| Processes:                                                                            |
|  GPU   GI   CI        PID   Type   Process name                            GPU Memory |
|        ID   ID                                                             Usage      |
|=======================================================================================|
"""
END = "+---------------------------------------------------------------------------------------+\n"
PROCESS = "|    0   N/A  N/A      1492      C   C:\\\\Program Files\\\\my python.exe             5800MiB |\n"


def snapshot(date: str, values: str = GOOD, processes: str = PROCESS, name: str = NAME) -> str:
    return f"{date}       \n" + HEAD + name + values + TAIL + processes + END


def read(text: str, folder: Path) -> Telemetry:
    path = folder / "smi.log"
    path.write_text(text, encoding="utf-8")
    return read_telemetry(path, timezone="UTC")


def seconds(telemetry: Telemetry) -> list[float]:
    return [round(gap, 3) for gap in telemetry.gpu["time"].diff().dt.total_seconds().tolist()[1:]]


def test_cells_are_told_by_their_form(tmp_path: Path) -> None:
    telemetry = read(snapshot("Tue Oct 29 19:00:23 2024"), tmp_path)
    row = telemetry.gpu.iloc[0]
    wanted = {
        "fan_pct": 30, "temp_c": 57, "pstate": 2, "power_w": 21, "power_limit_w": 80, "mem_used_mib": 5918,
        "mem_total_mib": 6144, "util_pct": 69, "time": pd.Timestamp("2024-10-29 19:00:23", tz="UTC"),
    }  # fmt: skip
    assert {name: row[name] for name in wanted} == wanted
    gpus = telemetry.gpus.iloc[0]
    assert (gpus["driver"], gpus["bus_id"]) == ("535.154.05", "00000000:01:00.0")
    process = telemetry.processes.iloc[0]
    assert (process["pid"], process["mem_used_mib"]) == (1492, 5800) and process["name"].endswith("my python.exe")


@pytest.mark.parametrize(
    ("values", "missing"),
    [
        (GOOD.replace("30%", "N/A"), "fan_pct"),
        (GOOD.replace("21W /  80W", "N/A /  N/A"), "power_w"),
        (GOOD.replace("69%", "N/A"), "util_pct"),
        (GOOD.replace("21W", "ERR!"), "power_w"),
        (GOOD.replace("30%   57C", "ERR!  57C"), "fan_pct"),
    ],
)
def test_a_missing_cell_is_unknown(values: str, missing: str, tmp_path: Path) -> None:
    telemetry = read(snapshot("Tue Oct 29 19:00:23 2024", values), tmp_path)
    assert len(telemetry.gpu) == 1 and telemetry.gpu["mem_used_mib"].tolist() == [5918]
    assert missing not in telemetry.gpu
    assert ("ERR!" in values) == any(problem.kind == "ERR! in a cell" for problem in telemetry.problems)


@pytest.mark.parametrize(
    ("date", "utc"),
    [
        ("Wed Feb 26 01:50:18 PM EST 2025", "2025-02-26 18:50:18"),
        ("Tue Jun  9 09:00:01 UTC 2020", "2020-06-09 09:00:01"),
        ("Fri 21 Nov 2025 11:41:31 PM EST", "2025-11-22 04:41:31"),
        ("==== 2025-09-21 16:12:24 ====", "2025-09-21 16:12:24"),
    ],
)
def test_date_lines_of_other_forms(date: str, utc: str, tmp_path: Path) -> None:
    assert read(snapshot(date), tmp_path).gpu["time"].tolist() == [pd.Timestamp(utc, tz="UTC")]


@pytest.mark.parametrize(
    ("dates", "utc"),
    [
        (["==== Sun May  4 04:27:{:02} AM EDT 2025 ====\nSun May  4 04:27:{:02} 2025"] * 3, "2025-05-04 08:27"),
        (["Sun May  4 09:57:{:02} +0530 2025\nSun May  4 09:57:{:02} 2025", "Sun May  4 09:57:{:02} 2025"],
         "2025-05-04 04:27"),
        (["Sun May  4 08:12:{:02} EDT 2025\nSun May  4 08:27:{:02} 2025"], "2025-05-04 08:27"),
        (["Sun May  4 12:27:{:02} UTC 2025\nSun May  4 08:27:{:02} 2025"], "2025-05-04 08:27"),
    ],
    ids=["shell", "once", "long before", "of another zone"],
)  # fmt: skip
def test_a_zone_stated_above_a_table_holds_for_it(dates: list[str], utc: str, tmp_path: Path) -> None:
    telemetry = read("".join(snapshot(date.format(at, at)) for at, date in enumerate(dates)), tmp_path)
    assert telemetry.gpu["time"].tolist() == [pd.Timestamp(f"{utc}:{at:02}", tz="UTC") for at in range(len(dates))]


def test_snapshots_of_one_second_share_it(tmp_path: Path) -> None:
    dates = ["Sun Jun 11 16:43:02 2023"] * 4 + ["Sun Jun 11 16:43:03 2023"] * 2 + ["Sun Jun 11 16:43:04 2023"]
    telemetry = read("&\n".join(map(snapshot, dates)), tmp_path)
    assert seconds(telemetry) == [0.25, 0.25, 0.25, 0.25, 0.5, 0.5]
    assert any(problem.kind == "line between tables" and problem.count == 6 for problem in telemetry.problems)


def test_a_hole_stays_a_hole(tmp_path: Path) -> None:
    telemetry = read(snapshot("Sun Jan 25 17:24:38 2026") + snapshot("Sun Jan 25 19:00:38 2026"), tmp_path)
    assert seconds(telemetry) == [5760.0]


def test_tables_without_any_date_are_counted(tmp_path: Path) -> None:
    telemetry = read(snapshot("") * 3, tmp_path)
    assert seconds(telemetry) == [1.0, 1.0] and "carry no time" in telemetry.notes[0]


def test_a_table_that_lost_its_date_is_not_given_another_one(tmp_path: Path) -> None:
    text = snapshot("Tue Oct 29 19:00:23 2024") + snapshot("") + snapshot("Tue Oct 29 19:00:25 2024")
    telemetry = read(text, tmp_path)
    assert seconds(telemetry) == [2.0]
    assert any(problem.kind == "row without a time" and problem.lost for problem in telemetry.problems)


LOST = "|ERR!  ERR! ERR!             ERR! / ERR! |  GPU is lost         |    ERR!         ERR! |\n"


def test_a_lost_gpu_is_one_event_with_its_line_and_no_sample(tmp_path: Path) -> None:
    name = NAME.replace("00000000:01:00.0 Off", "00000000:01:00.0ERR!")
    text = snapshot("Tue Oct 29 21:19:51 2024") + "".join(
        snapshot(f"Tue Oct 29 21:19:5{second} 2024", LOST, "", name) for second in range(2, 6)
    )
    telemetry = read(text, tmp_path)
    assert len(telemetry.gpu) == 1
    event = telemetry.events.iloc[0]
    assert len(telemetry.events) == 1
    assert (event["kind"], event["gpu"], event["path"]) == ("gpu_lost", "0", "smi.log")
    assert event["time"] == pd.Timestamp("2024-10-29 21:19:52", tz="UTC")
    assert text.splitlines()[event["line"] - 1] + "\n" == LOST


def test_an_error_in_place_of_a_table_is_an_event(tmp_path: Path) -> None:
    message = "Unable to determine the device handle for GPU 0000:01:00.0: GPU is lost.  Reboot the system\n"
    text = snapshot("Tue Oct 29 21:19:51 2024") + "Tue Oct 29 21:19:55 2024\n" + message
    events = read(text, tmp_path).events
    assert events["kind"].tolist() == ["gpu_lost"] and events["gpu"].tolist() == ["0"]
    assert events["time"].tolist() == [pd.Timestamp("2024-10-29 21:19:55", tz="UTC")]
    failed = "Failed to initialize NVML: Unknown Error\n" * 3
    events = read(snapshot("Tue Oct 29 21:19:51 2024") + failed, tmp_path).events
    assert events["kind"].tolist() == ["driver_failed"] and events["time"].isna().all()


def test_two_boards_at_one_index_are_two_gpus(tmp_path: Path) -> None:
    other = NAME.replace("00000000:01:00.0", "00000000:CA:00.0")
    telemetry = read(snapshot("Tue Oct 29 19:00:23 2024") + snapshot("Tue Oct 29 20:00:23 2024", name=other), tmp_path)
    assert telemetry.gpu["gpu"].tolist() == ["0", "0b"] and telemetry.processes["gpu"].tolist() == ["0", "0b"]
    assert "Two different GPUs have index 0" in telemetry.notes[0]


def test_lines_of_several_hosts_are_kept_apart(tmp_path: Path) -> None:
    one = snapshot("Tue Oct 29 19:00:23 2024").splitlines()
    two = snapshot("Tue Oct 29 19:00:23 2024", GOOD.replace("69%", "12%")).splitlines()
    text = "".join(f"n1: {a}\nn2: {b}\n" for a, b in zip(one, two, strict=True))
    telemetry = read(text, tmp_path)
    assert telemetry.gpu["gpu"].tolist() == ["n1/0", "n2/0"] and telemetry.gpu["util_pct"].tolist() == [69, 12]


@pytest.mark.parametrize("at", [40, 60, 80])
def test_a_torn_row_is_counted_and_costs_itself_only(at: int, tmp_path: Path) -> None:
    text = snapshot("Tue Oct 29 19:00:23 2024", GOOD[:at] + "\n") + snapshot("Tue Oct 29 19:00:24 2024")
    telemetry = read(text, tmp_path)
    assert len(telemetry.gpu) == 1
    torn = next(problem for problem in telemetry.problems if problem.kind == "torn table row")
    assert torn.line == 10 and torn.lost


def test_a_recorded_screen_is_refused_with_the_remedy(tmp_path: Path) -> None:
    screen = (
        "\x1b[?1049h\x1b[22;0;0t\x1b[1;24r\x1b[H\x1b[2JEvery 2.0s: nvidia-smi\x1b[1;42Hhost: Fri Dec  5 10:01:25 2025"
    )
    with pytest.raises(InputError, match="nvidia-smi -l 1"):
        read(screen + "\x1b[4d+---+\x1b[5d| NVIDIA-SMI 580.95\x1b[6d|---", tmp_path)


def test_a_screen_cleared_before_each_table_is_still_lines(tmp_path: Path) -> None:
    text = "".join("\x1b[H\x1b[2J\x1b[3J" + snapshot(f"Tue Oct 29 19:00:2{n} 2024") for n in range(3))
    assert seconds(read(text, tmp_path)) == [1.0, 1.0]


def test_a_transcript_of_several_tools_gives_its_tables_and_says_so(tmp_path: Path) -> None:
    dmon = "# gpu    pwr  gtemp     sm\n# Idx      W      C      %\n    0     78     28     50\n"
    telemetry = read(snapshot("Tue Oct 29 19:00:23 2024") + dmon + snapshot("Tue Oct 29 19:00:24 2024"), tmp_path)
    assert telemetry.reader == "nvidia-smi table" and len(telemetry.gpu) == 2
    assert "output of nvidia-smi dmon" in telemetry.notes[0]


def test_memory_of_mig_instances_is_not_taken_for_the_board(tmp_path: Path) -> None:
    mig = """\
| MIG devices:                                                                            |
| GPU  GI  CI  MIG |              Shared Memory-Usage |        Vol|        Shared         |
|==================+==================================+===========+=======================|
|  0    2   0   0  |              22MiB / 71424MiB    | 16      0 |  3   0    3    0    3 |
"""
    text = snapshot("Tue Oct 29 19:00:23 2024", GOOD.replace("69%", "N/A")).replace(
        "| Processes:", mig + "| Processes:"
    )
    telemetry = read(text, tmp_path)
    assert telemetry.gpu["mem_total_mib"].tolist() == [6144] and "util_pct" not in telemetry.gpu
    assert not np.isnan(telemetry.gpu["power_w"]).any() and len(telemetry.processes) == 1
