"""JSON of samples, one object a line or one array, flat or with a list of GPUs."""

from __future__ import annotations

import json
from collections.abc import Callable

from telemetry_sample import Sample

READER = "json-samples"
EPOCH_S = 1_736_203_508


def flat(k: int) -> dict[str, object]:
    return {"timestamp": EPOCH_S + k, "gpu": k % 2, "gpu_util": k, "memory_used_mb": 100 + k, "power_w": None}


def nested(k: int) -> dict[str, object]:
    gpus = [{"index": g, "name": "NVIDIA A100", "utilization": k + g, "memory_used": 5 * k} for g in range(2)]
    return {"time": f"2025-01-01T00:00:{k:02d}.5Z", "gpus": gpus}


def lines(*objects: dict[str, object]) -> str:
    return "".join(json.dumps(one) + "\n" for one in objects)


def plain(k: int) -> dict[str, object]:
    return {"gpu_util": k, "mem_used_mb": 100 + k, "timestamp": 1000 * (EPOCH_S + k)}


WAYS: dict[str, Callable[[int], dict[str, object]]] = {
    "keys-with-the-number": lambda k: {"gpu0_util": k, "gpu1_util": k + 1, "gpu0_mem_mb": 100, "gpu1_mem_mb": 200},
    "an-object-a-gpu": lambda k: {"gpu0": {"util": k, "mem_mb": 100}, "gpu1": {"util": k + 1, "mem_mb": 200}},
    "objects-by-number": lambda k: {"gpus": {"0": {"util": k, "mem_mb": 100}, "1": {"util": k + 1, "mem_mb": 200}}},
    "lists-over-gpus": lambda k: {"gpu_util": [k, k + 1], "gpu_mem_mb": [100, 200]},
}
"""Two GPUs in an object, one way of several."""


def columns(rows: int) -> dict[str, object]:
    return {"timestamp": [EPOCH_S + k for k in range(rows)], "gpu": {"util": [*range(rows)], "mem_mb": [100] * rows}}


SAMPLES = (
    *(
        Sample(
            READER,
            name,
            lines(*({"timestamp": EPOCH_S + k, **way(k)} for k in range(20))),
            40,
            ("0", "1"),
            lost_by_cut=2,
            first="2025-01-06T22:45:08Z gpu=0 util_pct=0 mem_used_mib=100",
            last="2025-01-06T22:45:27Z gpu=1 util_pct=20 mem_used_mib=200",
        )
        for name, way in WAYS.items()
    ),
    Sample(
        READER,
        "a-list-for-each-column",
        json.dumps(columns(20)),
        20,
        ("0",),
        by_line=False,
        first="2025-01-06T22:45:08Z gpu=0 util_pct=0 mem_used_mib=100",
        last="2025-01-06T22:45:27Z gpu=0 util_pct=19 mem_used_mib=100",
    ),
    Sample(
        READER,
        "rows-of-a-frame",
        json.dumps([plain(k) for k in range(20)], separators=(",", ":")),
        20,
        ("0",),
        by_line=False,
        first="2025-01-06T22:45:08Z gpu=0 util_pct=0 mem_used_mib=100",
        last="2025-01-06T22:45:27Z gpu=0 util_pct=19 mem_used_mib=119",
    ),
    Sample(
        READER,
        "flat-lines",
        lines(*map(flat, range(20))),
        20,
        ("0", "1"),
        first="2025-01-06T22:45:08Z gpu=0 util_pct=0 mem_used_mib=100",
        last="2025-01-06T22:45:27Z gpu=1 util_pct=19 mem_used_mib=119",
    ),
    Sample(
        READER,
        "a-list-of-gpus-a-line",
        lines(*map(nested, range(10))),
        20,
        ("0", "1"),
        lost_by_cut=2,
        first="2025-01-01T00:00:00.5Z gpu=0 util_pct=0 mem_used_mib=0",
        last="2025-01-01T00:00:09.5Z gpu=1 util_pct=10 mem_used_mib=45",
    ),
    Sample(
        READER,
        "one-array",
        json.dumps([nested(k) for k in range(10)], indent=1),
        20,
        ("0", "1"),
        by_line=False,
        first="2025-01-01T00:00:00.5Z gpu=0 util_pct=0 mem_used_mib=0",
        last="2025-01-01T00:00:09.5Z gpu=1 util_pct=10 mem_used_mib=45",
    ),
)
