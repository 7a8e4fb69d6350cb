"""Answers of the Prometheus API: ranges of several metrics, one document and one a line."""

from __future__ import annotations

import json
from typing import Any

from telemetry_sample import Sample

START_S = 1740823200


def series(name: str, gpu: int, points: int, factor: float = 1.0) -> dict[str, Any]:
    labels = {
        "__name__": f"DCGM_FI_{name}",
        "gpu": str(gpu),
        "UUID": f"GPU-604a-{gpu}",
        "instance": "n1:9400",
        "job": "dcgm",
    }
    return {"metric": labels, "values": [[START_S + 15 * at, str((at + 10 * gpu) * factor)] for at in range(points)]}


def answer(*rows: dict[str, Any]) -> dict[str, Any]:
    return {"status": "success", "data": {"resultType": "matrix", "result": list(rows)}}


BOTH = answer(
    *(
        series(name, gpu, 10, factor)
        for name, factor in (("DEV_GPU_UTIL", 1), ("PROF_SM_ACTIVE", 0.01))
        for gpu in (0, 1)
    )
)
LINES = [answer(series(name, 0, 10)) for name in ("DEV_GPU_UTIL", "DEV_FB_USED", "DEV_FB_FREE", "DEV_POWER_USAGE")]
JOBSTATS_LABELS = {"instance": "n1:9445", "minor_number": "2", "uuid": "GPU-604a-2", "name": "NVIDIA H200"}
JOBSTATS = answer(
    *(
        {
            "metric": JOBSTATS_LABELS | {"__name__": f"nvidia_gpu_{name}"},
            "values": [[START_S + 30 * at, str(at * factor)] for at in range(10)],
        }
        for name, factor in (
            ("duty_cycle", 10),
            ("memory_used_bytes", 2**30),
            ("power_usage_milliwatts", 50_500),
            ("temperature_celsius", 5),
        )
    )
)
SAMPLES = (
    Sample(
        "Prometheus JSON",
        "jobstats",
        json.dumps(JOBSTATS, indent=1),
        10,
        ("2",),
        by_line=False,
        first="2025-03-01T10:00:00Z gpu=2 util_pct=0 mem_used_mib=0 power_w=0 temp_c=0",
        last="2025-03-01T10:04:30Z gpu=2 util_pct=90 mem_used_mib=9216 power_w=454.5 temp_c=45",
    ),
    Sample(
        "Prometheus JSON",
        "one-range",
        json.dumps(BOTH, indent=1),
        20,
        ("0", "1"),
        by_line=False,
        first="2025-03-01T10:00:00Z gpu=0 util_pct=0 sm_active_pct=0",
        last="2025-03-01T10:02:15Z gpu=1 util_pct=19 sm_active_pct=19",
    ),
    Sample(
        "Prometheus JSON",
        "one-metric-a-line",
        "".join(json.dumps(line) + "\n" for line in LINES),
        10,
        ("0",),
        by_line=False,
        first="2025-03-01T10:00:00Z gpu=0 util_pct=0 mem_used_mib=0 mem_total_mib=0 power_w=0",
        last="2025-03-01T10:02:15Z gpu=0 util_pct=9 mem_used_mib=9 mem_total_mib=18 power_w=9",
    ),
)
