"""A run folder of MLflow's file store, and a database of the tables that matter."""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path

from telemetry_sample import Sample

START_MS = 1_700_000_000_000
METRICS = {
    "gpu_0_utilization_percentage": 80.0,
    "gpu_0_memory_usage_megabytes": 8589.9,
    "gpu_0_memory_usage_percentage": 50.0,
    "gpu_0_power_usage_watts": 150.0,
    "gpu_0_power_usage_percentage": 50.0,
    "gpu_1_utilization_percentage": 10.0,
    "cpu_utilization_percentage": 33.0,
    "system_memory_usage_megabytes": 1048.6,
}


def folder(ticks: int) -> dict[str, str]:
    files = {
        f"metrics/system/{name}": "".join(f"{START_MS + 10_000 * n} {value + n} {n}\n" for n in range(ticks))
        for name, value in METRICS.items()
    }
    return {"meta.yaml": "run_id: abc\nstatus: 3\n", "metrics/loss": f"{START_MS} 0.5 0\n", **files}


def database(ticks: int) -> bytes:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "mlflow.db"
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE experiments (experiment_id INTEGER)")
        connection.execute('CREATE TABLE "runs" (run_uuid VARCHAR(32), status TEXT)')
        connection.execute(
            'CREATE TABLE "metrics" (key TEXT, value FLOAT, timestamp BIGINT, run_uuid TEXT, step BIGINT, is_nan INT)'
        )
        timestamps = [(n, START_MS + 10_000 * n) for n in range(ticks)]
        rows = [(f"system/{key}", v + n, at, "abc", n, 0) for n, at in timestamps for key, v in METRICS.items()]
        connection.executemany("INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?)", [*rows, ("loss", 0.5, 1, "abc", 0, 0)])
        connection.commit()
        connection.close()
        return path.read_bytes()


SAMPLES = (
    Sample(
        "MLflow metrics",
        "run-folder",
        folder(12),
        24,
        ("0", "1"),
        first="2023-11-14T22:13:20Z gpu=0 util_pct=80 mem_used_mib=8191.9670105 mem_total_mib=13446.6515213 power_w=150 power_limit_w=264",
        last="2023-11-14T22:15:10Z gpu=1 util_pct=21",
    ),
    Sample(
        "MLflow database",
        "two-gpus",
        database(12),
        24,
        ("0", "1"),
        lost_by_cut=24,
        stamped=False,
        first="2023-11-14T22:13:20Z gpu=0 util_pct=80 mem_used_mib=8191.9670105 mem_total_mib=13446.6515213 power_w=150 power_limit_w=264",
        last="2023-11-14T22:15:10Z gpu=1 util_pct=21",
    ),
)
