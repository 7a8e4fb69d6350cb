"""nvitop CSV: GPU of a column, mean before last, host columns, torn rows."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from gpudiag.readers.base import Telemetry
from gpudiag.readers.telemetry import read_telemetry

KEYS = [
    "t/host/cpu_percent (%)/mean", "t/host/memory_used (GiB)/mean", "t/cuda:0 (gpu:3)/gpu_utilization (%)/last",
    "t/cuda:0 (gpu:3)/gpu_utilization (%)/mean", "t/gpu:1/gpu_utilization (%)/last", "t/gpu:1/memory_used (MiB)/max",
    "t/pid:7/cuda:0 (gpu:3)/gpu_sm_utilization (%)/mean", "t/duration (s)", "t/timestamp",
]  # fmt: skip


def read(rows: list[str], folder: Path) -> Telemetry:
    path = folder / "metrics.csv"
    path.write_text("\n".join([",".join(KEYS), *rows]) + "\n", encoding="utf-8")
    return read_telemetry(path, timezone="Asia/Taipei")


def test_values_and_units(tmp_path: Path) -> None:
    telemetry = read(["9.5,2,90,80,70,60,50,5,1655909466.5"], tmp_path)
    assert telemetry.gpu[["gpu", "util_pct"]].to_numpy().tolist() == [["1", 70], ["3", 80]]
    assert "mem_used_mib" not in telemetry.gpu, "a maximum is no sample"
    assert telemetry.host[["cpu_pct", "ram_used_mib"]].to_numpy().tolist() == [[9.5, 2048]]
    assert telemetry.gpu["time"].tolist() == [pd.Timestamp(1655909466.5, unit="s", tz="UTC")] * 2
    assert telemetry.clock == "utc"


def test_empty_cells_are_unknown_and_torn_rows_are_counted(tmp_path: Path) -> None:
    telemetry = read(["9.5,2,90,,70,60,50,5,1655909466.5", "9.5,2,90,80", "9.5,2,90,8,7,6,5,5,16559"], tmp_path)
    assert telemetry.gpu["util_pct"].isna().tolist() == [False, True]
    assert [(problem.kind, problem.count, problem.line) for problem in telemetry.problems] == [("torn row", 2, 3)]
