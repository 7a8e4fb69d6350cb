"""CSV of nvitop's ``ResourceMetricCollector``: columns ``<tag>/gpu:0/gpu_utilization (%)/mean``.

No real file was available: only the keys its documentation names are read. A row holds aggregates of one
collection interval; the mean is taken, or the last value where there is no mean.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from gpudiag.readers._io.csv_records import cells_of
from gpudiag.readers._io.lines import numbered_lines
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._shape.finish import finish, nothing_usable
from gpudiag.readers._shape.snapshots import quantity
from gpudiag.readers._shape.ticks import is_epoch
from gpudiag.readers.base import Reader, ReadOptions, Telemetry

NAME = "nvitop CSV"
NOTE = "Values are means over each collection interval."

_GPU_COLUMN = re.compile(
    r"(?:.*/)?(?:cuda:\d{1,4} \(gpu:(?P<cuda>\d{1,4})\)|gpu:(?P<gpu>\d{1,4}))"
    r"/(?P<metric>[^/]{1,60} \([^/]{1,20}\))/(?P<kind>mean|last)"
)
_HOST_COLUMN = re.compile(r"(?:.*/)?host/(?P<metric>[^/]+ \([^/]+\))/(?P<kind>mean|last)")
_GPU_METRICS = {
    "gpu_utilization (%)": ("util_pct", 1.0),
    "memory_utilization (%)": ("mem_util_pct", 1.0),
    "memory_used (MiB)": ("mem_used_mib", 1.0),
    "memory_total (MiB)": ("mem_total_mib", 1.0),
    "temperature (C)": ("temp_c", 1.0),
    "power_usage (W)": ("power_w", 1.0),
    "fan_speed (%)": ("fan_pct", 1.0),
}
_HOST_METRICS = {"cpu_percent (%)": ("cpu_pct", 1.0), "memory_used (GiB)": ("ram_used_mib", 1024.0)}

ColumnPositions = dict[str, tuple[int, float]]
"""Position and factor of each column of the schema."""


def recognises(source: Source) -> bool:
    first = source.lines[0] if source.lines else ""
    return "/timestamp" in first and any(
        _GPU_COLUMN.fullmatch(name.strip('"')) for name in first.split(",") if "gpu:" in name
    )


def read(source: Source, options: ReadOptions) -> Telemetry:
    log = ProblemLog()
    lines = numbered_lines(source, log)
    _, header = next(lines)
    names = cells_of(header)
    timestamp = next((at for at, name in enumerate(names) if name.endswith("/timestamp") or name == "timestamp"), None)
    if timestamp is None:
        raise nothing_usable(source, NAME, log)
    gpus, host = _places(names)
    rows: list[list[str]] = []
    numbers: list[int] = []
    for number, line in lines:
        cells = cells_of(line)
        epoch_s = quantity(cells[timestamp]) if len(cells) == len(names) else None
        if is_epoch(epoch_s):
            rows.append(cells)
            numbers.append(number)
        elif line.strip() and line != header:
            torn = len(cells) > 1
            log.add("torn row" if torn else "line that is no sample", line=number, example=line, lost=torn)
    if not rows:
        raise nothing_usable(source, NAME, log)
    time = pd.Series(pd.to_datetime([float(row[timestamp]) for row in rows], unit="s", utc=True)).astype(
        "datetime64[us, UTC]"
    )
    gpu = pd.concat([_table(rows, numbers, time, places).assign(gpu=label) for label, places in gpus.items()])
    hosts = _table(rows, numbers, time, host) if host else None
    return finish(source, NAME, options, log, gpu=gpu.reset_index(drop=True), host=hosts, notes=[NOTE])


def _places(names: Sequence[str]) -> tuple[dict[str, ColumnPositions], ColumnPositions]:
    """Where the columns of each GPU and of the host stand; a mean goes before a last value."""
    gpus: dict[str, ColumnPositions] = {}
    host: ColumnPositions = {}
    for at, name in sorted(enumerate(names), key=lambda item: item[1].endswith("/mean")):
        if "/pid:" in name:
            continue
        if (match := _GPU_COLUMN.fullmatch(name)) and match["metric"] in _GPU_METRICS:
            column, factor = _GPU_METRICS[match["metric"]]
            gpus.setdefault(match["cuda"] or match["gpu"], {})[column] = (at, factor)
        elif (match := _HOST_COLUMN.fullmatch(name)) and match["metric"] in _HOST_METRICS:
            column, factor = _HOST_METRICS[match["metric"]]
            host[column] = (at, factor)
    return gpus, host


def _table(rows: list[list[str]], numbers: list[int], time: pd.Series, places: ColumnPositions) -> pd.DataFrame:
    table = pd.DataFrame({"time": time, "line": numbers})
    for column, (at, factor) in places.items():
        values = [quantity(row[at]) for row in rows]
        table[column] = np.array([np.nan if value is None else value * factor for value in values])
    return table


READER = Reader(NAME, recognises, read)
