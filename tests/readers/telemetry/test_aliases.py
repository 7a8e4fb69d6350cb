"""Column names of home-made logs: every spelling met so far, and names that are not ours."""

from __future__ import annotations

import pytest

from gpudiag.readers._fields.aliases import meaning_of

SPELLINGS = {
    "util_pct": "gpu_util|gpu_util%|gpu_util(%)|gpu_util_%|gpu_util_pct|gpu_util_percent|gpu_utilization|gpuUtil|"
    "gpu_utilization_percent|utilization_gpu_percent|gpu_usage_percent|Utilization|Util (%)|GPU_Utilization_%|"
    "Inst_%_GPU_Utilization|GPU Util (%)|GPU%|utilization.gpu|gpu load|GPU_LOAD",
    "mem_used_mib": "memory_used_mb|mem_used_mb|mem_used_MB|memory_used(MB)|Memory Used (MB)|vram_used_mb|"
    "gpu_memory_mb|gpu_memory_used|gpu_memory_used_MB|Inst_GPU_Memory_Used(MB)|memory.used|"
    "memoryUsed|VRAM (MiB)|used_gpu_memory",
    "mem_free_mib": "gpu_free_mb|gpu_memory_free|memory.free",
    "mem_total_mib": "Total Memory (MB)|mem_total_MB|memory_total(MB)|gpu_memory_total|memory.total",
    "mem_max_mib": "Memory Max|gpu_mem_mb_max|max_memory_mb",
    "mem_pct": "mem_util_pct|memory_util(%)|memory_percent|mem_util%|gpu_memory_utilization|Inst_%_GPU_Mem_Utilization",
    "mem_util_pct": "utilization.memory|memory_controller_util",
    "power_w": "power_w|power_W|power_draw_W|power_watts|gpu_power_w|Power (W)|Power Used|Power_Usage(W)|"
    "Power Draw (W)|power.draw|Watts|Power consumption (W)",
    "power_limit_w": "power.limit|power_limit_w|gpu_power_cap",
    "power_max_w": "Power Max|max_power_w",
    "temp_c": "temp_c|temp_C|temperature_C|temperature(C)|Temp (°C)|Temp (\ufffdC)|gpu_temp_celsius|temperature.gpu",
    "mem_temp_c": "memory_temp_c|temperature.memory",
    "sm_clock_mhz": "clocks.sm|sm_clock|graphics_clock_mhz|gpu_clock_mhz|clocks.current.graphics",
    "mem_clock_mhz": "clocks.mem|memory_clock_mhz",
    "fan_pct": "fan.speed|fan_speed_percent|Fan",
    "index": "gpu|gpu_id|gpu_index|index|index_gpu|GPU_ID|GPU_Index|GPUId|device|device_id",
    "time": "timestamp|Timestamp|Time|time|timestamp_ms|Timestamp (ns)|TimeStampUs|datetime|unix_time",
    "elapsed": "elapsed_sec|Relative_Time_s|Elapsed_Time(s)",
    "date": "Date",
    "name": "name|gpu_name|GPU_Name|product_name",
    "uuid": "uuid|gpu_uuid",
    "bus_id": "pci.bus_id|pci_bus_id|gpu_bus_id",
    "host.cpu_pct": "cpu_usage_percent|cpu_percent|cpu",
    "host.ram_used_mib": "ram_used_mb|system_memory_used_mb",
    "host": "hostname|Node|host_name",
    "known": "pid|epoch|step|Process_Name",
    "": "n1_watts|total_watts|val_loss|loss|value|metric|unit|humidity|score|duration|number|learning_rate|total|used|"
    "load|gpu_co2_kg|Inst_GFLOPS|cpu_temp|state|gpu_power_std",
}


@pytest.mark.parametrize("target", SPELLINGS)
def test_spellings(target: str) -> None:
    found = {name: meaning_of(name).target for name in SPELLINGS[target].split("|")}
    assert found == dict.fromkeys(found, target)


@pytest.mark.parametrize(
    ("name", "scale"),
    [
        ("mem_used_gb", 1024),
        ("memory_used_bytes", 2**-20),
        ("vram_kb", 1 / 1024),
        ("gpu_power_mw", 0.001),
        ("sm_clock_ghz", 1000),
        ("gpu_energy_kwh", 3.6e6),
        ("energy_mj", 0.001),
        ("Power (mW)", 0.001),
        ("gpu_power_mW", 0.001),
        ("GPU Energy [kWh]", 3.6e6),
        ("power_w", 1),
    ],
)
def test_units(name: str, scale: float) -> None:
    assert meaning_of(name).scale == pytest.approx(scale)


@pytest.mark.parametrize(
    ("name", "target", "device"),
    [
        ("gpu0_util", "util_pct", "0"),
        ("gpu_1_memory_used_mb", "mem_used_mib", "1"),
        ("util_gpu0", "util_pct", "0"),
        ("GPU 12 Power (W)", "power_w", "12"),
        ("power_1", "power_w", "1"),
        ("mem1_mb", "mem_used_mib", "1"),
        ("util2_%", "util_pct", "2"),
        ("util_60s", "", ""),
        ("cpu2_pct", "known", ""),
        ("ram_1", "known", ""),
        ("gpus", "known", ""),
        ("num_gpus", "known", ""),
        ("GPU3", "index", "3"),
        ("cuda:0 util", "util_pct", "0"),
    ],
)
def test_a_gpu_in_the_name(name: str, target: str, device: str) -> None:
    assert (meaning_of(name).target, meaning_of(name).device) == (target, device)


def test_a_unit_that_cannot_be_is_not_ours() -> None:
    assert meaning_of("gpu_temp_mb").target == "" and meaning_of("fan_speed_mhz").target == ""
