"""Prometheus, as text and as JSON: names old and new, units, labels, time of a scrape."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from gpudiag.errors import InputError
from gpudiag.readers.base import Telemetry
from gpudiag.readers.telemetry import read_telemetry

GPU = '{gpu="0",UUID="GPU-1",modelName="A100",Hostname="n1",DCGM_FI_DRIVER_VERSION="535.1"}'
SMI = '{uuid="0000-01"}'
INDEX = f"nvidia_smi_index{SMI} 3\n"


def read(text: str, folder: Path) -> Telemetry:
    path = folder / "metrics"
    path.write_text(text, encoding="utf-8")
    return read_telemetry(path, timezone="UTC")


@pytest.mark.parametrize(
    ("series", "column", "value"),
    [
        (f"DCGM_FI_DEV_GPU_UTIL{GPU} 97", "util_pct", 97),
        (f"DCGM_FI_PROF_SM_ACTIVE{GPU} 0.341", "sm_active_pct", 34.1),
        (f"DCGM_FI_PROF_SM_UTIL_RATIO{GPU} 0.341", "sm_active_pct", 34.1),
        (f"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{GPU} 5e+09", "energy_j", 5_000_000),
        (f"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS{GPU} 4", "throttle_reasons", 4),
        (f"DCGM_FI_DEV_CLOCKS_EVENT_REASONS{GPU} 4", "throttle_reasons", 4),
        (f"DCGM_FI_DEV_BOARD_POWER_WATTS{GPU} 71.5", "power_w", 71.5),
        ('DCGM_FI_DEV_SM_CLOCK{gpu="0",uuid="GPU-1"} 1410', "sm_clock_mhz", 1410),
        (f"{INDEX}nvidia_smi_utilization_gpu_ratio{SMI} 0.07", "util_pct", 7),
        (f"{INDEX}nvidia_smi_memory_used_bytes{SMI} 3.3934016512e+10", "mem_used_mib", 32362),
        (f"{INDEX}nvidia_smi_clocks_current_sm_clock_hz{SMI} 1.98e+09", "sm_clock_mhz", 1980),
    ],
)
def test_values(series: str, column: str, value: float, tmp_path: Path) -> None:
    telemetry = read(series + "\n", tmp_path)
    assert telemetry.gpu[column].tolist() == pytest.approx([value])
    assert telemetry.gpu["gpu"].tolist() == ["3" if "nvidia_smi" in series else "0"]


@pytest.mark.parametrize("value", ["NaN", "9223372036854775794", "2147483632", "+Inf"])
def test_blank_values_are_unknown(value: str, tmp_path: Path) -> None:
    telemetry = read(f"DCGM_FI_DEV_SM_CLOCK{GPU} 139\nDCGM_FI_DEV_MEMORY_TEMP{GPU} {value}\n", tmp_path)
    assert "mem_temp_c" not in telemetry.gpu and telemetry.gpu["sm_clock_mhz"].tolist() == [139]


def test_what_is_known_of_the_gpu(tmp_path: Path) -> None:
    row = read(
        f"DCGM_FI_DEV_GPU_UTIL{GPU} 97\nDCGM_FI_DEV_FB_USED{GPU} 96\nDCGM_FI_DEV_FB_FREE{GPU} 904\n", tmp_path
    ).gpus
    assert row[["uuid", "name", "driver", "mem_total_mib"]].to_numpy().tolist() == [["GPU-1", "A100", "535.1", 1000]]


def test_a_series_that_comes_again_is_a_new_scrape(tmp_path: Path) -> None:
    telemetry = read("".join(f"# HELP x\nDCGM_FI_DEV_GPU_UTIL{GPU} {n}\n" for n in (1, 2, 3)), tmp_path)
    assert telemetry.gpu["util_pct"].tolist() == [1, 2, 3] and "carry no time" in telemetry.notes[0]


def test_a_date_line_or_a_timestamp_is_the_time_of_a_scrape(tmp_path: Path) -> None:
    series = f"DCGM_FI_DEV_GPU_UTIL{GPU} 1"
    dated = read(f"Sat Mar  1 10:00:00 2025\n{series}\nSat Mar  1 10:00:15 2025\n{series}\n", tmp_path)
    assert dated.gpu["time"].dt.second.tolist() == [0, 15]
    stamped = read(f"{series} 1740823200000\n{series} 1740823215500\n", tmp_path)
    assert stamped.gpu["time"].tolist()[1] == pd.Timestamp(1740823215.5, unit="s", tz="UTC") and stamped.clock == "utc"


def test_readings_of_mig_instances_are_not_the_board(tmp_path: Path) -> None:
    mig = '{gpu="0",UUID="GPU-1",GPU_I_PROFILE="1g.5gb",GPU_I_ID="7"}'
    telemetry = read(f"DCGM_FI_DEV_FB_USED{mig} 20\nDCGM_FI_DEV_POWER_USAGE{mig} 66\n", tmp_path)
    assert telemetry.gpu["power_w"].tolist() == [66] and "mem_used_mib" not in telemetry.gpu


def test_xid_and_processes(tmp_path: Path) -> None:
    app = 'nvidia_smi_compute_app_used_memory_bytes{pid="7",process_name="a \\"b\\"",uuid="0000-01"} 1048576\n'
    telemetry = read(INDEX + f"nvidia_smi_pstate{SMI} 0\n" + app, tmp_path)
    assert telemetry.processes[["gpu", "pid", "name", "mem_used_mib"]].to_numpy().tolist() == [["3", 7, 'a "b"', 1]]
    scrapes = "".join(f"DCGM_FI_DEV_XID_ERRORS{GPU} {xid}\nDCGM_FI_DEV_GPU_UTIL{GPU} 5\n" for xid in (0, 79, 79))
    events = read(scrapes, tmp_path).events
    assert events["detail"].tolist() == ["last XID error is 79"] and events["gpu"].tolist() == ["0"]


def series(labels: dict[str, str], *points: tuple[float, str]) -> dict[str, Any]:
    return {"metric": labels, "values": [list(point) for point in points]}


def answer(*rows: dict[str, Any]) -> str:
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": list(rows)}})


UTIL = {"__name__": "DCGM_FI_DEV_GPU_UTIL", "gpu": "0", "UUID": "GPU-1", "Hostname": "n1", "modelName": "A100"}


def test_json_values_are_text_and_timestamps_seconds(tmp_path: Path) -> None:
    used = UTIL | {"__name__": "DCGM_FI_DEV_FB_USED"}
    text = answer(series(UTIL, (1740823200.25, "97"), (1740823215.25, "NaN")), series(used, (1740823200.25, "4096")))
    telemetry = read(text, tmp_path)
    assert telemetry.gpu["time"].tolist()[0] == pd.Timestamp(1740823200.25, unit="s", tz="UTC")
    assert telemetry.gpu["util_pct"].tolist()[0] == 97 and telemetry.gpu["util_pct"].isna().tolist() == [False, True]
    assert telemetry.gpu["mem_used_mib"].tolist()[0] == 4096 and telemetry.gpus["name"].tolist() == ["A100"]


def test_json_of_an_instant_query_and_of_another_exporter(tmp_path: Path) -> None:
    one = {"metric": {"__name__": "nvidia_smi_utilization_gpu_ratio", "uuid": "a"}, "value": [1740823200, "0.5"]}
    index = {"metric": {"__name__": "nvidia_smi_index", "uuid": "a"}, "value": [1740823200, "2"]}
    gpu = read(answer(one, index), tmp_path).gpu
    assert gpu[["gpu", "util_pct"]].to_numpy().tolist() == [["2", 50]]


def test_json_series_that_do_not_say_their_metric_are_counted(tmp_path: Path) -> None:
    nameless = {key: value for key, value in UTIL.items() if key != "__name__"}
    point = (1740823200, "1")
    telemetry = read(answer(series(UTIL, point, (-5, "1"), (1740823230, "x")), series(nameless, point)), tmp_path)
    assert [(problem.kind, problem.count) for problem in telemetry.problems] == [
        ("point that is no number", 2), ("series without a metric name", 1),
    ]  # fmt: skip
    with pytest.raises(InputError, match="holds no usable sample"):
        read(answer(series(nameless, point), series(UTIL)), tmp_path)
