"""``nvidia-smi -q`` as text: drivers 470 (throttle reasons, nested processes) and 580, and ``-d UTILIZATION,MEMORY``."""

from __future__ import annotations

from datetime import datetime, timedelta

from telemetry_sample import Sample

START = datetime(2026, 3, 1, 10, 0, 0)
BANNER = "\n==============NVSMI LOG==============\n\n"


def pairs(indent: int, **values: object) -> str:
    named = {name.replace("__", ".").replace("_", " "): value for name, value in values.items()}
    return "".join(f"{' ' * indent}{name:<{51 - indent}}: {value}\n" for name, value in named.items())


def gpu(index: int, tick: int, *, new: bool, whole: bool) -> str:
    used = {"Total": "81559 MiB", "Reserved": "480 MiB", "Used": f"{4000 + tick} MiB", "Free": "77079 MiB"}
    utilization = {"GPU" if new else "Gpu": f"{30 + tick + index} %", "Memory": f"{tick} %", "Encoder": "N/A"}
    out = f"GPU 00000000:0{index}:00.0\n"
    if not whole:
        return out + "    FB Memory Usage\n" + pairs(8, **used) + "    Utilization\n" + pairs(8, **utilization)
    out += pairs(4, Product_Name="NVIDIA H100 80GB HBM3", GPU_UUID=f"GPU-27b94a00-ed54-5c24-b1fd-00000000000{index}")
    out += "    PCI\n" + pairs(8, Tx_Throughput="2048 KB/s", Rx_Throughput="1024 KB/s")
    out += pairs(4, Fan_Speed="N/A", Performance_State="P0")
    out += f"    Clocks {'Event' if new else 'Throttle'} Reasons\n" + pairs(8, Idle="Active", SW_Power_Cap="Active")
    out += pairs(8, HW_Slowdown="Not Active") + pairs(12, HW_Thermal_Slowdown="Active")
    out += (
        "    FB Memory Usage\n"
        + pairs(8, **used)
        + "    BAR1 Memory Usage\n"
        + pairs(8, Total="131072 MiB", Used="1 MiB")
    )
    out += "    Utilization\n" + pairs(8, **utilization)
    out += "    Temperature\n" + pairs(8, GPU_Current_Temp="40 C", GPU_T__Limit_Temp="47 C", Memory_Current_Temp="42 C")
    if new:
        out += "    GPU Power Readings\n" + pairs(8, Average_Power_Draw="128.29 W", Current_Power_Limit="700.00 W")
        out += "    GPU Memory Power Readings \n" + pairs(8, Average_Power_Draw="49.06 W")
    else:
        out += "    Power Readings\n" + pairs(8, Power_Draw="128.29 W", Enforced_Power_Limit="700.00 W")
    out += "    Clocks\n" + pairs(8, Graphics="1980 MHz", SM="1980 MHz", Memory="2619 MHz")
    out += "    Max Clocks\n" + pairs(8, SM="1990 MHz", Memory="2700 MHz") + "    Processes\n"
    if new:
        out += pairs(8, GPU_instance_ID="N/A")
    out += pairs(8, Process_ID=4711) + pairs(12, Type="C", Name="/opt/python3", Used_GPU_Memory="808 MiB")
    return out


def log(ticks: int, gpus: int, *, new: bool = True, whole: bool = True) -> str:
    out = ""
    for tick in range(ticks):
        now = (START + timedelta(seconds=5 * tick)).strftime("%a %b %e %H:%M:%S %Y")
        out += BANNER + pairs(0, Timestamp=now, Driver_Version="580.159.04", CUDA_Version="13.0") + "\n"
        out += pairs(0, Attached_GPUs=gpus) + "".join(gpu(k, tick, new=new, whole=whole) for k in range(gpus))
    return out


ALL = "mem_total_mib=81559 mem_reserved_mib=480 power_w=128.29 power_limit_w=700 temp_c=40 mem_temp_c=42 sm_clock_mhz=1980 sm_clock_max_mhz=1990 mem_clock_mhz=2619 throttle_reasons=69 pstate=0 pcie_rx_mib_s=1 pcie_tx_mib_s=2"
SAMPLES = (
    Sample("nvidia-smi -q", "loop-two-gpus", log(5, 2), 10, ("0", "1"), by_line=False, first=f"2026-03-01T10:00:00Z gpu=0 util_pct=30 mem_util_pct=0 mem_used_mib=4000 {ALL}", last=f"2026-03-01T10:00:20Z gpu=1 util_pct=35 mem_util_pct=4 mem_used_mib=4004 {ALL}",),
    Sample("nvidia-smi -q", "older-names", log(3, 1, new=False), 3, ("0",), by_line=False, first=f"2026-03-01T10:00:00Z gpu=0 util_pct=30 mem_util_pct=0 mem_used_mib=4000 {ALL}", last=f"2026-03-01T10:00:10Z gpu=0 util_pct=32 mem_util_pct=2 mem_used_mib=4002 {ALL}",),
    Sample("nvidia-smi -q", "processes", log(3, 2), 6, ("0", "1"), table="processes", by_line=False, first="2026-03-01T10:00:00Z gpu=0 pid=4711 name=/opt/python3 mem_used_mib=808", last="2026-03-01T10:00:10Z gpu=1 pid=4711 name=/opt/python3 mem_used_mib=808",),
    Sample("nvidia-smi -q", "two-sections", log(4, 1, whole=False), 4, ("0",), by_line=False, first="2026-03-01T10:00:00Z gpu=0 util_pct=30 mem_util_pct=0 mem_used_mib=4000 mem_total_mib=81559 mem_reserved_mib=480", last="2026-03-01T10:00:15Z gpu=0 util_pct=33 mem_util_pct=3 mem_used_mib=4003 mem_total_mib=81559 mem_reserved_mib=480",),
)  # fmt: skip
