"""DCGM's activity of the engine (1001): the utilization of a whole GPU, the least that it was under MIG."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from gpudiag.errors import InputError
from gpudiag.readers.base import Telemetry
from gpudiag.readers.telemetry import read_telemetry

START = 1772359200
ACTIVE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
NAN = float("nan")


def read(text: str, folder: Path) -> Telemetry:
    path = folder / "dcgm.log"
    path.write_text(text, encoding="utf-8")
    return read_telemetry(path, timezone="UTC")


def series(name: str, values: list[float], **labels: str) -> dict[str, Any]:
    points = [[START + 15 * at, str(value)] for at, value in enumerate(values)]
    return {"metric": {"__name__": name, "gpu": "0", "Hostname": "n1", **labels}, "values": points}


def as_json(*all_series: dict[str, Any]) -> str:
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": list(all_series)}})


def as_text(*all_series: dict[str, Any]) -> str:
    """The same as scrapes, each reading with its timestamp."""
    lines = []
    for at in range(len(all_series[0]["values"])):
        for one in all_series:
            name, text = (
                one["metric"]["__name__"],
                ",".join(f'{key}="{value}"' for key, value in one["metric"].items() if key != "__name__"),
            )
            seconds, value = one["values"][at]
            lines.append(f"{name}{{{text}}} {value} {seconds * 1000}")
    return "\n".join(lines) + "\n"


BOTH = pytest.mark.parametrize("written", [as_json, as_text])


def columns(gpu: pd.DataFrame, name: str) -> list[float]:
    return gpu[name].fillna(-1).round(6).tolist() if name in gpu else []


@BOTH
@pytest.mark.parametrize("name", [ACTIVE, "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO"])
def test_of_a_whole_gpu_it_is_the_utilization(tmp_path: Path, written: Any, name: str) -> None:
    telemetry = read(written(series(name, [0.9, 0.0, 1.0])), tmp_path)
    assert columns(telemetry.gpu, "util_pct") == [90, 0, 100] and "engine_active_pct" not in telemetry.gpu
    assert any("1001" in note for note in telemetry.notes)


@BOTH
def test_where_utilization_is_recorded_it_stays_what_it_was(tmp_path: Path, written: Any) -> None:
    telemetry = read(written(series("DCGM_FI_DEV_GPU_UTIL", [97, 3]), series(ACTIVE, [0.9, 0.0])), tmp_path)
    assert columns(telemetry.gpu, "util_pct") == [97, 3] and columns(telemetry.gpu, "engine_active_pct") == [90, 0]


@BOTH
def test_of_instances_the_busiest_is_the_least_that_the_gpu_was(tmp_path: Path, written: Any) -> None:
    telemetry = read(
        written(
            series(ACTIVE, [0.2, 0.0], GPU_I_ID="1", GPU_I_PROFILE="3g.40gb", pod="a", namespace="x"),
            series(ACTIVE, [0.5, 0.0], GPU_I_ID="2", GPU_I_PROFILE="3g.40gb"),
            series("DCGM_FI_PROF_SM_ACTIVE", [0.99, 0.99], GPU_I_ID="2"),
            series("DCGM_FI_DEV_GPU_UTIL", [0, 0], GPU_I_ID="2"),
            series(ACTIVE, [0.7, 0.7], gpu="1"),
        ),
        tmp_path,
    )
    of_first, of_second = (telemetry.gpu[telemetry.gpu["gpu"] == gpu] for gpu in ("0", "1"))
    assert columns(of_first, "engine_active_pct") == [50, 0] and columns(of_first, "util_pct") == [-1, -1]
    assert columns(of_second, "util_pct") == [70, 70] and "sm_active_pct" not in telemetry.gpu
    assert any("MIG" in note for note in telemetry.notes)


def test_dcgmi_text_and_csv(tmp_path: Path) -> None:
    whole = read("#Entity GRACT SMACT\nID\nGPU 0 0.5 0.4\nGPU 1 0.0 0.0\n", tmp_path).gpu
    assert columns(whole, "util_pct") == [50, 0]
    blank = read("#Entity GPUTL GRACT\nID\nGPU 0 95 0.96\nGPU 1 N/A 0.5\n", tmp_path).gpu
    assert columns(blank, "util_pct") == [95, -1] and columns(blank, "engine_active_pct") == [96, 50]
    rows = "gpu_id,TimeStampUs,1001\n" + "".join(f"0,{(START + at) * 10**6},0.25\n" for at in range(3))
    assert columns(read(rows, tmp_path).gpu, "util_pct") == [25, 25, 25]


def test_rows_of_instances_alone_name_no_gpu(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"do not say of which GPU.*dcgmi dmon -e 203,155,252,1001"):
        read("#Entity GRACT\nID\nGPU-I 0 0.5\nGPU-I 1 0.0\n", tmp_path)
