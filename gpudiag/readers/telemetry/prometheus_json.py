"""Answers of the Prometheus API (``query_range`` or ``query``) about NVIDIA GPUs, one or several in a file.

No real file was available: the shape is that of the API's documentation, ``data.result[].metric`` and
``.values[[seconds, "text"]]``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from gpudiag.readers._fields.dcgm_fields import Metric
from gpudiag.readers._fields.metric_names import Cards, metric_of
from gpudiag.readers._fields.rivals import Rivals, hosts_note
from gpudiag.readers._io.json_documents import documents
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._shape.engine import settle
from gpudiag.readers._shape.finish import finish, nothing_usable
from gpudiag.readers._shape.long_form import widen
from gpudiag.readers._shape.pods import boards, depth, note, tenant_of, tenants, uid
from gpudiag.readers._shape.snapshots import Snapshots, quantity
from gpudiag.readers._shape.ticks import is_epoch
from gpudiag.readers.base import Reader, ReadOptions, Telemetry

NAME = "Prometheus JSON"
NAMELESS = "series without a metric name"
OTHER = "series of another metric"


def recognises(source: Source) -> bool:
    text = source.text
    return (
        text.lstrip("\ufeff \r\n\t")[:1] in ("{", "[")
        and '"metric"' in text
        and ('"values"' in text or '"value"' in text)
        and any(f'"{prefix}' in text for prefix in ("DCGM_FI_", "nvidia_smi_", "nvidia_gpu_", "ray_node_g"))
    )


def read(source: Source, options: ReadOptions) -> Telemetry:
    log = ProblemLog()
    parts: list[pd.DataFrame] = []
    found = [
        (line, series)
        for line, item in documents(source.read_text(), log)
        if isinstance(item, dict)
        for series in _series(item)
    ]
    cards = Cards(_told_apart_by([series for _, series in found]))
    for _, series in found:
        points = _points(series)
        last = quantity(str(points[-1][1])) if points else None
        cards.learn(series["metric"].get("__name__", ""), _labels(series), last)
    for line, series in found:
        name, labels = series["metric"].get("__name__"), _labels(series)
        metric = metric_of(name or "", labels)
        if metric is None:
            log.add(OTHER if name else NAMELESS, line=line, example=name or labels)
            continue
        readings = _readings(series, metric.factor, line, log)
        of = {"gpu": cards.label(cards.key(labels)), "depth": depth(labels), "pod": uid(labels)}
        of["tenant"] = tenant_of(labels)
        parts.append(readings.assign(column=metric.column, rank=metric.rank, most=metric.most, **of))
    if not any(len(part) for part in parts):
        raise nothing_usable(source, NAME, log)
    every = pd.concat([part for part in parts if len(part)], ignore_index=True)
    rows, summed = boards(every)
    gpu, events = widen(rows, log)
    if len(whose := tenants(every)):
        gpu = gpu.merge(whose, on=["gpu", "time"], how="left")
    gpu, notes = settle(gpu)
    shown = cards.relabel(Snapshots(gpu=[{"gpu": label} for label in gpu["gpu"].unique()]))
    names = dict(zip(gpu["gpu"].unique(), (row["gpu"] for row in shown.gpu), strict=True))
    for table in (gpu, events):
        table["gpu"] = table["gpu"].map(names)
        table["time"] = pd.to_datetime(table["time"], unit="us", utc=True)
    gpus = pd.DataFrame(list(shown.gpus.values()))
    notes = [*note(summed), *hosts_note(cards.apart), *notes]
    return finish(source, NAME, options, log, gpu=gpu, events=events, gpus=gpus, notes=notes)


def _series(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The series of an answer, of its ``data`` alone, or of a bare list of series."""
    data = item.get("data", item)
    result = data.get("result", [data]) if isinstance(data, dict) else []
    for series in result if isinstance(result, list) else []:
        if isinstance(series, dict) and isinstance(series.get("metric"), dict):
            yield series


def _told_apart_by(found: list[dict[str, Any]]) -> tuple[str, ...]:
    """Labels by which series are of several GPUs that have no uuid, and the same host and index as far as stated."""
    cards, groups = Cards(), defaultdict[Any, list[tuple[Metric, dict[str, str], dict[str, Any]]]](list)
    for series in found:
        labels, name = _labels(series), series["metric"].get("__name__", "")
        key, metric = cards.key(labels), metric_of(name, labels)
        if metric is not None and not key[2]:
            groups[key, name].append((metric, labels, series))
    pairs = Rivals()
    for group in groups.values():
        for metric, labels, series in group if len(group) > 1 else ():
            for at, value in _points(series):
                pairs.add(str(at), metric, labels, quantity(str(value)))
        pairs.next()
    return pairs.told_apart_by()


def _labels(series: dict[str, Any]) -> dict[str, str]:
    return {str(key): str(value) for key, value in series["metric"].items()}


def _points(series: dict[str, Any]) -> list[Any]:
    """The points of a range, or the one point of an instant query."""
    values = series.get("values", [series.get("value")])
    points = values if isinstance(values, list) else []
    return [point for point in points if isinstance(point, list) and len(point) == 2]


def _readings(series: dict[str, Any], factor: float, line: int, log: ProblemLog) -> pd.DataFrame:
    """Timestamps in microseconds and values; what is no number is counted."""
    points = _points(series)
    timestamps = [quantity(str(point[0])) for point in points]
    values = [quantity(str(point[1])) if point[1] != "NaN" else np.nan for point in points]
    good = [at for at, timestamp in enumerate(timestamps) if is_epoch(timestamp) and values[at] is not None]
    log.add("point that is no number", len(points) - len(good), line=line)
    time = np.array([round(float(timestamps[at] or 0) * 1e6) for at in good], dtype="int64")
    return pd.DataFrame({"time": time, "value": np.array([values[at] for at in good], dtype="float64") * factor})


READER = Reader(NAME, recognises, read)
