"""``tegrastats``: with its own month-first date, with somebody's before it, without any, and of an older release."""

from __future__ import annotations

from datetime import datetime, timedelta

from telemetry_sample import Sample

START = datetime(2026, 4, 3, 10, 0, 0)
ORIN = (
    "RAM {ram}/30588MB (lfb 4x4MB) SWAP 0/15294MB (cached 0MB) CPU [10%@729,30%@729,off,off] EMC_FREQ 1%@2133 "
    "GR3D_FREQ {util}%@[611,0] NVENC off NVDEC off CV0@-256C CPU@48.7C SOC2@45.5C GPU@44.2C tj@48.7C "
    "VDD_GPU_SOC 3205mW/3205mW VDD_CPU_CV 801mW/801mW VIN_SYS_5V0 3120mW/3120mW"
)
NANO = (
    "RAM {ram}/3964MB (lfb 2x4MB) CPU [10%@1479,30%@1479] EMC_FREQ 10%@1600 GR3D_FREQ {util}%@921 GPU@-256C "
    "POM_5V_IN 4250/4250 POM_5V_GPU 480/470 POM_5V_CPU 1520/1520"
)
TX2 = (
    "RAM {ram}/7851MB (lfb 1x1MB) CPU [10%@345,off,off,30%@345] GR3D {util}% BCPU@36C VDD_IN 2400/2400 VDD_GPU 152/141"
)


def log(ticks: int, line: str, date: str = "") -> str:
    out = ""
    for tick in range(ticks):
        now = START + timedelta(seconds=tick)
        before = date.replace("%s", str(int(now.timestamp() - START.timestamp()) + 1775210400))
        out += now.strftime(before) + line.format(ram=2000 + tick, util=40 + tick) + "\n"
    return out


SAMPLES = (
    Sample("tegrastats", "own-date", log(8, ORIN, "%m-%d-%Y %H:%M:%S "), 8, ("0",), first="2026-04-03T10:00:00Z gpu=0 util_pct=40 mem_util_pct=1 sm_clock_mhz=611 mem_clock_mhz=2133 temp_c=44.2", last="2026-04-03T10:00:07Z gpu=0 util_pct=47 mem_util_pct=1 sm_clock_mhz=611 mem_clock_mhz=2133 temp_c=44.2",),
    Sample("tegrastats", "epoch-before", log(5, NANO, "%s "), 5, ("0",), first="2026-04-03T10:00:00Z gpu=0 util_pct=40 mem_util_pct=10 sm_clock_mhz=921 mem_clock_mhz=1600 power_w=0.48", last="2026-04-03T10:00:04Z gpu=0 util_pct=44 mem_util_pct=10 sm_clock_mhz=921 mem_clock_mhz=1600 power_w=0.48",),
    Sample("tegrastats", "no-date", log(5, TX2), 5, ("0",), stamped=False, first="1970-01-01T00:00:00Z gpu=0 util_pct=40 power_w=0.152", last="1970-01-01T00:00:04Z gpu=0 util_pct=44 power_w=0.152",),
    Sample("tegrastats", "host", log(6, ORIN, "[%Y-%m-%d %H:%M:%S] "), 6, ("0",), table="host", first="2026-04-03T10:00:00Z cpu_pct=20 cpu_max_core_pct=30 ram_used_mib=2000 ram_total_mib=30588", last="2026-04-03T10:00:05Z cpu_pct=20 cpu_max_core_pct=30 ram_used_mib=2005 ram_total_mib=30588",),
)  # fmt: skip
