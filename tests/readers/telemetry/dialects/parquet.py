"""``gpudiag convert``: one Parquet file of all tables, written by its own writer from a made-up log."""

from __future__ import annotations

import tempfile
from pathlib import Path

from telemetry_sample import Sample

from gpudiag.export.convert import convert

READER = "gpudiag-parquet"
CSV = "timestamp, index, name, utilization.gpu [%], memory.used [MiB], memory.total [MiB]\n" + "".join(
    f"2026/03/01 10:00:{second:02d}.{gpu:03d}, {gpu}, NVIDIA H200, {7 * second} %, {900 + second} MiB, 143771 MiB\n"
    for second in range(10)
    for gpu in (0, 1)
)


def converted() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        log, out = Path(folder, "gpu.csv"), Path(folder, "out.parquet")
        log.write_text(CSV)
        convert([log], out, timezone="UTC")
        return out.read_bytes()


SAMPLES = (
    Sample(
        READER,
        "two-gpus",
        converted(),
        20,
        ("0", "1"),
        first="2026-03-01T10:00:00Z gpu=0 util_pct=0 mem_used_mib=900 mem_total_mib=143771",
        last="2026-03-01T10:00:09.001Z gpu=1 util_pct=63 mem_used_mib=909 mem_total_mib=143771",
    ),
)
