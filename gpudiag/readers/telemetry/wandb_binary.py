"""System metrics in W&B's own run file, ``run-<id>.wandb``."""

from __future__ import annotations

import json
from collections.abc import Iterator

from gpudiag.readers._fields.wandb_metrics import WandbTick, is_number, joined, plain_name, tables
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._io.wandb_log import ENVIRONMENT, HISTORY, KEY, MAGIC, STATS, VALUE_JSON, records
from gpudiag.readers._io.wire_format import Message, epoch_us, inner, text
from gpudiag.readers._shape.finish import Known, finish, nothing_usable
from gpudiag.readers._shape.identity import UUID
from gpudiag.readers.base import Reader, ReadOptions, Telemetry

NAME = "W&B run file"

NO_STATS = "The W&B run file holds no system metrics, only what the training logged."
_TIMESTAMP, _ITEM = 2, 3
_GPU_NVIDIA, _NAME, _UUID = 24, 1, 5
"""Fields of EnvironmentRecord and of GpuNvidiaInfo."""


def recognises(source: Source) -> bool:
    return source.head.startswith(MAGIC)


def read(source: Source, options: ReadOptions) -> Telemetry:
    """Read what lies before the end of the file, wherever a killed run left it.

    Raises InputError if it holds neither system metrics nor what the training logged, as the file of a run shorter
    than one interval.
    """
    log, data = ProblemLog(), source.read_bytes()
    boards: list[Known] = []
    found = tables(joined(_ticks(data, log, boards)))
    if found.gpu is None and found.host is None:
        if any(HISTORY in record for record in records(data, ProblemLog())):
            return Telemetry(problems=log.all, notes=(NO_STATS,), reader=NAME)
        log.add("run file without system metrics")
        raise nothing_usable(source, NAME, log)
    gpu, host = (None if table is None else table.drop(columns="line") for table in (found.gpu, found.host))
    known = [] if gpu is None else [board for board in boards if board["gpu"] in set(gpu["gpu"])]
    return finish(source, NAME, options, log, gpu=gpu, gpus=known, host=host, notes=found.notes)


def _ticks(data: bytes, log: ProblemLog, boards: list[Known]) -> Iterator[WandbTick]:
    """The system metrics in order; the GPUs that the record of the environment lists go to ``boards``."""
    for record in records(data, log):
        try:
            for environment in inner(record, ENVIRONMENT):
                boards[:] = _boards(environment) or boards
            for stats in inner(record, STATS):
                time_us = epoch_us(stats, _TIMESTAMP)
                if time_us:
                    yield WandbTick(time_us, dict(_values(stats)))
        except ValueError:
            log.add("record that is no message", lost=True)


def _boards(environment: Message) -> list[Known]:
    cells = ((text(gpu, _NAME), text(gpu, _UUID)) for gpu in inner(environment, _GPU_NVIDIA))
    return [
        {"gpu": str(at), "name": name} | ({"uuid": uuid} if UUID.fullmatch(uuid) else {})
        for at, (name, uuid) in enumerate(cells)
    ]


def _values(stats: Message) -> Iterator[tuple[str, float]]:
    for item in inner(stats, _ITEM):
        try:
            value = json.loads(text(item, VALUE_JSON))
        except (ValueError, RecursionError):
            continue
        if is_number(value):
            yield plain_name(text(item, KEY)), float(value)


READER = Reader(NAME, recognises, read)
