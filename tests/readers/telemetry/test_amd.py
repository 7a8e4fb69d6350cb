"""rocm-smi and amd-smi: names by release, secondary dies, units; npu-smi is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gpudiag.errors import InputError
from gpudiag.readers.base import Telemetry
from gpudiag.readers.telemetry import read_telemetry


def read(text: str, folder: Path) -> Telemetry:
    path = folder / "amd.txt"
    path.write_text(text, encoding="utf-8")
    return read_telemetry(path, timezone="UTC")


@pytest.mark.parametrize(
    ("key", "text", "column", "value"),
    [
        ("GPU use (%)", "97", "util_pct", 97),
        ("GPU memory use (%)", "5", "mem_util_pct", 5),
        ("GPU Memory Read/Write Activity (%)", "6", "mem_util_pct", 6),
        ("Average Graphics Package Power (W)", "39.0", "power_w", 39),
        ("Current Socket Graphics Package Power (W)", "40.5", "power_w", 40.5),
        ("VRAM Total Used Memory (B)", "6782976", "mem_used_mib", 6.46875),
        ("sclk clock speed:", "(1402Mhz)", "sm_clock_mhz", 1402),
        ("Temperature (Sensor junction) (C)", "34.0", "temp_c", 34),
        ("Accumulated Energy (uJ)", "2500000.0", "energy_j", 2.5),
    ],
)
def test_names_of_all_releases(key: str, text: str, column: str, value: float, tmp_path: Path) -> None:
    assert read(json.dumps({"card3": {key: text}}), tmp_path).gpu[column].tolist() == [value]


def test_a_share_of_memory_is_not_its_controllers_business(tmp_path: Path) -> None:
    table = read(json.dumps({"card0": {"GPU Memory Allocated (VRAM%)": "90", "GPU use (%)": "1"}}), tmp_path)
    assert set(table.gpu) == {"time", "gpu", "util_pct"} and "no memory in bytes" in table.notes[1]


def test_a_secondary_die_has_no_power_of_its_own(tmp_path: Path) -> None:
    values = "".join(
        f"GPU[{gpu}]\t\t: Average Graphics Package Power (W): {text}\n"
        for gpu, text in enumerate(["237.0", "N/A (Secondary die)"])
    )
    table = read("=== ROCm System Management Interface ===\n" + values, tmp_path).gpu
    assert table["power_w"].tolist()[0] == 237 and np.isnan(table["power_w"].tolist()[1])


def test_the_concise_table_of_rocm_6(tmp_path: Path) -> None:
    text = """\
Device  Node  IDs              Temp    Power  Partitions          SCLK    MCLK     Fan  Perf  PwrCap  VRAM%  GPU%
              (DID,     GUID)  (Edge)  (Avg)  (Mem, Compute, ID)
0       1     0x744c,   47413  31.0\N{DEGREE SIGN}C  19.0W  N/A, N/A, 0  38Mhz  96Mhz  0%  auto  303.0W  12%  97%
"""
    row = read(text, tmp_path).gpu.iloc[0]
    wanted = {"temp_c": 31, "power_w": 19, "sm_clock_mhz": 38, "mem_clock_mhz": 96, "fan_pct": 0, "power_limit_w": 303}
    assert {name: row[name] for name in wanted} == wanted and row["util_pct"] == 97


def test_a_date_line_is_the_time_of_a_document(tmp_path: Path) -> None:
    text = "".join(f"2025-03-01 10:00:0{n}\n" + json.dumps({"card0": {"GPU use (%)": "1"}}) + "\n" for n in (1, 4))
    assert read(text, tmp_path).gpu["time"].dt.second.tolist() == [1, 4]


def test_mem_is_a_temperature_in_metric_and_a_utilization_in_monitor(tmp_path: Path) -> None:
    metric = read(
        "timestamp,gpu,gfx_activity,umc_activity,socket_power,edge,hotspot,mem\n1786553852,6,9,3,239,N/A,42,24\n",
        tmp_path,
    )
    assert metric.gpu[["mem_temp_c", "mem_util_pct", "temp_c", "util_pct"]].to_numpy().tolist() == [[24, 3, 42, 9]]
    assert metric.gpu["time"].tolist() == [pd.Timestamp(1786553852, unit="s", tz="UTC")] and metric.clock == "utc"
    monitor = read(
        "gpu,power_usage,hotspot_temperature,memory_temperature,gfx,gfx_clock,mem,mem_clock\n0,8,28,32,9,900,3,96\n",
        tmp_path,
    )
    assert monitor.gpu[["mem_temp_c", "mem_util_pct", "temp_c", "util_pct"]].to_numpy().tolist() == [[32, 3, 28, 9]]


def test_monitor_text_with_units_in_cells(tmp_path: Path) -> None:
    text = (
        "GPU  POWER  GPU_TEMP  MEM_TEMP  GFX_UTIL  GFX_CLOCK  MEM_UTIL  VRAM_USED  VRAM_TOTAL  PCIE_BW\n"
        "  0    8 W     28 \N{DEGREE SIGN}C       N/A       5 %    900 MHz       N/A   16 MB   30679 MB   N/A Mb/s\n"
    )
    row = read(text, tmp_path).gpu.iloc[0]
    wanted = {
        "power_w": 8,
        "temp_c": 28,
        "util_pct": 5,
        "sm_clock_mhz": 900,
        "mem_used_mib": 16,
        "mem_total_mib": 30679,
    }
    assert {name: row[name] for name in wanted} == wanted and "mem_temp_c" not in row


def test_npu_smi_is_refused_by_name(tmp_path: Path) -> None:
    text = (
        "Mon Feb  9 00:38:34 CST 2026\n+---+\n| npu-smi 24.1.rc3                 Version: 24.1.rc3          |\n+---+\n"
    )
    with pytest.raises(InputError, match=r"npu-smi \(Ascend NPUs\), which is not supported"):
        read(text, tmp_path)
