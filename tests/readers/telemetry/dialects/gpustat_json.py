"""``gpustat --json``: indented documents one after the other, and one a line."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

from telemetry_sample import Sample

START = datetime(2019, 8, 23, 11, 28, 42, 900873)


def document(tick: int, gpus: int) -> dict[str, Any]:
    rows = [
        {
            "index": gpu, "uuid": f"GPU-e9cdea1d-{gpu}", "name": "Tesla P4", "temperature.gpu": 67, "fan.speed": None,
            "utilization.gpu": (7 * tick + 13 * gpu) % 100, "power.draw": 32, "enforced.power.limit": 75,
            "memory.used": 3219 + tick, "memory.total": 7606,
            "processes": [{"username": "root", "command": "python", "gpu_memory_usage": 3209, "pid": 7468 + gpu}],
        }
        for gpu in range(gpus)
    ]  # fmt: skip
    return {"hostname": "n1", "query_time": (START + timedelta(seconds=tick)).isoformat(), "gpus": rows}


INDENTED = "\n".join(json.dumps(document(tick, 2), indent=4) for tick in range(5)) + "\n"
ONE_A_LINE = "".join(json.dumps(document(tick, 1)) + "\n" for tick in range(8))
SAMPLES = (
    Sample(
        "gpustat JSON",
        "indented-two-gpus",
        INDENTED,
        10,
        ("0", "1"),
        by_line=False,
        first="2019-08-23T11:28:42.900873Z gpu=0 util_pct=0 mem_used_mib=3219 mem_total_mib=7606 power_w=32 power_limit_w=75 temp_c=67",
        last="2019-08-23T11:28:46.900873Z gpu=1 util_pct=41 mem_used_mib=3223 mem_total_mib=7606 power_w=32 power_limit_w=75 temp_c=67",
    ),
    Sample(
        "gpustat JSON",
        "one-a-line",
        ONE_A_LINE,
        8,
        ("0",),
        first="2019-08-23T11:28:42.900873Z gpu=0 util_pct=0 mem_used_mib=3219 mem_total_mib=7606 power_w=32 power_limit_w=75 temp_c=67",
        last="2019-08-23T11:28:49.900873Z gpu=0 util_pct=49 mem_used_mib=3226 mem_total_mib=7606 power_w=32 power_limit_w=75 temp_c=67",
    ),
)
