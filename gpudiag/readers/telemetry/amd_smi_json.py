"""``amd-smi metric --json`` and ``amd-smi monitor --json``: an object for each GPU, in arrays or one after another.

Newer versions hold the array under ``gpu_data``. A quantity is an object of a value and its unit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpudiag.readers._io.json_documents import documents
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._shape.moments import Moment, read_moment
from gpudiag.readers._shape.snapshots import Snapshots
from gpudiag.readers.base import Reader, ReadOptions, Telemetry
from gpudiag.readers.telemetry.amd_smi import columns_of, moment_of

NAME = "amd-smi-json"
_METRIC = ('"gfx_activity"', '"umc_activity"')
_MONITOR = ('"power_usage"', '"hotspot_temperature"', '"gfx"')


def recognises(source: Source) -> bool:
    """JSON, maybe below a date line, that holds the keys of one of the commands."""
    if source.is_dir or source.is_binary:
        return False
    text = source.text.lstrip("\ufeff \r\n\t")
    if text[:1] not in ("{", "[") and not read_moment(text.partition("\n")[0]):
        return False
    return '"gpu"' in text and any(all(key in text for key in keys) for keys in (_METRIC, _MONITOR))


def read(source: Source, options: ReadOptions) -> Telemetry:
    """Read every object; see :func:`gpudiag.readers.telemetry.read_telemetry`."""
    log = ProblemLog()
    snapshots = Snapshots()
    last, seen = "", set[str]()
    above: Moment | None = None
    for line, item in documents(source.read_text(), log):
        if isinstance(item, Moment):
            above = item
            seen.clear()
            continue
        for values in map(_flat, _gpus(item)):
            gpu, timestamp = values.get("gpu", ""), values.get("timestamp", "")
            columns = columns_of(values)
            if not gpu.isdecimal() or not any(value is not None for value in columns.values()):
                log.add("object that is no sample", line=line, example=values)
                continue
            if not seen or timestamp != last or gpu in seen:
                snapshots.begin(moment_of(timestamp) or above)
                last = timestamp
                seen.clear()
            seen.add(gpu)
            snapshots.sample(gpu, line, **columns)
    return snapshots.finish(source, NAME, options, log)


def _gpus(item: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    inner = item.get("gpu_data")
    yield from (one for one in (inner if isinstance(inner, list) else [item]) if isinstance(one, dict))


def _flat(item: Mapping[str, Any], path: tuple[str, ...] = ()) -> dict[str, str]:
    """The values by the names that they have in CSV: without their topic, as ``clock``, and with their place in it."""
    out: dict[str, str] = {}
    for key, value in item.items():
        inner = (*path, key)
        if isinstance(value, dict) and not {"value", "unit"} <= value.keys():
            out |= _flat(value, inner)
        elif not isinstance(value, list):
            text = f"{value['value']} {value['unit']}" if isinstance(value, dict) else str(value)
            out["_".join(inner[1:] or inner)] = text.strip()
    return out


READER = Reader(NAME, recognises, read)
