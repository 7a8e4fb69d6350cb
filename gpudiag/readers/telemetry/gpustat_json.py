"""``gpustat --json`` in a loop: one document per snapshot. No real file was available; keys are those of its source."""

from __future__ import annotations

from typing import Any

from gpudiag.readers._io.json_documents import documents
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._shape.moments import read_moment
from gpudiag.readers._shape.snapshots import Snapshots
from gpudiag.readers.base import Reader, ReadOptions, Telemetry
from gpudiag.values import is_number

NAME = "gpustat JSON"

COLUMNS = {
    "utilization.gpu": "util_pct",
    "utilization.enc": "enc_pct",
    "utilization.dec": "dec_pct",
    "temperature.gpu": "temp_c",
    "fan.speed": "fan_pct",
    "power.draw": "power_w",
    "enforced.power.limit": "power_limit_w",
    "memory.used": "mem_used_mib",
    "memory.total": "mem_total_mib",
}


def recognises(source: Source) -> bool:
    text = source.text
    return text.lstrip("\ufeff \r\n\t")[:1] in ("{", "[") and all(
        f'"{key}"' in text for key in ("query_time", "gpus", "utilization.gpu")
    )


def read(source: Source, options: ReadOptions) -> Telemetry:
    log = ProblemLog()
    snapshots = Snapshots()
    found = [
        (line, item)
        for line, item in documents(source.read_text(), log)
        if isinstance(item, dict) and isinstance(item.get("gpus"), list)
    ]
    several = len({str(item.get("hostname")) for _, item in found}) > 1
    for line, item in found:
        snapshots.begin(read_moment(str(item.get("query_time"))))
        for gpu in item["gpus"]:
            if isinstance(gpu, dict) and "index" in gpu:
                label = f"{item.get('hostname')}/{gpu['index']}" if several else str(gpu["index"])
                _gpu(gpu, label, line, item, snapshots)
    return snapshots.finish(source, NAME, options, log)


def _gpu(gpu: dict[str, Any], label: str, line: int, item: dict[str, Any], snapshots: Snapshots) -> None:
    about = {"uuid": gpu.get("uuid"), "name": gpu.get("name"), "driver": item.get("driver_version")}
    about["host"] = item.get("hostname")
    snapshots.describe(label, **{column: _text(value) for column, value in about.items()})
    snapshots.sample(label, line, **{column: number(gpu.get(key)) for key, column in COLUMNS.items()})
    processes = gpu.get("processes")
    for process in processes if isinstance(processes, list) else []:
        if isinstance(process, dict) and (pid := number(process.get("pid"))) is not None:
            used = number(process.get("gpu_memory_usage"))
            snapshots.process(label, line, int(pid), name=_text(process.get("command")), mem_used_mib=used)


def number(value: object) -> float | None:
    """A JSON number; None for null, text and what else is no number."""
    return float(value) if is_number(value) and abs(value) < 1e18 else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


READER = Reader(NAME, recognises, read)
