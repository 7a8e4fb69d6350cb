"""Timelines of GPUs as tidy tables: seconds by cell, in bins of time, and as spans."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from gpudiag.measures._time.microseconds import SECOND_US, utc
from gpudiag.measures._time.timeline import CELLS, UNOBSERVED, Timeline
from gpudiag.schema import text_dtype

MAX_SPANS = 20_000


def cell_type() -> pd.CategoricalDtype:
    """Cells in the order of CELLS."""
    return pd.CategoricalDtype(list(CELLS), ordered=True)


def cell_seconds(timelines: dict[str, Timeline]) -> pd.DataFrame:
    """gpu, cell, gpu_s, share_pct of the GPU's time: all eight cells of each GPU."""
    seconds = [timeline.seconds() for timeline in timelines.values()]
    shares = [100 * each / total if (total := each.sum()) else np.full(len(CELLS), np.nan) for each in seconds]
    every = [np.arange(len(CELLS))] * len(seconds)
    return _tidy(timelines, {"cell": every, "gpu_s": seconds, "share_pct": shares})


def compute_seconds(timelines: dict[str, Timeline]) -> pd.DataFrame:
    """gpu, cell, compute_gpu_s: seconds x utilization, the time a GPU busy throughout would need for the same."""
    active = [each.seconds(np.nan_to_num(each.util_pct) / 100) for each in timelines.values()]
    out = _tidy(timelines, {"cell": [np.arange(len(CELLS))] * len(active), "compute_gpu_s": active})
    return out[out["cell"] != "unobserved"].reset_index(drop=True)


def binned(timelines: dict[str, Timeline], cuts_us: np.ndarray) -> pd.DataFrame:
    """gpu, start, cell, gpu_s in bins that begin at ``cuts_us``; cells without time in a bin are left out.

    The timelines must have been cut at these borders.
    """
    starts, cells, lengths = [], [], []
    for timeline in timelines.values():
        place = np.searchsorted(cuts_us, timeline.start_us, "right") - 1
        code = place * len(CELLS) + timeline.cell
        seconds = np.bincount(code, (timeline.end_us - timeline.start_us).astype(float)) / SECOND_US
        some = np.flatnonzero(seconds)
        starts.append(cuts_us[some // len(CELLS)])
        cells.append(some % len(CELLS))
        lengths.append(seconds[some])
    return _tidy(timelines, {"start": starts, "cell": cells, "gpu_s": lengths})


def spans(timelines: dict[str, Timeline]) -> pd.DataFrame:
    """gpu, start, end, cell: unbroken stretches of one cell, in order of time.

    A GPU with more than MAX_SPANS of them is shown on an even raster of that many steps instead, each
    step with the cell that held most of it.
    """
    parts = []
    for timeline in timelines.values():
        start, end, cell = _merged(timeline.start_us, timeline.end_us, timeline.cell)
        if len(start) > MAX_SPANS:
            start, end, cell = coarser(start, end, cell, MAX_SPANS)
        parts.append((start, end, cell))
    starts, ends, cells = ([part[i] for part in parts] for i in range(3))
    return _tidy(timelines, {"start": starts, "end": ends, "cell": cells})


def observed_s(timeline: Timeline) -> float:
    """Seconds with telemetry."""
    seconds = timeline.seconds()
    return float(seconds.sum() - seconds[UNOBSERVED])


def _merged(start: np.ndarray, end: np.ndarray, cell: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if not len(start):
        return start, end, cell
    fresh = np.concatenate(([True], (cell[1:] != cell[:-1]) | (start[1:] != end[:-1])))
    first = np.flatnonzero(fresh)
    return start[first], end[np.append(first[1:], len(start)) - 1], cell[first]


def coarser(
    start: np.ndarray, end: np.ndarray, cell: np.ndarray, steps: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Spans as even steps over the same time, each with the cell that holds most of it; equal neighbours are one."""
    edges = np.linspace(start[0], end[-1], steps + 1).astype(np.int64)
    held = np.empty((len(CELLS), steps))
    for code in range(len(CELLS)):
        mine = np.flatnonzero(cell == code)
        begins = start[mine]
        length = end[mine] - begins
        total = np.concatenate(([0], np.cumsum(length)))
        at = np.searchsorted(begins, edges, "right") - 1
        inside = np.minimum(edges - np.append(begins, 0)[at], np.append(length, 0)[at])
        held[code] = np.diff(np.where(at >= 0, total[np.maximum(at, 0)] + inside, 0))
    some = held.sum(axis=0) > 0
    return _merged(edges[:-1][some], edges[1:][some], held.argmax(axis=0)[some].astype(cell.dtype))


def _tidy(gpus: Iterable[str], columns: dict[str, list[np.ndarray]]) -> pd.DataFrame:
    """One table of the columns of each GPU: times are in microseconds, cells are numbered."""
    if not columns["cell"]:
        return pd.DataFrame({name: [] for name in ("gpu", *columns)})
    gpu = np.repeat(np.array(list(gpus), dtype=object), [len(part) for part in columns["cell"]])
    out = pd.DataFrame({"gpu": pd.Series(gpu, dtype=text_dtype())})
    for name, parts in columns.items():
        values = np.concatenate(parts)
        if name == "cell":
            out[name] = pd.Categorical.from_codes(values, dtype=cell_type())
        else:
            out[name] = utc(values) if name in ("start", "end") else values
    return out
