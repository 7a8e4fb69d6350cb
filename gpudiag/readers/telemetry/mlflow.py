"""MLflow's system metrics: a run folder of a file store, or the SQLite database of a tracking server.

Names and units are those of mlflow/system_metrics: memory in decimal megabytes, values
the mean of the readings of one logging interval (10 s), rounded to 0.1. Timestamps are milliseconds since 1970.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pandas as pd

from gpudiag.errors import InputError
from gpudiag.readers._fields.wandb_metrics import whole_of
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._io.sqlite_file import open_readonly
from gpudiag.readers._shape.finish import finish, nothing_usable
from gpudiag.readers._shape.ticks import is_epoch
from gpudiag.readers.base import Reader, ReadOptions, Telemetry
from gpudiag.scratch import scratch

NAME = "MLflow metrics"
DATABASE_NAME = "MLflow database"
HOW = "call mlflow.enable_system_metrics_logging()"
NOTE = "MLflow writes means over each logging interval (10 s by default): peaks within an interval do not show."
OF_RUNS = (
    "What its runs logged of their trainings is not read from the database: give mlflow:RUN_ID, with "
    "MLFLOW_TRACKING_URI set to sqlite:/// and the path."
)

FOLDER = "metrics/system"
_GPU_METRIC = re.compile(r"gpu_(\d+)_(\w+)")
_MOST_INDEX = 32_766
_MIB_PER_MB = 1e6 / 2**20
_GPU_COLUMNS = {
    "utilization_percentage": ("util_pct", 1.0),
    "memory_usage_megabytes": ("mem_used_mib", _MIB_PER_MB),
    "memory_usage_percentage": ("mem_pct", 1.0),
    "power_usage_watts": ("power_w", 1.0),
    "power_usage_percentage": ("power_pct", 1.0),
}
_HOST_COLUMNS = {
    "cpu_utilization_percentage": ("cpu_pct", 1.0),
    "system_memory_usage_megabytes": ("ram_used_mib", _MIB_PER_MB),
}
_CREATE = re.compile(rb'CREATE TABLE ["\'`]?(metrics|runs)["\'`]?\s*\(')

MetricValue = tuple[str, int, float]
"""Name without ``system/``, milliseconds since 1970, value."""


def recognises(source: Source) -> bool:
    """A run folder of a file store that holds system metrics."""
    folder = source.path / FOLDER
    return source.is_dir and folder.is_dir() and any(is_system_metric(path.name) for path in folder.iterdir())


def is_system_metric(name: str) -> bool:
    """Whether a column of a run holds it; ``name`` without ``system/``."""
    match = _GPU_METRIC.fullmatch(name)
    return name in _HOST_COLUMNS or (match is not None and match[2] in _GPU_COLUMNS)


def gpu_metric(name: str) -> tuple[int, str] | None:
    """Index of the GPU and what is measured; None for what is not of a GPU, or of one that no machine has."""
    match = _GPU_METRIC.fullmatch(name)
    if match is None or len(match[1]) > len(str(_MOST_INDEX)) or int(match[1]) > _MOST_INDEX:
        return None
    return int(match[1]), match[2]


def recognises_database(source: Source) -> bool:
    """An SQLite file with MLflow's tables. The head of a database of a newer version only names experiments, since most
    of its tables were made anew behind them.
    """
    if not source.is_sqlite or b"run_uuid" not in source.head or b"experiments" not in source.head:
        return False
    return {b"metrics", b"runs"} <= {found[1] for found in _CREATE.finditer(source.head)}


def read(source: Source, options: ReadOptions) -> Telemetry:
    log = ProblemLog()
    return _telemetry(_of_files(source, log), source, NAME, options, log)


def read_database(source: Source, options: ReadOptions) -> Telemetry:
    """The system metrics of all runs: each run logs every GPU of its machine."""
    log = ProblemLog()
    sql = "SELECT key, timestamp, value FROM metrics WHERE key LIKE 'system/%'"
    try:
        with _unpacked(source) as path, open_readonly(path) as connection:
            found = [(str(key).removeprefix("system/"), at, value) for key, at, value in connection.execute(sql)]
    except sqlite3.Error as error:
        raise InputError(f"{source.path}: cannot be read as MLflow's database ({error}).") from error
    good = [(key, int(at), float(value)) for key, at, value in found if _is_moment(at) and _is_number(value)]
    log.add("row without a time or a number", len(found) - len(good), lost=True)
    if not good:
        raise InputError(f"{source.path}: holds no system metrics ({HOW}). {OF_RUNS}")
    read = _telemetry(good, source, DATABASE_NAME, options, log)
    return replace(read, notes=(*read.notes, OF_RUNS))


@contextmanager
def _unpacked(source: Source) -> Iterator[Path]:
    """The file itself, or a temporary copy of one that is compressed."""
    if not source.compression:
        yield source.path
        return
    with scratch() as folder:
        path = folder / "mlflow.db"
        path.write_bytes(source.read_bytes())
        yield path


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def _is_moment(at: object) -> bool:
    return isinstance(at, int | float) and is_epoch(at // 1000)  # whole: a count may be too large for a float


def _of_files(source: Source, log: ProblemLog) -> Iterator[MetricValue]:
    """One file a metric, one line ``epoch_ms value step`` a value."""
    for path in sorted((source.path / FOLDER).iterdir()):
        if not is_system_metric(path.name):
            continue
        for line, text in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1):
            try:
                timestamp, value, _ = text.split()
                at, reading = int(timestamp), float(value)
            except ValueError:
                at, reading = 0, 0.0
            if _is_moment(at):
                yield path.name, at, reading
            else:
                log.add("torn line", line=line, example=f"{path.name}: {text}", lost=True)


def _telemetry(
    values: Iterable[MetricValue], source: Source, reader: str, options: ReadOptions, log: ProblemLog
) -> Telemetry:
    gpu: dict[tuple[int, str], dict[str, float]] = {}
    host: dict[int, dict[str, float]] = {}
    for name, at, value in values:
        found = gpu_metric(name)
        if found is not None and found[1] in _GPU_COLUMNS:
            column, factor = _GPU_COLUMNS[found[1]]
            gpu.setdefault((at, str(found[0])), {})[column] = value * factor
        elif name in _HOST_COLUMNS:
            column, factor = _HOST_COLUMNS[name]
            host.setdefault(at, {})[column] = value * factor
        elif is_system_metric(name):
            log.add("row that names no GPU", example=name, lost=True)
    if not gpu and not host:
        log.add(f"no system metrics: {HOW}")
        raise nothing_usable(source, reader, log)
    notes = [NOTE]
    tables = {}
    if gpu:
        keys = pd.DataFrame(list(gpu), columns=["at", "gpu"])
        tables["gpu"] = pd.concat([keys, pd.DataFrame(list(gpu.values()))], axis=1)
        notes += _derived(tables["gpu"])
    if host:
        tables["host"] = pd.DataFrame(list(host.values())).assign(at=list(host))
    for name, table in tables.items():
        timestamps = pd.Series(pd.to_datetime(table["at"], unit="ms", utc=True)).astype("datetime64[us, UTC]")
        tables[name] = table.assign(time=timestamps)
    return finish(source, reader, options, log, gpu=tables.get("gpu"), host=tables.get("host"), notes=notes)


def _derived(gpu: pd.DataFrame) -> list[str]:
    """Sizes and limits, which are only told as percentages of them."""
    notes = []
    if {"mem_used_mib", "mem_pct"} <= set(gpu):
        gpu["mem_total_mib"] = whole_of(gpu["gpu"], gpu["mem_used_mib"], gpu["mem_pct"])
        notes.append("Memory size of each GPU was derived from its use in megabytes and in percent.")
    if {"power_w", "power_pct"} <= set(gpu):
        gpu["power_limit_w"] = whole_of(gpu["gpu"], gpu["power_w"], gpu["power_pct"]).round()
        notes.append("Power limit of each GPU was derived from its power in watts and in percent.")
    return notes


READER = Reader(NAME, recognises, read, descends=True)
DATABASE = Reader(DATABASE_NAME, recognises_database, read_database)
