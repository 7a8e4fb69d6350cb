"""``wandb-events.jsonl``: the system metrics of an old W&B run (2020), one JSON object an interval."""

from __future__ import annotations

from collections.abc import Iterator

from gpudiag.readers._fields.wandb_metrics import WandbTick, is_number, joined, plain_name, tables
from gpudiag.readers._io.json_values import json_object
from gpudiag.readers._io.lines import numbered_lines
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._shape.finish import finish, nothing_usable
from gpudiag.readers._shape.ticks import is_epoch
from gpudiag.readers.base import Reader, ReadOptions, Telemetry

NAME = "W&B events"


def recognises(source: Source) -> bool:
    """True if one of the first lines is an object of system metrics."""
    if source.is_binary or "_timestamp" not in source.text:
        return False
    return any(_tick(line, 0) is not None for line in source.lines[:10])


def read(source: Source, options: ReadOptions) -> Telemetry:
    log = ProblemLog()
    found = tables(joined(_ticks(source, log)))
    if found.gpu is None and found.host is None:
        raise nothing_usable(source, NAME, log)
    return finish(source, NAME, options, log, gpu=found.gpu, host=found.host, notes=found.notes)


def _ticks(source: Source, log: ProblemLog) -> Iterator[WandbTick]:
    for number, line in numbered_lines(source, log):
        tick = _tick(line, number)
        if tick is not None:
            yield tick
        elif line.strip():
            torn = line.lstrip().startswith("{")
            log.add("torn line" if torn else "line that is no sample", line=number, example=line, lost=torn)


def _tick(line: str, number: int) -> WandbTick | None:
    """The metrics of one line; None if it has none, or no time."""
    found = json_object(line)
    if found is None or not is_number(found.get("_timestamp")) or not is_epoch(found["_timestamp"]):
        return None
    values = {plain_name(key): float(value) for key, value in found.items() if _is_metric(key, value)}
    return WandbTick(round(found["_timestamp"] * 1e6), values, number) if values else None


def _is_metric(key: str, value: object) -> bool:
    return plain_name(key) != key and is_number(value)


READER = Reader(NAME, recognises, read)
