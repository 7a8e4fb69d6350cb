"""--query-compute-apps: memory of processes is never the GPU's, names hold anything, nothing running is no fault."""

from __future__ import annotations

from pathlib import Path

import pytest

import gpudiag as gd
from gpudiag.errors import InputError
from gpudiag.readers.base import Telemetry
from gpudiag.readers.telemetry import read_telemetry

HEAD = "timestamp, gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n"
UUID = "GPU-27b94a00-ed54-5c24-b1fd-000000000001"


def row(second: int, rest: str) -> str:
    return f"2026/03/01 10:00:{second:02d}.378, {UUID}, {rest}\n"


def read(text: str, folder: Path) -> Telemetry:
    (folder / "apps.csv").write_text(text, encoding="utf-8")
    return read_telemetry(folder / "apps.csv", timezone="UTC")


def test_it_fills_processes_and_no_gpu(tmp_path: Path) -> None:
    telemetry = read(HEAD + row(0, "7, python, 512 MiB") + row(1, "7, python, 640 MiB"), tmp_path)
    assert not len(telemetry.gpu) and telemetry.processes["mem_used_mib"].tolist() == [512, 640]
    assert telemetry.gpus[["gpu", "uuid"]].to_numpy().tolist() == [["0", UUID]]


@pytest.mark.parametrize(
    ("rest", "name", "used"),
    [
        ("7, /home/a b/My Env, v2/python -c x, 512 MiB", "/home/a b/My Env, v2/python -c x", 512),
        ("7, C:\\\\Program Files\\\\x.exe, [N/A]", "C:\\\\Program Files\\\\x.exe", None),
        ("7, [Not Found], 3 MiB", "[Not Found]", 3),
    ],
)
def test_names_and_missing_sizes(rest: str, name: str, used: float | None, tmp_path: Path) -> None:
    table = read(HEAD + row(0, rest), tmp_path).processes
    assert table["name"].tolist() == [name] and table.get("mem_used_mib", [None])[0] == used


def test_torn_rows_are_dropped_and_counted(tmp_path: Path) -> None:
    torn = (
        row(2, "7, python, ")
        + row(2, "7, python, 51")
        + row(3, "7x, python, 512 MiB")
        + HEAD
        + row(4, "7, python, 5 GiB")
    )
    telemetry = read(HEAD + row(0, "7, python, 512 MiB") + torn, tmp_path)
    assert len(telemetry.processes) == 1
    assert [(p.kind, p.count, p.line, p.lost) for p in telemetry.problems] == [("torn row", 4, 3, True)]


def test_a_header_alone_is_refused_alone_and_no_loss_beside_a_log(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no usable sample"):
        read(HEAD, tmp_path)
    (tmp_path / "smi.csv").write_text("timestamp, index, utilization.gpu [%]\n2026/03/01 10:00:00.378, 0, 7 %\n")
    assert gd.load_run(tmp_path, timezone="UTC").gpu["util_pct"].tolist() == [7]


@pytest.mark.parametrize("unit", [" MiB", ""])
def test_columns_in_any_order(unit: str, tmp_path: Path) -> None:
    head = "timestamp, used_gpu_memory [MiB], pid, process_name\n"
    rows = [f"2026/03/01 10:00:0{s}.378, {512 + s}{unit}, 7, /opt/a, b/python -c x" for s in range(5)]
    telemetry = read(head + "\n".join(rows) + "\n", tmp_path)
    assert telemetry.processes["mem_used_mib"].tolist() == [512, 513, 514, 515, 516] and not telemetry.problems
    assert set(telemetry.processes["name"]) == {"/opt/a, b/python -c x"} and set(telemetry.processes["pid"]) == {7}
