"""The time that each sample stands for.

METHODS: a sample stands for the midpoint (Voronoi) cell around it, each half capped at 1.5 times
the median period (at least 1.5 s), so that a sampler that slows down under load does not bias a
mean and a gap is never bridged. Where it goes on at a longer period, the median of the steps around
counts. A quarter of an hour on each side is the most, or 0.75 periods of a log that keeps to a longer one:
what lies hours from any sample was not observed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd

from gpudiag.measures._gpu.gpu_rows import edges_of_codes, gpu_order
from gpudiag.measures._time.microseconds import SECOND_US, median_of_steps, microseconds
from gpudiag.measures._time.weighted import weighted_quantiles
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import GPU, ColumnSpec, in_range

CAP_PERIODS = 3
AROUND = 10
"""Steps on each side of one, with which it is compared: the recorder's period there is their median."""
MIN_CAP_S = 3.0
LONG_CAP_S = 1800.0
"""Samples further apart may have a whole job between them: three times the longest wait within one (a default without a
published source)."""
LONG_CAP_PERIODS = 1.5
"""Of a log whose usual step is longer still: no sample that it lacks is bridged, and no late one makes a gap (a default
without a published source)."""
MANY_STEPS = 100_000
MANY_CODES = np.iinfo(np.int16).max


def cell_borders(time_us: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Left and right border, in microseconds, of the cell of each timestamp of one GPU.

    The timestamps must increase strictly. Neighbouring cells share a border unless a gap lies between
    them, so the cells tile the observed time exactly. The outer halves of the first and the last
    cell are half a median period. A single timestamp has no cell: both borders are the timestamp itself.
    """
    if len(time_us) < 2:
        return time_us.copy(), time_us.copy()
    step = np.diff(time_us)
    period = int(median_of_steps(step))
    left = np.minimum(step, caps_us(step, period), out=step)
    right = left // 2
    left -= right
    start, end = time_us.copy(), time_us.copy()
    start[1:] -= left
    end[:-1] += right
    start[0] -= period // 2
    end[-1] += period // 2
    return start, end


def longest_period_s(times_us: Iterable[np.ndarray]) -> float:
    """The usual step between the increasing times (microseconds) of each GPU, the longest of them; NaN unknown."""
    periods = [_usual_step_us(np.diff(timestamps)) / SECOND_US for timestamps in times_us if len(timestamps) > 1]
    return max(periods, default=float("nan"))


def _usual_step_us(step: np.ndarray) -> float:
    """The median; where the recorder's period changes, that of the time: what a sampler saw so seldom was not seen."""
    period = median_of_steps(step)
    caps = caps_us(step, int(period))
    if isinstance(caps, int):
        return period
    length = np.minimum(step, caps)
    return float(weighted_quantiles(length, length, (0.5,))[0])


def sample_weights(time: pd.Series | np.ndarray) -> np.ndarray:
    """Seconds that each sample of one GPU stands for.

    ``time`` holds strictly increasing UTC timestamps, or whole microseconds. The borders of the cells
    are in :func:`cell_borders`; for all GPUs of a table at once use :func:`cells_of`.
    """
    time_us = microseconds(time) if isinstance(time, pd.Series) else np.asarray(time, np.int64)
    left, right = cell_borders(time_us)
    return (right - left) / SECOND_US


def cells(run: Run, *columns: str) -> pd.DataFrame:
    """:func:`cells_of` the telemetry of a run."""
    return _cells(run.gpu, _base_of(run), columns)


def cells_of(gpu: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """The samples at which the first of ``columns`` is known, each with the stretch of time it stands for.

    Columns: gpu, time, start_us, end_us (cell borders, microseconds since 1970), weight_s, then
    ``columns``. Sorted by GPU (0, 1, 2, 10) and time; of two samples of a GPU at one time the last is
    kept. Values outside the schema's physical range count as unknown.
    """
    return _cells(gpu, _base(gpu), columns)


def cells_where(run: Run, good: np.ndarray, *columns: str) -> pd.DataFrame:
    """:func:`cells` of those rows of the telemetry that are ``good``, with no copy where all are."""
    if good.all():
        return cells(run, *columns)
    return cells_of(run.gpu.loc[good, ["gpu", "time", *columns]], *columns)


def _cells(gpu: pd.DataFrame, base: _KnownRows, columns: tuple[str, ...]) -> pd.DataFrame:
    whole = not columns or _all_in_range(gpu[columns[0]], GPU[columns[0]])
    if base.cells is not None and whole:
        cells_of = dict(zip(("start_us", "end_us", "weight_s"), base.cells, strict=True))
        data = {"gpu": gpu["gpu"].array, "time": gpu["time"].array, **cells_of, **{c: gpu[c].array for c in columns}}
        return pd.DataFrame(data, copy=False)
    known = base.known
    if not whole:
        first = gpu[columns[0]]
        known = known & (first.notna() & in_range(first, GPU[columns[0]])).to_numpy()
    at = np.flatnonzero(known)
    code, time = base.code[at], base.time_us[at]
    if base.cells is None:
        if not _sorted(code, time):
            order = np.lexsort((time, code))
            at, code, time = at[order], code[order], time[order]
        last = np.append((code[1:] != code[:-1]) | (time[1:] != time[:-1]), True)[: len(time)]
        if not last.all():
            at, code, time = at[last], code[last], time[last]
    names = gpu["gpu"].array
    if base.cells is None or not len(at):
        names = names.take(at)
    else:  # the rows of a GPU stand together: as many of its first, without a copy
        edges = pairwise(edges_of_codes(code))
        names = type(names)._concat_same_type([names[at[low] : at[low] + high - low] for low, high in edges])
    start_us, end_us, weight_s = _cells_of(code, time)
    data = {"gpu": names, "time": gpu["time"].array.take(at)}
    data |= {"start_us": start_us, "end_us": end_us, "weight_s": weight_s}
    return pd.DataFrame(data | {name: gpu[name].array.take(at) for name in columns}, copy=False)


def _all_in_range(values: pd.Series, column: ColumnSpec) -> bool:
    """True if every value is known and within the column's range, told without a mask of all rows."""
    if values.dtype != float or not len(values):
        return False
    numbers = values.to_numpy()
    low = -math.inf if column.low is None else column.low
    high = math.inf if column.high is None else column.high
    return bool(numbers.min() >= low and numbers.max() <= high)  # both are NaN where one is


@dataclass(frozen=True, eq=False)
class _KnownRows:
    """What all columns of a telemetry share: which rows have a GPU and a time, the rank of the GPU, the time.

    ``gpus``: their names in order of rank. ``cells``: left and right border and weight of each row, where all rows are
    known, sorted and without duplicates.
    """

    gpus: list[str]
    known: np.ndarray
    code: np.ndarray
    time_us: np.ndarray
    cells: tuple[np.ndarray, np.ndarray, np.ndarray] | None


@memoized
def _base_of(run: Run) -> _KnownRows:
    return _base(run.gpu)


def _base(gpu: pd.DataFrame) -> _KnownRows:
    known = (gpu["time"].notna() & gpu["gpu"].notna()).to_numpy()
    code, names = pd.factorize(gpu["gpu"])
    gpus = gpu_order(names)
    rank = {name: place for place, name in enumerate(gpus)}
    table = np.array([*(rank[str(name)] for name in names), -1], np.int16 if len(names) < MANY_CODES else np.int32)
    code, time = table[code], gpu["time"].to_numpy("datetime64[us]").view(np.int64)
    increases = (code[1:] > code[:-1]) | ((code[1:] == code[:-1]) & (time[1:] > time[:-1]))
    return _KnownRows(gpus, known, code, time, _cells_of(code, time) if known.all() and increases.all() else None)


def _cells_of(code: np.ndarray, time: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Left and right border and weight of samples sorted by GPU and time."""
    start, end, weight_s = np.empty_like(time), np.empty_like(time), np.empty(len(time))
    for low, high in pairwise(edges_of_codes(code)):
        left, right = cell_borders(time[low:high])
        start[low:high], end[low:high], weight_s[low:high] = left, right, (right - left) / SECOND_US
    return start, end, weight_s


@memoized
def rows_by_gpu(run: Run) -> dict[str, slice | np.ndarray]:
    """Where the rows of each GPU of the telemetry stand, also those without a time, in order; a slice where they stand
    together.
    """
    code = _base_of(run).code
    edges = edges_of_codes(code)
    runs: dict[int, slice | np.ndarray] = {}
    for low, high in pairwise(edges):
        runs[int(code[low])] = slice(low, high)
    if len(runs) < len(edges) - 1:
        runs = {int(one): np.flatnonzero(code == one) for one in np.unique(code)}
    names = sampled_gpus(run)
    return {names[one]: runs[one] for one in sorted(runs) if one >= 0}


@memoized
def sampled_gpus(run: Run) -> list[str]:
    """The GPUs of the telemetry in their order."""
    return _base_of(run).gpus


def seen_us(start_us: np.ndarray, end_us: np.ndarray, window: tuple[int, int]) -> int:
    """Time of the cells of one GPU within a window."""
    low, high = window
    first, stop = int(np.searchsorted(end_us, low, "right")), int(np.searchsorted(start_us, high))
    if stop <= first:
        return 0
    whole = int((end_us[first:stop] - start_us[first:stop]).sum())
    return whole - max(low - int(start_us[first]), 0) - max(int(end_us[stop - 1]) - high, 0)


def caps_us(step: np.ndarray, period_us: int) -> int | np.ndarray:
    """How long each step may be that is no gap."""
    long_us = max(int(LONG_CAP_S * SECOND_US), int(LONG_CAP_PERIODS * period_us))
    cap = max(min(CAP_PERIODS * period_us, long_us), int(MIN_CAP_S * SECOND_US))
    over = step > cap
    long = np.flatnonzero(over)
    n = 2 * AROUND + 1
    if len(long) <= AROUND or len(step) < n:
        return cap  # so few are nowhere most of the steps around
    first = np.clip(long - AROUND, 0, len(step) - n)
    long_until = np.concatenate(([0], np.cumsum(over)))
    mostly = long_until[first + n] - long_until[first] > AROUND
    if not mostly.any():
        return cap
    caps, windows = np.full(len(step), cap), np.lib.stride_tricks.sliding_window_view(step, n)
    for some in np.array_split(np.flatnonzero(mostly), len(long) // MANY_STEPS + 1):  # each takes 21 times its memory
        middle = np.partition(windows[first[some]], AROUND)[:, AROUND]
        caps[long[some]] = np.maximum(cap, np.minimum(CAP_PERIODS * middle, long_us))
    return caps


def _sorted(code: np.ndarray, time: np.ndarray) -> bool:
    same = code[1:] == code[:-1]
    return bool(np.all((code[1:] > code[:-1]) | (same & (time[1:] >= time[:-1]))))
