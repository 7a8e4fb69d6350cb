"""The last step of every telemetry reader: tables of the schema, and what is known of each GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC
from itertools import pairwise
from typing import Any, TypeGuard

import numpy as np
import pandas as pd

from gpudiag.errors import InputError
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._shape.coded import Coded, natural
from gpudiag.readers._shape.ticks import MIDNIGHT_NOTE
from gpudiag.readers._shape.tidy import ColumnsByName, arranged, frame, tidy
from gpudiag.readers.base import ReadOptions, Telemetry
from gpudiag.schema import TABLES
from gpudiag.units import FIRST_YEAR

Known = Mapping[str, Any]
"""What is known of one GPU: a row of table ``gpus``."""


def finish(
    source: Source,
    reader: str,
    options: ReadOptions,
    log: ProblemLog,
    *,
    gpu: pd.DataFrame | ColumnsByName | None = None,
    gpus: pd.DataFrame | Sequence[Known] | None = None,
    processes: pd.DataFrame | None = None,
    host: pd.DataFrame | None = None,
    events: pd.DataFrame | None = None,
    notes: Sequence[str] = (),
) -> Telemetry:
    """Turn what a reader parsed into tables of the schema.

    Timestamps without a zone are read in ``options.timezone``, those without a date as they stand; timestamps with a
    zone are converted. Values outside
    the schema's bounds become unknown, rows are sorted, rows of one key are merged (the last known value
    of each column is kept), and every loss is counted in ``log``.

    Args:
        source: the input, for messages.
        reader: name of the reader.
        options: as given to the reader.
        log: problems met so far; more are added.
        gpu: rows of table ``gpu``. A dict of arrays is emptied on the way, to hold a long log in memory only once.
        gpus: rows of table ``gpus``; sizes and limits it lacks are taken from ``gpu``.
        processes: rows of table ``processes``.
        host: rows of table ``host``.
        events: rows of table ``events``; they are sorted, never merged.
        notes: sentences on what was assumed.

    Raises:
        InputError: no row of any table is left.
    """
    given = {"gpu": gpu, "processes": processes, "host": host, "events": events}
    undated = all(_without_date(rows["time"]) for rows in given.values() if _has_time(rows))
    zone = UTC if undated else options.timezone
    zoned = all(getattr(rows["time"].dtype, "tz", None) is not None for rows in given.values() if _has_time(rows))
    samples = arranged(TABLES["gpu"], given.pop("gpu"), zone, log)
    tables = {"gpu": frame(TABLES["gpu"], samples)}
    tables |= {name: tidy(TABLES[name], rows, zone, log) for name, rows in given.items()}
    if not any(len(table) for table in tables.values()):
        raise nothing_usable(source, reader, log)
    return Telemetry(
        **tables,
        gpus=describe(samples, gpus),
        problems=log.all,
        notes=tuple(notes),
        reader=reader,
        clock=("day" if MIDNIGHT_NOTE in notes else "count") if undated else "utc" if zoned else "local",
    )


def _without_date(time: pd.Series | np.ndarray) -> bool:
    """True for timestamps that count from midnight or an unknown start: they are held as of 1970, in no zone."""
    latest = pd.Series(time).max()
    return bool(latest.year < FIRST_YEAR) if isinstance(latest, pd.Timestamp) else False


def _has_time(rows: pd.DataFrame | ColumnsByName | None) -> TypeGuard[pd.DataFrame | ColumnsByName]:
    return rows is not None and "time" in rows and len(rows["time"]) > 0


def nothing_usable(source: Source, reader: str, log: ProblemLog) -> InputError:
    """The error for a file of a known dialect without a single good row."""
    met = "; ".join(str(problem) for problem in log.all[:3])
    why = f" ({met})" if met else ""
    return InputError(f"{source.path}: looks like {reader}, but holds no usable sample{why}.")


def describe(samples: Mapping[str, Any], gpus: pd.DataFrame | Sequence[Known] | None) -> pd.DataFrame:
    """Table ``gpus``: what is known of each GPU, with memory size and power limit from its samples, as arranged."""
    spans = _spans(samples["gpu"]) if samples else {}
    rows = gpus.to_dict("records") if isinstance(gpus, pd.DataFrame) else gpus or ()
    known = {row["gpu"]: row for row in rows}
    labels = sorted({*known, *spans}, key=natural)
    columns = {"gpu": np.array(labels, dtype=object)}
    for column in TABLES["gpus"].columns[1:]:
        values = [known.get(label, {}).get(column.name) for label in labels]
        if column.name in samples:  # sizes and limits: where nothing is told, the last of its samples
            read = samples[column.name]
            pairs = zip(labels, values, strict=True)
            values = [_last(read[spans[k]]) if _unknown(v) and k in spans else v for k, v in pairs]
        if not all(map(_unknown, values)):
            text = column.kind == "text"
            values = [(None if text else np.nan) if _unknown(value) else value for value in values]
            columns[column.name] = np.array(values, dtype=object if text else float)
    return frame(TABLES["gpus"], columns)


def _unknown(value: Any) -> bool:
    return value is None or value == "" or value != value


def _spans(gpu: Coded) -> dict[str, slice]:
    """Where the rows of each GPU stand; they stand together."""
    edges = np.searchsorted(gpu.codes, np.arange(len(gpu.labels) + 1, dtype=gpu.codes.dtype)).tolist()
    return {label: slice(*span) for label, span in zip(gpu.labels, pairwise(edges), strict=True) if span[0] < span[1]}


def _last(values: np.ndarray) -> float:
    """The last known value: a limit may have been changed on the way."""
    good = np.flatnonzero(~np.isnan(values))
    return float(values[good[-1]]) if len(good) else float("nan")
