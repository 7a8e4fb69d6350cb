"""DCGM: units of fields, blanks, entities, and the three forms of file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gpudiag.errors import InputError
from gpudiag.readers._fields.dcgm_fields import without_blanks
from gpudiag.readers.base import Telemetry
from gpudiag.readers.telemetry import read_telemetry


def read(text: str, folder: Path, **options: object) -> Telemetry:
    path = folder / "dcgm.log"
    path.write_text(text, encoding="utf-8")
    return read_telemetry(path, timezone="UTC", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("tag", "cell", "column", "value"),
    [
        ("SMACT", "0.341", "sm_active_pct", 34.1),
        ("DRAMA", "1.000", "dram_active_pct", 100),
        ("TENSO", "0.028", "tensor_active_pct", 2.8),
        ("GPUTL", "97", "util_pct", 97),
        ("MCUTL", "3", "mem_util_pct", 3),
        ("POWER", "71.200", "power_w", 71.2),
        ("TOTEC", "5000000000", "energy_j", 5_000_000),
        ("PCIRX", "2097152", "pcie_rx_mib_s", 2),
        ("FBUSD", "4096", "mem_used_mib", 4096),
        ("DVCCTR", "4", "throttle_reasons", 4),
    ],
)
def test_units_of_fields(tag: str, cell: str, column: str, value: float, tmp_path: Path) -> None:
    telemetry = read(f"#Entity   {tag}   XXXXX\nID\nGPU 0     {cell}   7\n", tmp_path)
    assert telemetry.gpu[column].tolist() == pytest.approx([value])


def test_power_prefers_the_average_and_falls_back_to_the_instant(tmp_path: Path) -> None:
    text = "#Entity   POWINST   POWER\nID          W          W\nGPU 0     90.0   71.0\nGPU 1   91.0   N/A\n"
    assert read(text, tmp_path).gpu["power_w"].tolist() == [71, 91]


def test_size_of_memory_from_its_parts(tmp_path: Path) -> None:
    text = "#Entity   FBUSD   FBFRE   FBRSV\nID\nGPU 0     4096   20000   500\n"
    assert read(text, tmp_path).gpu["mem_total_mib"].tolist() == [24596]


@pytest.mark.parametrize(
    "blank",
    [2**63 - 16, 2**63 - 15, 2**63 - 14, 2**63 - 13, 2147483632, 2147483634, 140737488355328.0, 140737488355330.0],
)
def test_blanks_are_unknown(blank: float) -> None:
    assert np.isnan(without_blanks(np.array([float(blank)]))).all()


@pytest.mark.parametrize("number", [0.0, 100.0, 5e9, 2147483631.0, 2147483648.0, 140737488355327.0, 1e15])
def test_other_numbers_are_kept(number: float) -> None:
    assert without_blanks(np.array([number])).tolist() == [number]


def test_instances_and_other_entities_are_counted_not_read(tmp_path: Path) -> None:
    text = "#Entity   SMACT  SMOCC\nID\nGPU 0     0.5  0.1\nGPU-I 3   0.9 0.9\nSwitch 0  0.1 0.1\n"
    telemetry = read(text, tmp_path)
    assert telemetry.gpu["sm_active_pct"].tolist() == [50]
    assert [(problem.kind, problem.count) for problem in telemetry.problems] == [
        ("row of a MIG instance, link or CPU", 2)
    ]


def test_period_of_text_without_time(tmp_path: Path) -> None:
    text = "#Entity   SMACT  SMOCC\nID\n" + "GPU 0     0.5  0.1\nGPU 1     0.5  0.1\n" * 3
    telemetry = read(text, tmp_path, period_s=0.1)
    assert telemetry.gpu["time"].diff().dt.total_seconds().tolist()[1:3] == pytest.approx([0.1, 0.1])


def test_fields_of_one_tick_make_one_row(tmp_path: Path) -> None:
    text = (
        "GPUId,TimeStampUs,Field,Values\n"
        "0,1718783836956328,power_usage_instant,71.20\n0,1718783837256328,power_usage_instant,70.49\n"
        "0,1718783837556328,power_usage_instant,70.49\n0,1718783837230000,current_clock_throttle_reasons,4\n"
        "0,1718783836935856,current_clock_throttle_reasons,1\n0,1718783836935856,throttle_reason_idle,1\n"
    )
    telemetry = read(text, tmp_path)
    assert telemetry.gpu["power_w"].tolist() == [71.2, 70.49, 70.49]
    assert telemetry.gpu["throttle_reasons"].tolist()[:2] == [1, 4] and telemetry.clock == "utc"
    assert telemetry.gpu["time"].tolist()[0] == pd.Timestamp("2024-06-19 07:57:16.956328", tz="UTC")


def test_columns_named_by_field_number_and_relative_seconds(tmp_path: Path) -> None:
    telemetry = read(
        "gpu_id,time_s,1002,1005,150\n0,0.18,0.341,0.028,41\n0,1.18,0.978,9223372036854775794,42\n", tmp_path
    )
    assert telemetry.gpu["sm_active_pct"].tolist() == pytest.approx([34.1, 97.8])
    assert np.isnan(telemetry.gpu["dram_active_pct"].tolist()[1]) and telemetry.gpu["temp_c"].tolist() == [41, 42]
    assert telemetry.gpu["time"].diff().dt.total_seconds().tolist()[1] == 1.0 and "relative" in telemetry.notes[0]


def test_a_new_xid_is_an_event(tmp_path: Path) -> None:
    text = "#Entity   XIDER   GPUTL\nID\n" + "".join(f"GPU 0     {xid}   5\n" for xid in (0, 79, 79, 31))
    events = read(text, tmp_path).events
    assert events["kind"].tolist() == ["xid", "xid"] and events["gpu"].tolist() == ["0", "0"]
    assert events["detail"].tolist() == ["last XID error is 79", "last XID error is 31"]


def test_unknown_fields_only_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no usable sample"):
        read("#Entity   NVLTX   NVLRX\nID\nGPU 0   5   6\n", tmp_path)
