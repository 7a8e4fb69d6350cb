"""Counters of uncorrectable ECC errors, by whatever tool they came."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import gpudiag as gd

QUERY = "timestamp, index, utilization.gpu [%]"
VOLATILE = "ecc.errors.uncorrected.volatile"
LABELS = 'gpu="0",UUID="GPU-1",Hostname="n1"'


def csv(names: str, *cells: str) -> str:
    rows = [f"2026/03/01 10:00:0{second}.000, 0, 90 %, {cell}" for second, cell in enumerate(cells)]
    return "\n".join([f"{QUERY}, {names}", *rows]) + "\n"


def document(*counts: int) -> str:
    """nvidia-smi -q of a GPU whose aggregate counter is another one."""
    return "".join(
        f"\n==============NVSMI LOG==============\n\nTimestamp   : Sun Mar  1 10:00:0{second} 2026\n"
        f"Attached GPUs   : 1\nGPU 00000000:10:00.0\n    Utilization\n        Gpu      : 90 %\n    ECC Errors\n"
        f"        Volatile\n            SRAM Correctable   : 9\n            SRAM Uncorrectable Parity   : 1\n"
        f"            SRAM Uncorrectable SEC-DED   : 0\n            DRAM Uncorrectable   : {count - 1}\n"
        f"        Aggregate\n            DRAM Uncorrectable   : 77\n"
        for second, count in enumerate(counts)
    )


def xml(*counts: int) -> str:
    """Documents of an old driver, which has a total."""
    return "".join(
        f"<nvidia_smi_log><timestamp>Sun Mar  1 10:00:0{second} 2026</timestamp><attached_gpus>1</attached_gpus>"
        '<gpu id="00000000:10:00.0"><utilization><gpu_util>90 %</gpu_util></utilization><ecc_errors><volatile>'
        f"<double_bit><device_memory>{count}</device_memory><total>{count}</total></double_bit></volatile></ecc_errors>"
        "</gpu></nvidia_smi_log>\n"
        for second, count in enumerate(counts)
    )


def table(*counts: int) -> str:
    return "".join(
        f"Sun Mar  1 10:00:0{second} 2026\n"
        "+-----------------------------------------------------------------------------+\n"
        "| NVIDIA-SMI 515.65.01    Driver Version: 515.65.01    CUDA Version: 11.7     |\n"
        "|-------------------------------+----------------------+----------------------+\n"
        "| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |\n"
        "|===============================+======================+======================|\n"
        f"|   0  NVIDIA A100-SXM...  On  | 00000000:01:00.0 Off |            {count:8d} |\n"
        "| N/A   50C    P0   250W / 400W |    744MiB / 81920MiB |     90%      Default |\n"
        "+-------------------------------+----------------------+----------------------+\n"
        for second, count in enumerate(counts)
    )


def dmon(*counts: int) -> str:
    rows = [f" 20260301 10:00:0{second}  0  90  0  {count}" for second, count in enumerate(counts)]
    return "#Date Time gpu sm sbecc dbecc\n#YYYYMMDD HH:MM:SS Idx % errs errs\n" + "\n".join(rows) + "\n"


def dcgmi(*counts: int) -> str:
    return "#Entity GPUTL EDVTL\nID\n" + "".join(f"GPU 0   90   {count}\n" for count in counts)


def prometheus(*counts: int) -> str:
    start, labels = 1772359200, {"gpu": "0", "Hostname": "n1"}
    series = {"DCGM_FI_DEV_GPU_UTIL": [90] * len(counts), "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": counts}
    return json.dumps(
        [
            {"metric": {"__name__": name, **labels}, "values": [[start + at, str(x)] for at, x in enumerate(values)]}
            for name, values in series.items()
        ]
    )


def scrapes(name: str, *counts: int) -> str:
    return "".join(
        f"{name}{{{LABELS}}} {count} {1772359200000 + 1000 * at}\nDCGM_FI_DEV_GPU_UTIL{{{LABELS}}} 90\n"
        for at, count in enumerate(counts)
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("gpu.csv", csv(f"{VOLATILE}.total", "1", "1", "4")),
        ("gpu.csv", csv(f"{VOLATILE}.dram, {VOLATILE}.sram", "0, 1", "1, [N/A]", "3, 1")),
        ("gpu.csv", csv(f"{VOLATILE}.device_memory, {VOLATILE}.dram, {VOLATILE}.cbu", "1, 1, 0", "1, 1, 0", "3, 3, 1")),
        ("gpu.csv", csv(f"{VOLATILE}.sram.parity, {VOLATILE}.total", "9, 1", "9, 1", "9, 4")),
        ("gpu.csv", "time;gpu;gpu util;ecc_errors_uncorrected_volatile_total\n" + "".join(
            f"2026-03-01 10:00:0{at};0;90;{count}\n" for at, count in enumerate((1, 1, 4))
        )),
        ("q.txt", document(1, 1, 4)),
        ("q.xml", xml(1, 1, 4)),
        ("smi.log", table(1, 1, 4)),
        ("dmon.log", dmon(1, 1, 4)),
        ("dcgmi.txt", dcgmi(1, 1, 4)),
        ("range.json", prometheus(1, 1, 4)),
        ("dcgm.prom", scrapes("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", 1, 1, 4)),
        ("smi.prom", scrapes("nvidia_smi_ecc_errors_uncorrected_volatile_total", 1, 1, 4)),
    ],
)  # fmt: skip
def test_every_tool_s_counter_is_read(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert gd.load_run(tmp_path).gpu["ecc_uncorrected"].tolist() == [1.0, 1.0, 4.0]


@pytest.mark.parametrize(
    "text",
    [
        csv(f"{VOLATILE}.total", "[N/A]", "[N/A]", "[N/A]"),
        csv(f"ecc.errors.corrected.volatile.total, {VOLATILE.replace('volatile', 'aggregate')}.total", "5, 5", "5, 6"),
    ],
)
def test_what_is_not_available_or_another_counter_is_unknown(tmp_path: Path, text: str) -> None:
    (tmp_path / "gpu.csv").write_text(text)
    assert "ecc_uncorrected" not in gd.load_run(tmp_path).gpu
