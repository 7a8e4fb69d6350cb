"""``rocm-smi``: JSON, CSV, concise table and lines of one value."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

from telemetry_sample import Sample

START = datetime(2025, 3, 1, 10, 0, 0)
CSV = (
    "device,Temperature (Sensor edge) (C),Average Graphics Package Power (W),GPU use (%),"
    "VRAM Total Memory (B),VRAM Total Used Memory (B)  "
)
TABLE = "GPU  Temp   AvgPwr  SCLK    MCLK     Fan  Perf  PwrCap  VRAM%  GPU%"
RULE = "=" * 80


def card(tick: int, gpu: int, *, new: bool) -> dict[str, str]:
    power = "Current Socket Graphics Package Power (W)" if new else "Average Graphics Package Power (W)"
    memory = "GPU Memory Read/Write Activity (%)" if new else "GPU memory use (%)"
    return {
        "Unique ID": f"0x2f04861{gpu}", "Temperature (Sensor edge) (C)": "31.0", "sclk clock speed:": "(300Mhz)",
        power: "39.0", "GPU use (%)": str((7 * tick + 13 * gpu) % 100), memory: "5", "PCI Bus": f"0000:1{gpu}:00.0",
        "VRAM Total Memory (B)": "34342961152", "VRAM Total Used Memory (B)": "6782976", "Card series": "MI100",
    }  # fmt: skip


def documents(ticks: int, gpus: int, *, new: bool = False, dates: bool = False) -> str:
    out = []
    for tick in range(ticks):
        if dates:
            out.append((START + timedelta(seconds=5 * tick)).strftime("%a %b %d %H:%M:%S %Y"))
        item = {f"card{gpu}": card(tick, gpu, new=new) for gpu in range(gpus)} | {"system": {"Driver version": "6.3.6"}}
        out.append(json.dumps(item, indent=None if dates else 4))
    return "\n".join(out) + "\n"


def csv(ticks: int, gpus: int) -> str:
    rows = (f"card{gpu},{31 + tick}.0,19.0,{tick},25753026560,27947008" for tick in range(ticks) for gpu in range(gpus))
    return "\n".join([CSV, *rows]) + "\n"


def table(ticks: int, gpus: int, prefix: str = "") -> str:
    out = []
    for tick in range(ticks):
        out += ["ROCm System Management Interface".center(80, "="), "Concise Info".center(80, "="), TABLE]
        for gpu in range(gpus):
            power, cap = ("N/A", "0.0W") if gpu % 2 else ("91.0W", "560.0W")
            out.append(f"{gpu}    47.0c  {power}   800Mhz  1600Mhz  0%   auto  {cap}    0%   {tick}%")
        out += [RULE, "End of ROCm SMI Log".center(80, "=")]
    return "".join(f"{prefix}{line}\n" for line in out)


def lines(ticks: int, gpus: int) -> str:
    names = (("Average Graphics Package Power (W)", "237.0"), ("GPU use (%)", "97"))
    rows = (f"GPU[{gpu}]\t\t: {name}: {value}" for _ in range(ticks) for name, value in names for gpu in range(gpus))
    return "\n".join(rows) + "\n"


SAMPLES = (
    Sample(
        "rocm-smi",
        "json-one-document",
        documents(1, 4),
        4,
        ("0", "1", "2", "3"),
        stamped=False,
        by_line=False,
        first="1970-01-01T00:00:00Z gpu=0 util_pct=0 mem_util_pct=5 mem_used_mib=6.46875 mem_total_mib=32752 power_w=39 temp_c=31 sm_clock_mhz=300",
        last="1970-01-01T00:00:00Z gpu=3 util_pct=39 mem_util_pct=5 mem_used_mib=6.46875 mem_total_mib=32752 power_w=39 temp_c=31 sm_clock_mhz=300",
    ),
    Sample(
        "rocm-smi",
        "json-loop-new-names",
        documents(5, 2, new=True),
        10,
        ("0", "1"),
        stamped=False,
        by_line=False,
        first="1970-01-01T00:00:00Z gpu=0 util_pct=0 mem_util_pct=5 mem_used_mib=6.46875 mem_total_mib=32752 power_w=39 temp_c=31 sm_clock_mhz=300",
        last="1970-01-01T00:00:04Z gpu=1 util_pct=41 mem_util_pct=5 mem_used_mib=6.46875 mem_total_mib=32752 power_w=39 temp_c=31 sm_clock_mhz=300",
    ),
    Sample(
        "rocm-smi",
        "json-with-dates",
        documents(6, 2, dates=True),
        12,
        ("0", "1"),
        lost_by_cut=2,
        first="2025-03-01T10:00:00Z gpu=0 util_pct=0 mem_util_pct=5 mem_used_mib=6.46875 mem_total_mib=32752 power_w=39 temp_c=31 sm_clock_mhz=300",
        last="2025-03-01T10:00:25Z gpu=1 util_pct=48 mem_util_pct=5 mem_used_mib=6.46875 mem_total_mib=32752 power_w=39 temp_c=31 sm_clock_mhz=300",
    ),
    Sample(
        "rocm-smi",
        "csv",
        csv(6, 3),
        18,
        ("0", "1", "2"),
        stamped=False,
        first="1970-01-01T00:00:00Z gpu=0 util_pct=0 mem_used_mib=26.65234375 mem_total_mib=24560 power_w=19 temp_c=31",
        last="1970-01-01T00:00:05Z gpu=2 util_pct=5 mem_used_mib=26.65234375 mem_total_mib=24560 power_w=19 temp_c=36",
    ),
    Sample(
        "rocm-smi",
        "table-srun-prefix",
        table(4, 4, "nid005113 out: "),
        16,
        ("0", "1", "2", "3"),
        stamped=False,
        first="1970-01-01T00:00:00Z gpu=0 util_pct=0 power_w=91 power_limit_w=560 temp_c=47 sm_clock_mhz=800 mem_clock_mhz=1600 fan_pct=0",
        last="1970-01-01T00:00:03Z gpu=3 util_pct=3 temp_c=47 sm_clock_mhz=800 mem_clock_mhz=1600 fan_pct=0",
    ),
    Sample(
        "rocm-smi",
        "lines-of-one-value",
        lines(6, 2),
        12,
        ("0", "1"),
        stamped=False,
        first="1970-01-01T00:00:00Z gpu=0 util_pct=97 power_w=237",
        last="1970-01-01T00:00:05Z gpu=1 util_pct=97 power_w=237",
    ),
)
