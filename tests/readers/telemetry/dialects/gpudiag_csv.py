"""``gpudiag record``: the recorder's own format, written by its own writer from made-up readings."""

from __future__ import annotations

import tempfile
from pathlib import Path

from telemetry_sample import Sample

from gpudiag.record.parquet import convert
from gpudiag.record.readings import Device, RecordRow
from gpudiag.record.sink import CsvSink

READER = "gpudiag-record"
START_S = 1_772_359_200.0


def device(number: int) -> Device:
    return Device(str(number), f"GPU-{number}{'ab' * 8}", "NVIDIA H200", f"00000000:0{number}:00.0", 143771.0, 700.0)


def rows(tick: int, gpus: int, *, processes: bool, host: bool) -> list[RecordRow]:
    out = []
    for number in range(gpus):
        at = (START_S + tick + 0.001 * number, 50.0 + tick + 0.001 * number)
        gpu = {"gpu": str(number), "util_pct": (7 * tick + number) % 101, "mem_used_mib": 1000.125, "power_w": 71.25}
        out.append(RecordRow("gpu", *at, gpu))
        if processes:
            out.append(
                RecordRow("process", *at, {"gpu": str(number), "pid": 4000 + number, "name": 'py,"x"', "sm_pct": 12})
            )
    if host:
        out.append(RecordRow("host", START_S + tick + 0.01, 50.01 + tick, {"cpu_pct": 12.5, "ram_used_mib": 900.0}))
    if tick == 2:
        out.append(RecordRow("event", START_S + tick, 50.0 + tick, {"kind": "epoch", "detail": 'a "mark", quoted'}))
    return out


def recorded(ticks: int, gpus: int, *, sessions: int = 1, processes: bool = False, host: bool = False) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "metrics.csv")
        for session in range(sessions):
            sink = CsvSink(path, print)
            about = {"gpudiag": "0.1.0", "host": "node7", "driver": "570.86.15", "zone": "Asia/Taipei"}
            sink.begin(about, [device(number) for number in range(gpus)])
            for tick in range(session * ticks, (session + 1) * ticks):
                sink.write(rows(tick, gpus, processes=processes, host=host))
            sink.close()
        return path.read_text(encoding="utf-8")


def as_parquet(text: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        journal = Path(folder, "metrics.journal.csv")
        journal.write_text(text, encoding="utf-8")
        return convert(journal, Path(folder, "metrics.parquet")).read_bytes()


EVERYTHING = recorded(6, 2, sessions=2, processes=True, host=True)
SAMPLES = (
    Sample(
        READER,
        "one-gpu",
        recorded(20, 1),
        20,
        ("0",),
        first="2026-03-01T10:00:00Z gpu=0 util_pct=0 mem_used_mib=1000.125 power_w=71.25",
        last="2026-03-01T10:00:19Z gpu=0 util_pct=32 mem_used_mib=1000.125 power_w=71.25",
    ),
    Sample(
        READER,
        "everything-and-two-sessions",
        EVERYTHING,
        24,
        ("0", "1"),
        first="2026-03-01T10:00:00Z gpu=0 util_pct=0 mem_used_mib=1000.125 power_w=71.25",
        last="2026-03-01T10:00:11.001Z gpu=1 util_pct=78 mem_used_mib=1000.125 power_w=71.25",
    ),
    Sample(
        READER,
        "host-alone",
        recorded(12, 0, host=True),
        12,
        (),
        table="host",
        first="2026-03-01T10:00:00.01Z cpu_pct=12.5 ram_used_mib=900",
        last="2026-03-01T10:00:11.01Z cpu_pct=12.5 ram_used_mib=900",
    ),
    Sample(
        "gpudiag-record-parquet",
        "everything-and-two-sessions",
        as_parquet(EVERYTHING),
        24,
        ("0", "1"),
        first="2026-03-01T10:00:00Z gpu=0 util_pct=0 mem_used_mib=1000.125 power_w=71.25",
        last="2026-03-01T10:00:11.001Z gpu=1 util_pct=78 mem_used_mib=1000.125 power_w=71.25",
    ),
)
