"""System metrics in W&B's own run file, ``run-<id>.wandb``."""

from __future__ import annotations

import json
from collections.abc import Iterator

from gpudiag.readers._fields.wandb_metrics import WandbTick, is_number, joined, plain_name, tables
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._io.wandb_log import HISTORY, KEY, MAGIC, STATS, VALUE_JSON, records
from gpudiag.readers._io.wire_format import Message, epoch_us, inner, text
from gpudiag.readers._shape.finish import finish, nothing_usable
from gpudiag.readers.base import Reader, ReadOptions, Telemetry

NAME = "W&B run file"

NO_STATS = "The W&B run file holds no system metrics, only what the training logged."
OF_FOLDER = "What the training logged is read where the folder of the W&B run file is given, not the file alone."
_TIMESTAMP, _ITEM = 2, 3


def recognises(source: Source) -> bool:
    return source.head.startswith(MAGIC)


def read(source: Source, options: ReadOptions) -> Telemetry:
    """Read what lies before the end of the file, wherever a killed run left it.

    Raises InputError if it holds neither system metrics nor what the training logged, as the file of a run shorter
    than one interval.
    """
    log, data = ProblemLog(), source.read_bytes()
    found = tables(joined(_ticks(data, log)))
    if found.gpu is None and found.host is None:
        if any(HISTORY in record for record in records(data, ProblemLog())):
            return Telemetry(problems=log.all, notes=(NO_STATS, OF_FOLDER), reader=NAME)
        log.add("run file without system metrics")
        raise nothing_usable(source, NAME, log)
    gpu, host = (None if table is None else table.drop(columns="line") for table in (found.gpu, found.host))
    return finish(source, NAME, options, log, gpu=gpu, host=host, notes=found.notes)


def _ticks(data: bytes, log: ProblemLog) -> Iterator[WandbTick]:
    for record in records(data, log):
        try:
            for stats in inner(record, STATS):
                time_us = epoch_us(stats, _TIMESTAMP)
                if time_us:
                    yield WandbTick(time_us, dict(_values(stats)))
        except ValueError:
            log.add("record that is no message", lost=True)


def _values(stats: Message) -> Iterator[tuple[str, float]]:
    for item in inner(stats, _ITEM):
        try:
            value = json.loads(text(item, VALUE_JSON))
        except (ValueError, RecursionError):
            continue
        if is_number(value):
            yield plain_name(text(item, KEY)), float(value)


READER = Reader(NAME, recognises, read)
