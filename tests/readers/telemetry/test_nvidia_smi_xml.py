"""XML: values, renamed elements, GPUs that leave the list, entities and damage."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from gpudiag.errors import InputError
from gpudiag.readers.base import Telemetry
from gpudiag.readers.telemetry import read_telemetry

PROLOG = '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n'


def gpu(bus: str, inner: str = "", util: str = "37 %") -> str:
    return f'<gpu id="{bus}">\n<utilization><gpu_util>{util}</gpu_util></utilization>{inner}</gpu>\n'


def document(*gpus: str, timestamp: str = "Fri Jan 27 11:32:31 2023", attached: int | None = None) -> str:
    count = len(gpus) if attached is None else attached
    head = f"<timestamp>{timestamp}</timestamp><driver_version>510.47</driver_version>"
    head += f"<attached_gpus>{count}</attached_gpus>"
    return f"{PROLOG}<nvidia_smi_log>\n{head}\n{''.join(gpus)}</nvidia_smi_log>\n"


def read(text: str, folder: Path) -> Telemetry:
    path = folder / "smi.xml"
    path.write_text(text, encoding="utf-8")
    return read_telemetry(path, timezone="UTC")


@pytest.mark.parametrize(
    ("inner", "column", "value"),
    [
        ("<fb_memory_usage><used>38 MiB</used></fb_memory_usage>", "mem_used_mib", 38),
        ("<power_readings><power_draw>66.92 W</power_draw></power_readings>", "power_w", 66.92),
        ("<gpu_power_readings><average_power_draw>80.5 W</average_power_draw></gpu_power_readings>", "power_w", 80.5),
        (
            "<gpu_power_readings><average_power_draw>N/A</average_power_draw>"
            "<instant_power_draw>38.89 W</instant_power_draw></gpu_power_readings>",
            "power_w",
            38.89,
        ),
        (
            "<gpu_power_readings><gpu_ceiling_power_limit><current_power_limit>250.00 W</current_power_limit>"
            "</gpu_ceiling_power_limit></gpu_power_readings>",
            "power_limit_w",
            250,
        ),
        (
            "<gpu_power_readings><default_power_limit>700.00 W</default_power_limit></gpu_power_readings>",
            "power_default_w",
            700,
        ),
        ("<max_clocks><sm_clock>1980 MHz</sm_clock></max_clocks>", "sm_clock_max_mhz", 1980),
        ("<pci><rx_util>2048 KB/s</rx_util></pci>", "pcie_rx_mib_s", 2),
        ("<performance_state>P8</performance_state>", "pstate", 8),
        ("<fan_speed>33 %</fan_speed>", "fan_pct", 33),
    ],
)
def test_values(inner: str, column: str, value: float, tmp_path: Path) -> None:
    table = read(document(gpu("00000000:00:04.0", inner)), tmp_path).gpu
    assert table[column].tolist() == [value] and table["util_pct"].tolist() == [37]


@pytest.mark.parametrize("word", ["throttle", "event"])
def test_reason_bits_under_both_names(word: str, tmp_path: Path) -> None:
    states = {"gpu_idle": "Not Active", "sw_power_cap": "Active", "hw_thermal_slowdown": "Active\n   "}
    bits = "".join(f"<clocks_{word}_reason_{n}>{s}</clocks_{word}_reason_{n}>" for n, s in states.items())
    table = read(document(gpu("0:1:0.0", f"<clocks_{word}_reasons>{bits}</clocks_{word}_reasons>")), tmp_path).gpu
    assert table["throttle_reasons"].tolist() == [0x44]


def test_mig_has_no_utilization_and_its_instances_are_no_board(tmp_path: Path) -> None:
    instance = (
        "<mig_devices><mig_device><fb_memory_usage><used>19 MiB</used></fb_memory_usage></mig_device></mig_devices>"
    )
    board = instance + "<fb_memory_usage><used>38 MiB</used></fb_memory_usage>"
    table = read(document(gpu("0:1:0.0", board, util="N/A")), tmp_path).gpu
    assert table["mem_used_mib"].tolist() == [38] and "util_pct" not in table


def test_a_gpu_that_leaves_the_list_does_not_shift_the_others(tmp_path: Path) -> None:
    both = document(gpu("0:1:0.0", util="1 %"), gpu("0:2:0.0", util="2 %"), timestamp="Fri Jan 27 11:32:31 2023")
    one = document(gpu("0:2:0.0", util="3 %"), timestamp="Fri Jan 27 11:32:32 2023")
    table = read(both + one, tmp_path).gpu
    assert table[["gpu", "util_pct"]].to_numpy().tolist() == [["0", 1], ["1", 2], ["1", 3]]


def test_one_of_several_gpus_is_named_by_its_minor_number(tmp_path: Path) -> None:
    text = document(gpu("0:7:0.0", "<minor_number>3</minor_number>"), attached=4)
    assert read(text, tmp_path).gpu["gpu"].tolist() == ["3"]


def test_processes(tmp_path: Path) -> None:
    info = "<process_info><pid>4711</pid><process_name>a &lt;b&gt; c</process_name><used_memory>3900 MiB</used_memory>"
    unknown = "<process_info><pid>12</pid><used_memory>N/A</used_memory></process_info>"
    table = read(document(gpu("0:1:0.0", f"<processes>{info}</process_info>{unknown}</processes>")), tmp_path).processes
    assert table["pid"].tolist() == [12, 4711] and table["name"].tolist()[1] == "a <b> c"
    assert table["mem_used_mib"].isna().tolist() == [True, False]


def test_a_document_type_with_entities_is_refused(tmp_path: Path) -> None:
    bomb = '<!DOCTYPE nvidia_smi_log [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>\n'
    with pytest.raises(InputError, match="declares XML entities"):
        read(bomb + document(gpu("0:1:0.0")).removeprefix(PROLOG), tmp_path)


def test_an_entity_that_nobody_declared_costs_its_document(tmp_path: Path) -> None:
    good = document(gpu("0:1:0.0"), timestamp="Fri Jan 27 11:32:33 2023")
    telemetry = read(document(gpu("0:1:0.0", "<x>&b;</x>")) + good, tmp_path)
    assert telemetry.gpu["time"].tolist() == [pd.Timestamp("2023-01-27 11:32:33", tz="UTC")]
    assert [(problem.kind, problem.line) for problem in telemetry.problems] == [("damaged document", 3)]


def test_a_cut_document_in_the_middle_costs_only_itself(tmp_path: Path) -> None:
    whole = [document(gpu("0:1:0.0"), timestamp=f"Fri Jan 27 11:32:3{n} 2023") for n in range(3)]
    telemetry = read(whole[0] + whole[1][: len(whole[1]) * 2 // 3] + "\n" + whole[2], tmp_path)
    assert telemetry.gpu["time"].dt.second.tolist() == [30, 32]
    assert [problem.kind for problem in telemetry.problems] == ["document without an end"]
