"""``amd-smi metric --json`` and ``amd-smi monitor --json``."""

from __future__ import annotations

import json
from typing import Any

from telemetry_sample import Sample

START_S = 1786553852


def quantity(value: object, unit: str) -> dict[str, object]:
    return {"value": value, "unit": unit}


def metric(tick: int, gpu: int, **also: object) -> dict[str, Any]:
    return {
        **also,
        "gpu": gpu,
        "usage": {
            "gfx_activity": quantity(tick, "%"),
            "umc_activity": quantity(3, "%"),
            "mm_activity": "N/A",
            "vcn_activity": ["N/A", "N/A"],
        },
        "power": {"socket_power": quantity(239, "W"), "throttle_status": "N/A"},
        "clock": {"gfx_0": {"clk": quantity(95, "MHz"), "max_clk": quantity(2100, "MHz")}, "mem_0": {"clk": "N/A"}},
        "temperature": {"edge": "N/A", "hotspot": quantity(42, "C"), "mem": quantity(24, "C")},
        "energy": {"total_energy_consumption": quantity(1000.5 + tick, "J")},
        "mem_usage": {"total_vram": quantity(196608, "MB"), "used_vram": quantity(283, "MB")},
    }


def monitor(tick: int, gpu: int) -> dict[str, Any]:
    return {
        "timestamp": START_S + tick,
        "gpu": gpu,
        "power_usage": quantity(8, "W"),
        "hotspot_temperature": quantity(28, "C"),
        "memory_temperature": "N/A",
        "gfx": quantity(tick, "%"),
        "gfx_clk": quantity(900, "MHz"),
        "mem": quantity(3, "%"),
        "vram_used": quantity(16, "MB"),
        "vram_total": quantity(30679, "MB"),
    }


OF_METRIC = "util_pct={} mem_util_pct=3 mem_used_mib=283 mem_total_mib=196608 power_w=239 temp_c=42 mem_temp_c=24"
AFTER_LAST = "sm_clock_mhz=95 energy_j={}"
OF_MONITOR = "util_pct={} mem_util_pct=3 mem_used_mib=16 mem_total_mib=30679 power_w=8 temp_c=28 sm_clock_mhz=900"

SAMPLES = (
    Sample(
        "amd-smi-json",
        "metric-in-a-loop",
        "".join(json.dumps([metric(tick, gpu) for gpu in range(2)], indent=4) + "\n" for tick in range(8)),
        16,
        ("0", "1"),
        by_line=False,
        stamped=False,
        first=f"1970-01-01T00:00:00Z gpu=0 {OF_METRIC} {AFTER_LAST}".format(0, 1000.5),
        last=f"1970-01-01T00:00:07Z gpu=1 {OF_METRIC} {AFTER_LAST}".format(7, 1007.5),
    ),
    Sample(
        "amd-smi-json",
        "metric-under-gpu-data",
        "".join(
            json.dumps({"gpu_data": [metric(tick, gpu, timestamp=START_S + tick) for gpu in range(2)]}) + "\n"
            for tick in range(8)
        ),
        16,
        ("0", "1"),
        lost_by_cut=2,
        first=f"2026-08-12T16:57:32Z gpu=0 {OF_METRIC} {AFTER_LAST}".format(0, 1000.5),
        last=f"2026-08-12T16:57:39Z gpu=1 {OF_METRIC} {AFTER_LAST}".format(7, 1007.5),
    ),
    Sample(
        "amd-smi-json",
        "monitor-in-one-array",
        json.dumps([monitor(tick, gpu) for tick in range(8) for gpu in range(2)], indent=1),
        16,
        ("0", "1"),
        by_line=False,
        first=f"2026-08-12T16:57:32Z gpu=0 {OF_MONITOR}".format(0),
        last=f"2026-08-12T16:57:39Z gpu=1 {OF_MONITOR}".format(7),
    ),
)
