"""``amd-smi metric --csv -w`` and ``amd-smi monitor -w``."""

from __future__ import annotations

from telemetry_sample import Sample

START_S = 1786553852
METRIC = (
    "timestamp,gpu,gfx_activity,umc_activity,mm_activity,vcn_activity,socket_power,gfx_0_clk,mem_0_clk,edge,hotspot,mem"
)
MONITOR_CSV = (
    "timestamp,gpu,power_usage,hotspot_temperature,memory_temperature,gfx,gfx_clock,mem,mem_clock,vram_used,vram_total"
)
MONITOR = (
    " TIMESTAMP  GPU  POWER  GPU_TEMP  MEM_TEMP  GFX_UTIL  GFX_CLOCK  MEM_UTIL  MEM_CLOCK"
    "  ENC_UTIL  VRAM_USED  VRAM_TOTAL     PCIE_BW"
)


def metric(ticks: int, gpus: int) -> str:
    out = [METRIC]
    for tick in range(ticks):
        for gpu in range(gpus):
            out.append(f"{START_S + tick},{gpu},{(7 * tick) % 100},3,N/A,\"['N/A', 'N/A']\",239,95,2000,N/A,42,24")
        out.append("")
    return "\n".join(out) + "\n"


def monitor(ticks: int, gpus: int, *, comma: bool = False) -> str:
    out = [MONITOR_CSV if comma else MONITOR]
    for tick in range(ticks):
        for gpu in range(gpus):
            now = START_S + tick
            if comma:
                out.append(f"{now},{gpu},8,28,32,{tick},900,3,96,16,30679")
            else:
                left = (
                    f"{now}    {gpu}    8 W     28 \N{DEGREE SIGN}C     32 \N{DEGREE SIGN}C       {tick} %    900 MHz"
                )
                out.append(f"{left}       3 %     96 MHz       N/A      16 MB    30679 MB    N/A Mb/s")
    return "\n".join(out) + "\n"


DEGREE = "\N{DEGREE SIGN}C"


def monitor_7(ticks: int, gpus: int, *, gap: str = " ") -> str:
    """The default columns of ROCm 7."""
    out = ["TIMESTAMP  GPU  XCP  POWER   GPU_T   MEM_T   GFX_CLK   GFX%   MEM%   ENC%   DEC%      VRAM_USAGE"]
    for tick in range(ticks):
        for gpu in range(gpus):
            left = f"{START_S + tick}    {gpu}    0  131 W   52 {DEGREE}   45 {DEGREE}   139 MHz   {tick} %    3 %"
            out.append(f"{left}    N/A  0.0 %   19.5/{gap}192.0 GB")
    return "\n".join(out) + "\n"


SAMPLES = (
    Sample(
        "amd-smi",
        "monitor-of-rocm-7",
        monitor_7(8, 2),
        16,
        ("0", "1"),
        first="2026-08-12T16:57:32Z gpu=0 util_pct=0 mem_util_pct=3 mem_used_mib=19968 mem_total_mib=196608 power_w=131 temp_c=52 mem_temp_c=45 sm_clock_mhz=139",
        last="2026-08-12T16:57:39Z gpu=1 util_pct=7 mem_util_pct=3 mem_used_mib=19968 mem_total_mib=196608 power_w=131 temp_c=52 mem_temp_c=45 sm_clock_mhz=139",
    ),
    Sample(
        "amd-smi",
        "monitor-of-rocm-7-unpadded",
        monitor_7(8, 1, gap=""),
        8,
        ("0",),
        first="2026-08-12T16:57:32Z gpu=0 util_pct=0 mem_util_pct=3 mem_used_mib=19968 mem_total_mib=196608 power_w=131 temp_c=52 mem_temp_c=45 sm_clock_mhz=139",
        last="2026-08-12T16:57:39Z gpu=0 util_pct=7 mem_util_pct=3 mem_used_mib=19968 mem_total_mib=196608 power_w=131 temp_c=52 mem_temp_c=45 sm_clock_mhz=139",
    ),
    Sample(
        "amd-smi",
        "metric-csv",
        metric(8, 2),
        16,
        ("0", "1"),
        first="2026-08-12T16:57:32Z gpu=0 util_pct=0 mem_util_pct=3 power_w=239 temp_c=42 mem_temp_c=24 sm_clock_mhz=95 mem_clock_mhz=2000",
        last="2026-08-12T16:57:39Z gpu=1 util_pct=49 mem_util_pct=3 power_w=239 temp_c=42 mem_temp_c=24 sm_clock_mhz=95 mem_clock_mhz=2000",
    ),
    Sample(
        "amd-smi",
        "monitor-text",
        monitor(8, 2),
        16,
        ("0", "1"),
        first="2026-08-12T16:57:32Z gpu=0 util_pct=0 mem_util_pct=3 mem_used_mib=16 mem_total_mib=30679 power_w=8 temp_c=28 mem_temp_c=32 sm_clock_mhz=900 mem_clock_mhz=96",
        last="2026-08-12T16:57:39Z gpu=1 util_pct=7 mem_util_pct=3 mem_used_mib=16 mem_total_mib=30679 power_w=8 temp_c=28 mem_temp_c=32 sm_clock_mhz=900 mem_clock_mhz=96",
    ),
    Sample(
        "amd-smi",
        "monitor-csv",
        monitor(8, 1, comma=True),
        8,
        ("0",),
        first="2026-08-12T16:57:32Z gpu=0 util_pct=0 mem_util_pct=3 mem_used_mib=16 mem_total_mib=30679 power_w=8 temp_c=28 mem_temp_c=32 sm_clock_mhz=900 mem_clock_mhz=96",
        last="2026-08-12T16:57:39Z gpu=0 util_pct=7 mem_util_pct=3 mem_used_mib=16 mem_total_mib=30679 power_w=8 temp_c=28 mem_temp_c=32 sm_clock_mhz=900 mem_clock_mhz=96",
    ),
)
