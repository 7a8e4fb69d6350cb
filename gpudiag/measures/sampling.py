"""How well the telemetry covers the time: period, gaps, coverage, and the weight of each sample.

METHODS: a sample stands for the midpoint (Voronoi) cell around it, each half capped at 1.5 times
the median period (at least 1.5 s), so that a sampler that slows down under load does not bias a
mean and a gap is never bridged. Where it goes on at a longer period, the median of the steps around
counts. Observed time is the sum of weights; the rest is unobserved.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from gpudiag._run.one_study import ANY_GPU
from gpudiag.errors import NotMeasurable
from gpudiag.facts import Column, Fact, Row, Rows, column, fact, table_of
from gpudiag.measures._steps.intervals import step_intervals
from gpudiag.measures._time.attempts import Activity, Attempts, find_attempts, stretches_seen
from gpudiag.measures._time.job_ends import job_ends_us
from gpudiag.measures._time.job_spans import job_spans
from gpudiag.measures._time.microseconds import SECOND_US, median_of_steps, microseconds, utc
from gpudiag.measures._time.span import limits_us
from gpudiag.measures._time.trial_intervals import intervals_of
from gpudiag.measures._time.weighted import weighted_quantiles
from gpudiag.measures.base import Profile, need_gpu
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import GPU, IDLE_PCT, ColumnSpec, gpu_index, in_range, text_dtype
from gpudiag.spans import Window, overlap, union, without

CAP_PERIODS = 3
AROUND = 10
"""Steps on each side of one, with which it is compared: the recorder's period there is their median."""
MIN_CAP_S = 3.0
MANY_STEPS = 100_000
MANY_GPUS = 64
MANY_CODES = np.iinfo(np.int16).max
MOST_OUTSIDE = 0.1
"""Share of the GPUs' work that may lie outside of the logs that tell of it: start-up, a last evaluation."""
RECORD_LONGER = "Let the recorder run as long as the job; start it before the first trial and stop it after the last."


class GpuSampling(Row):
    """A GPU."""

    n_samples: Column[int] = column("samples")
    start: Column[pd.Timestamp] = column("first sample")
    end: Column[pd.Timestamp] = column("last sample")
    span_s: Column[float] = column("from the first to the last, of what attempts that had the GPU held")
    median_period_s: Column[float] = column("median step between samples")
    cap_s: Column[float] = column("longest time that one sample stands for")
    observed_s: Column[float] = column("observed part of it")
    unobserved_s: Column[float] = column("the rest of it, without samples")
    coverage_pct: Column[float] = column("observed time over the expected span")
    n_gaps: Column[int] = column("gaps", label="gaps")
    longest_gap_s: Column[float] = column("longest gap, 0 without gaps", label="longest gap")


class SamplingGap(Row):
    """A gap within one attempt: from the last timestamp before to the first after it, or to an edge of the attempt."""

    gpu: Column[str] = column("GPU")
    start: Column[pd.Timestamp] = column("last timestamp before, or start of the attempt", label="from")
    end: Column[pd.Timestamp] = column("first timestamp after, or end of the attempt")
    gap_s: Column[float] = column("length")
    trials_ended: Column[int] = column("trials that ended FAIL within it")
    share_pct: Column[float] = column(
        "share of the GPU's span that it leaves unobserved: the samples at its ends stand for part of it"
    )


class SamplingProfile(Profile, topic="sampling"):
    """What the telemetry covers. Duplicates and steps back in time are counted by the readers."""

    per_gpu: Rows = table_of(GpuSampling)
    gaps: Rows = table_of(SamplingGap)
    coverage_pct: Fact[float] = fact("observed time over the expected span, the least of all GPUs")
    median_period_s: Fact[float] = fact("median step between samples, of the GPU sampled least often")
    n_gaps: Fact[int] = fact("gaps of all GPUs")
    longest_gap_s: Fact[float] = fact("longest gap of any GPU, 0 without gaps")
    expected_s: Fact[float] = fact(
        "expected span: the trials' where there are any, else that of telemetry and logs; of attempts on other GPUs, "
        "the longest that one GPU was held",
        label="length of the run",
    )
    outside_pct: Fact[float] = fact(
        "share of telemetry outside the expected span, NaN without trials", label="observed outside the run"
    )


def measure_sampling(run: Run) -> SamplingProfile:
    """Period, coverage and gaps per GPU. Needs at least two samples of one GPU."""
    need_gpu(run, "time")
    samples = cells(run)
    window = expected_window(run, samples)
    coverage = coverage_pct(run, samples, window)
    columns = [
        microseconds(samples["time"]),
        *(samples[name].to_numpy() for name in ("start_us", "end_us", "weight_s")),
    ]
    rows, gaps = {}, []
    for gpu, own in slices(samples):
        time, start, end, weight_s = (column[own] for column in columns)
        held = held_windows(run, gpu, [(int(start[0]), int(end[-1]))])
        rows[gpu], found = _one_gpu(time, start, end, weight_s, held)
        rows[gpu]["coverage_pct"] = coverage[gpu]
        gaps.append(found)
    per_gpu = pd.DataFrame.from_dict(rows, orient="index").rename_axis("gpu")
    if not per_gpu["median_period_s"].notna().any():
        raise NotMeasurable("There is only one sample of each GPU.", RECORD_LONGER)
    for name in ("start", "end"):
        per_gpu[name] = utc(per_gpu[name].to_numpy()).array
    all_gaps = _all_gaps(list(rows), gaps)
    all_gaps.insert(4, "trials_ended", _failed_within(all_gaps, run))
    return SamplingProfile(
        per_gpu=per_gpu,
        gaps=all_gaps,
        coverage_pct=least_pct(coverage.values()),
        median_period_s=float(per_gpu["median_period_s"].median()),
        n_gaps=len(all_gaps),
        longest_gap_s=float(per_gpu["longest_gap_s"].max()),
        expected_s=max(length_us(held_windows(run, gpu, [window])) for gpu in rows) / SECOND_US,
        outside_pct=_outside_pct(samples, window) if trials_window(run) else float("nan"),
    )


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
    left = np.minimum(step, _caps_us(step, period), out=step)
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
    caps = _caps_us(step, int(period))
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
        edges = pairwise(_edges_of_codes(code))
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
    for low, high in pairwise(_edges_of_codes(code)):
        left, right = cell_borders(time[low:high])
        start[low:high], end[low:high], weight_s[low:high] = left, right, (right - left) / SECOND_US
    return start, end, weight_s


def by_gpu(samples: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """The rows of each GPU of :func:`cells`, in its order."""
    return [(gpu, samples.iloc[own]) for gpu, own in slices(samples)]


def slices(samples: pd.DataFrame) -> list[tuple[str, slice]]:
    """Where the rows of each GPU of :func:`cells` lie, for columns as arrays: of hundreds of GPUs far quicker."""
    edges = _edges(samples["gpu"])
    labels = samples["gpu"].iloc[edges[:-1]].tolist()
    return [(str(gpu), slice(low, high)) for gpu, (low, high) in zip(labels, pairwise(edges), strict=True)]


@memoized
def rows_by_gpu(run: Run) -> dict[str, slice | np.ndarray]:
    """Where the rows of each GPU of the telemetry stand, also those without a time, in order; a slice where they stand
    together.
    """
    code = _base_of(run).code
    edges = _edges_of_codes(code)
    runs: dict[int, slice | np.ndarray] = {}
    for low, high in pairwise(edges):
        runs[int(code[low])] = slice(low, high)
    if len(runs) < len(edges) - 1:
        runs = {int(one): np.flatnonzero(code == one) for one in np.unique(code)}
    names = sampled_gpus(run)
    return {names[one]: runs[one] for one in sorted(runs) if one >= 0}


def of_its_gpu(samples: pd.DataFrame, per_gpu: pd.Series) -> np.ndarray:
    """For each row of :func:`cells` the number that its GPU has in ``per_gpu``; NaN where it has none."""
    known = per_gpu.astype(float).to_dict()
    parts = [np.full(own.stop - own.start, known.get(gpu, np.nan)) for gpu, own in slices(samples)]
    return np.concatenate(parts) if parts else np.empty(0)


def _edges_of_codes(code: np.ndarray) -> list[int]:
    """Where each stretch of equal codes begins, and the end; nothing for no code."""
    return [0, *(np.flatnonzero(code[1:] != code[:-1]) + 1).tolist(), len(code)] if len(code) else []


def _edges(column: pd.Series) -> list[int]:
    """Where each run of equal labels begins, and the end. Few are looked for one by one, many by a look at each row."""
    labels, edges = column.array, [0] if len(column) else []
    while edges and edges[-1] < len(labels):
        if len(edges) > MANY_GPUS:
            codes = pd.factorize(column)[0]
            return [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)]
        edges.append(_end(labels, edges[-1]))
    return edges


def _end(labels: Any, low: int) -> int:
    """Where the run of equal labels that begins at ``low`` ends; equal labels stand together."""
    label = labels[low]
    if labels[-1] == label:  # the last run, mostly the only one
        return len(labels)
    return bisect_left(range(len(labels)), True, lo=low, key=lambda at: bool(labels[at] != label))


@memoized
def sampled_gpus(run: Run) -> list[str]:
    """The GPUs of the telemetry in their order."""
    return _base_of(run).gpus


def gpu_order(names: Iterable[object]) -> list[str]:
    """GPU names in the order a person expects: 0, 1, 2, 10, then text."""
    return sorted(map(str, names), key=lambda name: ((index := gpu_index(name)) is None, index or 0, name))


@memoized
def trials_window(run: Run) -> tuple[int, int] | None:
    """First start and last known timestamp of the trials, in microseconds; None where the clocks cannot be joined."""
    if not run.info.clock.joined or run.trials.empty:
        return None
    intervals = intervals_of(run)
    start = intervals["start"].dropna()
    if start.empty:
        return None
    timestamps = np.concatenate([microseconds(start), microseconds(intervals["end"].dropna())])
    low, high = limits_us(run)
    low, high = max(int(microseconds(start).min()), low), min(int(timestamps.max()), high)
    return (low, high) if high > low else None


def expected_window(run: Run, samples: pd.DataFrame) -> tuple[int, int]:
    """The span, in microseconds, that telemetry should cover: the trials', else that of all GPUs and of the logs of
    their trainings together.
    """
    return trials_window(run) or with_logs(run, (int(samples["start_us"].min()), int(samples["end_us"].max())))


def with_logs(run: Run, seen: tuple[int, int]) -> tuple[int, int]:
    """The time of the telemetry together with that of the trainings' logs on its clock, in microseconds."""
    logged = logged_window(run)
    return (min(seen[0], logged[0]), max(seen[1], logged[1])) if logged else seen


@memoized
def logged_window(run: Run) -> tuple[int, int] | None:
    """First and last moment of the steps of the trainings whose logs meet the telemetry, in microseconds; None where
    the clocks are not shown to be one.

    A log of another time zone may overlap by chance: then the GPUs work where no log says so, or not where one does.
    """
    if "util_pct" not in run.gpu or run.steps.empty or len(samples := cells(run, "util_pct")) < 2:
        return None
    limits = limits_us(run)
    low, high = max(limits[0], int(samples["start_us"].min())), min(limits[1], int(samples["end_us"].max()))
    spans = [(begin, end) for begin, end in _logged_spans(run) if begin < high and end > low]
    if not spans:
        return None
    start, end = (np.array(edge) for edge in zip(*sorted(spans), strict=True))
    at = np.searchsorted(start, time_us := microseconds(samples["time"]), "right") - 1
    logged = (at >= 0) & (time_us <= np.maximum.accumulate(end)[at])
    used = samples["util_pct"].to_numpy() * samples["weight_s"].to_numpy() / 100
    worked, there = float(used[logged].sum()), float(samples["weight_s"].to_numpy()[logged].sum())
    if not 100 * worked >= IDLE_PCT * there or used[~logged].sum() > MOST_OUTSIDE * used.sum():
        return None
    return max(int(start.min()), limits[0]), min(int(end.max()), limits[1])


def _logged_spans(run: Run) -> list[tuple[int, int]]:
    """First and last timestamp of each training's steps, in microseconds."""
    intervals = step_intervals(run)
    dated = intervals[intervals["end"].notna()]
    begin = microseconds(dated["start"].fillna(dated["end"]))
    moments = dated[["training", "rank", "trial"]].assign(begin=begin, end=microseconds(dated["end"]))
    by = moments.groupby(["training", "rank", "trial"], dropna=False)
    return list(zip(by["begin"].min().tolist(), by["end"].max().tolist(), strict=True))


def coverage_pct(run: Run, samples: pd.DataFrame, window: Window | None = None) -> dict[str, float]:
    """Share of the window that each GPU's cells cover, of what of it lies in attempts that had the GPU; NaN for a
    window without length. By default the window is the one expected.
    """
    start, end = samples["start_us"].to_numpy(), samples["end_us"].to_numpy()
    whole = window or expected_window(run, samples)
    return {gpu: covered_pct(run, gpu, start[own], end[own], whole) for gpu, own in slices(samples)}


def covered_pct(run: Run, gpu: str, start_us: np.ndarray, end_us: np.ndarray, window: Window) -> float:
    """Share of the window that cells of one GPU cover; see :func:`coverage_pct`."""
    windows = held_windows(run, gpu, [window])
    seen = sum(seen_us(start_us, end_us, held) for held in windows)
    return 100 * seen / length_us(windows) if length_us(windows) > 0 else float("nan")


def least_pct(shares: Iterable[float]) -> float:
    """The least of what is known; NaN of a GPU that nobody had, where nothing is missing."""
    return min((share for share in shares if not math.isnan(share)), default=math.nan)


def held_windows(run: Run, gpu: str, windows: Sequence[Window]) -> list[Window]:
    """What of the windows lies in attempts of the run that had the GPU, and where a scheduler tells of its jobs, in one
    that may have had it; without what was of a study that was not chosen.
    """
    held = attempts(run).held(gpu, windows)
    jobs = job_spans(run).get(gpu)
    held = held if jobs is None else overlap(held, jobs)
    return without(held, of_other_studies(run, gpu))


@memoized
def of_other_studies(run: Run, gpu: str) -> list[Window]:
    """When trials of studies that were not chosen ran on the GPU, or on one that nothing names."""
    known = run.info.others_at_least_us
    return union([*known.get(ANY_GPU, ()), *known.get(gpu, ())])


def length_us(windows: Iterable[Window]) -> int:
    """Microseconds of all windows."""
    return sum(high - low for low, high in windows)


@memoized
def attempts(run: Run) -> Attempts:
    """The attempts of a run, by its telemetry, the logs of its trainings and its scheduler; one in most runs."""
    if run.gpu.empty:
        return Attempts()
    samples = cells(run)
    start, end = samples["start_us"].to_numpy(), samples["end_us"].to_numpy()
    recorded = {gpu: stretches_seen(start[own], end[own]) for gpu, own in slices(samples)}
    return find_attempts(recorded, _activity(run))


def _activity(run: Run) -> Activity:
    """Steps and trials, and ends of jobs, as far as their clock is known to be that of the telemetry."""
    none = np.zeros(0, np.int64)
    steps = microseconds(run.steps["time"].dropna()) if logged_window(run) else none
    joined = run.info.clock.joined and len(run.trials) > 0
    start = end = none
    if joined:
        trials = intervals_of(run)
        start, end = (microseconds(trials.loc[trials["known"], name]) for name in ("start", "end"))
    ends = job_ends_us(run) if len(steps) or joined else none
    return Activity(np.append(steps, start), np.append(steps, end), ends)


def seen_us(start_us: np.ndarray, end_us: np.ndarray, window: tuple[int, int]) -> int:
    """Time of the cells of one GPU within a window."""
    low, high = window
    first, stop = int(np.searchsorted(end_us, low, "right")), int(np.searchsorted(start_us, high))
    if stop <= first:
        return 0
    whole = int((end_us[first:stop] - start_us[first:stop]).sum())
    return whole - max(low - int(start_us[first]), 0) - max(int(end_us[stop - 1]) - high, 0)


def _caps_us(step: np.ndarray, period_us: int) -> int | np.ndarray:
    """How long each step may be that is no gap."""
    cap = max(CAP_PERIODS * period_us, int(MIN_CAP_S * SECOND_US))
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
        caps[long[some]] = np.maximum(cap, CAP_PERIODS * middle)
    return caps


def _sorted(code: np.ndarray, time: np.ndarray) -> bool:
    same = code[1:] == code[:-1]
    return bool(np.all((code[1:] > code[:-1]) | (same & (time[1:] >= time[:-1]))))


Gaps = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Of one GPU: start and end (microseconds), and the share of its span."""


def _one_gpu(
    time: np.ndarray, start_us: np.ndarray, end_us: np.ndarray, weight_s: np.ndarray, held: Sequence[Window]
) -> tuple[dict[str, object], Gaps]:
    """Figures of one GPU without its coverage, start and end in microseconds; and its gaps.

    ``held``: what of its record lies in attempts that had it. As in the ledger, the time between them is no gap.
    """
    step = np.diff(time)
    period = int(median_of_steps(step)) if len(step) else 0
    whole = list(held) == [(int(start_us[0]), int(end_us[-1]))]
    span_us = length_us(held)
    observed_s = (
        float(weight_s.sum()) if whole else sum(seen_us(start_us, end_us, window) for window in held) / SECOND_US
    )
    caps = _caps_us(step, period)
    at = np.flatnonzero(step > caps)
    gaps = np.stack([time[at], time[at + 1], end_us[at], start_us[at + 1]], axis=1)
    if not whole:
        gaps = _within(gaps, np.broadcast_to(caps, step.shape)[at], held)
    gap_s = (gaps[:, 1] - gaps[:, 0]) / SECOND_US
    figures: dict[str, object] = {
        "n_samples": len(time),
        "start": time[0],
        "end": time[-1],
        "span_s": span_us / SECOND_US,
        "median_period_s": period / SECOND_US if len(step) else float("nan"),
        "cap_s": float(np.max(caps)) / SECOND_US if len(step) else float("nan"),
        "observed_s": observed_s,
        "unobserved_s": span_us / SECOND_US - observed_s,
        "coverage_pct": float("nan"),
        "n_gaps": len(gaps),
        "longest_gap_s": float(gap_s.max()) if len(gaps) else 0.0,
    }
    return figures, (gaps[:, 0], gaps[:, 1], 100 * (gaps[:, 3] - gaps[:, 2]) / span_us if span_us else gap_s)


def _within(gaps: np.ndarray, caps_us: np.ndarray, held: Sequence[Window]) -> np.ndarray:
    """What of the gaps (start, end, start and end of what no cell covers) lies within held time and is a gap there."""
    parts = overlap([(low, high) for low, high, *_ in gaps.tolist()], held)
    start, end = np.array(parts, np.int64).reshape(-1, 2).T
    of = np.searchsorted(gaps[:, 0], start, "right") - 1
    within = np.stack([start, end, np.maximum(start, gaps[of, 2]), np.minimum(end, gaps[of, 3])], axis=1)
    return within[end - start > caps_us[of]]


def _all_gaps(gpus: list[str], gaps: list[Gaps]) -> pd.DataFrame:
    """gpu, start, end, gap_s, share_pct."""
    start, end, share_pct = (np.concatenate([found[i] for found in gaps]) for i in range(3))
    gpu = np.repeat(np.array(gpus, dtype=object), [len(found[0]) for found in gaps])
    times = {"start": utc(start), "end": utc(end), "gap_s": (end - start) / SECOND_US}
    return pd.DataFrame({"gpu": pd.Series(gpu, dtype=text_dtype()), **times, "share_pct": share_pct})


def _failed_within(gaps: pd.DataFrame, run: Run) -> np.ndarray:
    """Number of FAIL ends in each gap."""
    if not run.info.clock.joined or run.trials.empty or gaps.empty:
        return np.zeros(len(gaps), np.int64)
    intervals = intervals_of(run)
    ends = np.sort(microseconds(intervals.loc[intervals["state"] == "FAIL", "end"].dropna()))
    low = np.searchsorted(ends, microseconds(gaps["start"]), "right")
    return np.searchsorted(ends, microseconds(gaps["end"]), "left") - low


def _outside_pct(samples: pd.DataFrame, window: tuple[int, int]) -> float:
    start, end = samples["start_us"].to_numpy(), samples["end_us"].to_numpy()
    observed_s = float(samples["weight_s"].sum())
    inside = sum(seen_us(start[own], end[own], window) for _, own in slices(samples))
    return float(100 * (1 - inside / SECOND_US / observed_s)) if observed_s else float("nan")
