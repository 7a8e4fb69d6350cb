"""``nvidia-smi -q -x``: documents of drivers 510 (throttle reasons, power readings) and 570 (renamed)."""

from __future__ import annotations

from datetime import datetime, timedelta

from telemetry_sample import Sample

START = datetime(2024, 10, 29, 19, 0, 23)
DOCTYPE = '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n'


def gpu(index: int, tick: int, *, new: bool, mig: bool) -> str:
    readings, reasons = ("gpu_power_readings", "event") if new else ("power_readings", "throttle")
    draw = "average_power_draw" if new else "power_draw"
    limit = "current_power_limit" if new else "enforced_power_limit"
    util = "N/A" if mig else f"{(7 * tick + 13 * index) % 100} %"
    instance = "<mig_device><fb_memory_usage><used>19 MiB</used></fb_memory_usage></mig_device>" if mig else ""
    return f"""\t<gpu id="00000000:{index:02}:04.0">
\t\t<product_name>NVIDIA A100-SXM4-40GB</product_name>
\t\t<mig_devices>{instance}</mig_devices>
\t\t<uuid>GPU-27b94a00-ed54-5c24-b1fd-00000000000{index}</uuid>
\t\t<minor_number>{index}</minor_number>
\t\t<pci><tx_util>2048 KB/s</tx_util><rx_util>1024 KB/s</rx_util></pci>
\t\t<fan_speed>N/A</fan_speed>
\t\t<performance_state>P0</performance_state>
\t\t<clocks_{reasons}_reasons>
\t\t\t<clocks_{reasons}_reason_gpu_idle>Not Active</clocks_{reasons}_reason_gpu_idle>
\t\t\t<clocks_{reasons}_reason_sw_power_cap>Active</clocks_{reasons}_reason_sw_power_cap>
\t\t</clocks_{reasons}_reasons>
\t\t<fb_memory_usage><total>40960 MiB</total><reserved>605 MiB</reserved><used>{4000 + tick} MiB</used>
\t\t</fb_memory_usage>
\t\t<utilization><gpu_util>{util}</gpu_util><memory_util>{util}</memory_util></utilization>
\t\t<temperature><gpu_temp>36 C</gpu_temp><memory_temp>44 C</memory_temp></temperature>
\t\t<{readings}><{draw}>66.92 W</{draw}><{limit}>400.00 W</{limit}></{readings}>
\t\t<clocks><sm_clock>1410 MHz</sm_clock><mem_clock>1215 MHz</mem_clock></clocks>
\t\t<processes><process_info><pid>{100 + index}</pid><process_name>python &amp; more</process_name>
\t\t<used_memory>3900 MiB</used_memory></process_info></processes>
\t</gpu>
"""


def log(ticks: int, gpus: int, *, new: bool = False, mig: bool = False) -> str:
    out = []
    for tick in range(ticks):
        timestamp = (START + timedelta(seconds=5 * tick)).strftime("%a %b %d %H:%M:%S %Y")
        body = "".join(gpu(index, tick, new=new, mig=mig) for index in range(gpus))
        out.append(f"""{DOCTYPE}<nvidia_smi_log>
\t<timestamp>{timestamp}</timestamp>
\t<driver_version>510.47.03</driver_version>
\t<attached_gpus>{gpus}</attached_gpus>
{body}</nvidia_smi_log>
""")
    return "".join(out)


SAMPLES = (
    Sample(
        "nvidia-smi XML",
        "one-document",
        log(1, 1),
        1,
        ("0",),
        by_line=False,
        first="2024-10-29T19:00:23Z gpu=0 util_pct=0 mem_util_pct=0 mem_used_mib=4000 mem_total_mib=40960 mem_reserved_mib=605 power_w=66.92 power_limit_w=400 temp_c=36 mem_temp_c=44 sm_clock_mhz=1410 mem_clock_mhz=1215 throttle_reasons=4 pstate=0 pcie_rx_mib_s=1 pcie_tx_mib_s=2",
        last="2024-10-29T19:00:23Z gpu=0 util_pct=0 mem_util_pct=0 mem_used_mib=4000 mem_total_mib=40960 mem_reserved_mib=605 power_w=66.92 power_limit_w=400 temp_c=36 mem_temp_c=44 sm_clock_mhz=1410 mem_clock_mhz=1215 throttle_reasons=4 pstate=0 pcie_rx_mib_s=1 pcie_tx_mib_s=2",
    ),
    Sample(
        "nvidia-smi XML",
        "loop-two-gpus",
        log(5, 2),
        10,
        ("0", "1"),
        by_line=False,
        first="2024-10-29T19:00:23Z gpu=0 util_pct=0 mem_util_pct=0 mem_used_mib=4000 mem_total_mib=40960 mem_reserved_mib=605 power_w=66.92 power_limit_w=400 temp_c=36 mem_temp_c=44 sm_clock_mhz=1410 mem_clock_mhz=1215 throttle_reasons=4 pstate=0 pcie_rx_mib_s=1 pcie_tx_mib_s=2",
        last="2024-10-29T19:00:43Z gpu=1 util_pct=41 mem_util_pct=41 mem_used_mib=4004 mem_total_mib=40960 mem_reserved_mib=605 power_w=66.92 power_limit_w=400 temp_c=36 mem_temp_c=44 sm_clock_mhz=1410 mem_clock_mhz=1215 throttle_reasons=4 pstate=0 pcie_rx_mib_s=1 pcie_tx_mib_s=2",
    ),
    Sample(
        "nvidia-smi XML",
        "renamed-elements",
        log(5, 1, new=True),
        5,
        ("0",),
        by_line=False,
        first="2024-10-29T19:00:23Z gpu=0 util_pct=0 mem_util_pct=0 mem_used_mib=4000 mem_total_mib=40960 mem_reserved_mib=605 power_w=66.92 power_limit_w=400 temp_c=36 mem_temp_c=44 sm_clock_mhz=1410 mem_clock_mhz=1215 throttle_reasons=4 pstate=0 pcie_rx_mib_s=1 pcie_tx_mib_s=2",
        last="2024-10-29T19:00:43Z gpu=0 util_pct=28 mem_util_pct=28 mem_used_mib=4004 mem_total_mib=40960 mem_reserved_mib=605 power_w=66.92 power_limit_w=400 temp_c=36 mem_temp_c=44 sm_clock_mhz=1410 mem_clock_mhz=1215 throttle_reasons=4 pstate=0 pcie_rx_mib_s=1 pcie_tx_mib_s=2",
    ),
    Sample(
        "nvidia-smi XML",
        "mig",
        log(3, 1, mig=True),
        3,
        ("0",),
        by_line=False,
        first="2024-10-29T19:00:23Z gpu=0 mem_used_mib=4000 mem_total_mib=40960 mem_reserved_mib=605 power_w=66.92 power_limit_w=400 temp_c=36 mem_temp_c=44 sm_clock_mhz=1410 mem_clock_mhz=1215 throttle_reasons=4 pstate=0 pcie_rx_mib_s=1 pcie_tx_mib_s=2",
        last="2024-10-29T19:00:33Z gpu=0 mem_used_mib=4002 mem_total_mib=40960 mem_reserved_mib=605 power_w=66.92 power_limit_w=400 temp_c=36 mem_temp_c=44 sm_clock_mhz=1410 mem_clock_mhz=1215 throttle_reasons=4 pstate=0 pcie_rx_mib_s=1 pcie_tx_mib_s=2",
    ),
)
