"""How many trials ran at once, on which workers, and what lay between them."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from gpudiag.errors import NotMeasurable
from gpudiag.facts import Column, Fact, Row, Rows, column, fact, table_of
from gpudiag.measures._time.concurrency import count_at
from gpudiag.measures._time.microseconds import SECOND_US, distinct, microseconds, utc
from gpudiag.measures._time.pauses import holds_pause, pauses
from gpudiag.measures._time.span import limits_us
from gpudiag.measures._time.trial_intervals import HANDOVER_US, intervals_of, need_own_times
from gpudiag.measures._time.weighted import weighted_sum
from gpudiag.measures._trials.abandoned import OpenTrial, find_open_trials
from gpudiag.measures._trials.effective_bounds import effective_bounds
from gpudiag.measures._trials.placed import placed_trials, worker_counts
from gpudiag.measures.base import Profile, TrialRow, need_trials
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import ADDED

SERIAL_BELOW = 1.2
"""Effective parallelism at or below which several workers did one worker's work (METHODS 4)."""
RECORD_TIMESTAMPS = "Record start and end of each trial, as an Optuna storage does by itself."
STARTS_INFERRED = (
    "Every trial starts exactly where the one before it ended, as starts do that a log of ends alone implies. So the "
    "time between trials is not known."
)


class Concurrency(Row):
    """A step of a step function that holds to the next row."""

    time: Column[pd.Timestamp] = column("instant")
    n_closed: Column[int] = column("running trials with a known end")
    n_all: Column[int] = column("with open ones until their inferred end")


class ConcurrencyLevel(Row):
    """A number of trials at once, open ones until their inferred end."""

    level: Column[int] = column("trials at once")
    time_s: Column[float] = column("time at that level")
    share_pct: Column[float] = column("share of the time with at least one trial")


class PlacedTrial(TrialRow):
    """A trial on the worker that it ran in."""

    state: Column[str] = column("state")
    start: Column[pd.Timestamp] = column("start")
    end: Column[pd.Timestamp] = column("end, inferred for open ones")
    worker: Column[int] = column("worker from 0, by name where all have one, else by who was free")
    open: Column[bool] = column("its end is inferred")


class WorkerCount(Row):
    """A stretch with so many workers; each is there from its first trial's start to its last one's end."""

    from_s: Column[float] = column("since the first start")
    n_workers: Column[int] = column("workers")


class TrialGap(Row):
    """A gap between two trials of a worker and a study; none after an open trial, and none that holds an hour without
    any trial.
    """

    worker: Column[int] = column("worker")
    start: Column[pd.Timestamp] = column("end of the trial before")
    end: Column[pd.Timestamp] = column("start of the trial after")
    gap_s: Column[float] = column("length")
    before_study: Column[str] = column("study of the trial before")
    before_trial: Column[int] = column("trial before")
    after_study: Column[str] = column("study of the trial after")
    after_trial: Column[int] = column("trial after")


class ParallelismProfile(Profile, topic="parallelism"):
    """How many trials ran at once. What compares with ``configured`` is NaN (``serialised`` False) where it is unknown,
    or where not all trials are there.
    Numbers at once are integrals over time with at least one trial; open trials count to where they most likely ended.
    """

    concurrency: Rows = table_of(Concurrency)
    levels: Rows = table_of(ConcurrencyLevel)
    placed: Rows = table_of(PlacedTrial)
    workers: Rows = table_of(WorkerCount)
    gaps: Rows = table_of(TrialGap)
    open_trials: Rows = table_of(OpenTrial)
    configured: Fact[float] = fact("trials at once that were asked for", label="configured")
    effective_closed: Fact[float] = fact("trials at once without open ones")
    effective: Fact[float] = fact("trials at once", label="at once, on average")
    effective_low: Fact[float] = fact("at least, wherever the open trials ended", label="at once, at least")
    effective_high: Fact[float] = fact("at most, wherever the open trials ended", label="at once, at most")
    effective_begun: Fact[float] = fact("until the last trial began: later there was none left to begin")
    effective_window: Fact[float] = fact("over the whole window, times without a trial too")
    peak_closed: Fact[int] = fact("most at once, ended trials only", label="at the peak, ended trials only")
    peak: Fact[int] = fact("most at once", label="at the peak")
    efficiency_pct: Fact[float] = fact("trials at once, of those configured")
    at_configured_pct: Fact[float] = fact("share of the time with as many as configured, or more")
    above_configured_s: Fact[float] = fact("time with more than configured", label="time above")
    above_configured_trials: Fact[float] = fact("trials beyond the configured number at the peak")
    n_workers: Fact[int] = fact("workers that the trials fill")
    median_gap_s: Fact[float] = fact("median gap on a worker", label="median gap")
    mean_gap_s: Fact[float] = fact("mean gap on a worker", label="mean gap")
    gap_worker_h: Fact[float] = fact("time in gaps", label="in gaps")
    handover_pct: Fact[float] = fact(
        "share of starts after the first end that lie within 2 s after another trial's end",
        label="hand-overs without a gap",
    )
    serialised: Fact[bool] = fact("trials ran one after another though more were configured")
    selected: Fact[bool] = fact("others that ran meanwhile were selected away: workers and gaps are not known")
    window_s: Fact[float] = fact("first start to last end")
    busy_s: Fact[float] = fact("time with at least one trial", label="busy for")
    n_timed: Fact[int] = fact("trials with start and end")
    n_open: Fact[int] = fact("trials without an end")
    coverage_pct: Fact[float] = fact("share of the trials that began whose times are known, or inferred")


@memoized
def measure_parallelism(run: Run) -> ParallelismProfile:
    """Concurrency over the run. Needs trials with start times, and at least one known end."""
    need_trials(run)
    need_own_times(run)
    intervals = intervals_of(run)
    closed = intervals[intervals["known"]]
    if closed.empty:
        raise NotMeasurable(
            "No trial has both a start and an end (or an end and a duration); without them nobody can tell "
            "what ran at once.",
            RECORD_TIMESTAMPS,
        )
    opens = find_open_trials(run)
    placed = placed_trials(run)
    selected = "workers" in run.info.incomplete
    gaps = _gaps(placed)[: 0 if selected else None]
    limits = limits_us(run)
    start, end = microseconds(placed["start"]).clip(*limits), microseconds(placed["end"]).clip(*limits)
    is_closed = ~placed["open"].to_numpy()
    times = distinct(start, end)
    n_all = count_at(times, start, end)
    n_closed = count_at(times, start[is_closed], end[is_closed])
    held_s = np.diff(times, append=times[-1]) / SECOND_US
    window_s = (times[-1] - times[0]) / SECOND_US
    configured = math.nan if selected else float(run.info.settings.parallel or "nan")
    effective = effective_parallelism(start, end)
    first, least, most = (microseconds(opens[name]).clip(*limits) for name in ("start", "last_evidence", "horizon"))
    low, high = effective_bounds(start[is_closed], end[is_closed], first, least, most)
    known = not np.isnan(configured)
    busy_s = float(held_s[n_all >= 1].sum())
    peak = int(n_all.max())
    return ParallelismProfile(
        concurrency=pd.DataFrame({"time": utc(times), "n_closed": n_closed, "n_all": n_all}),
        levels=_levels(n_all, held_s),
        placed=placed,
        workers=_workers(run, int(start.min()))[: 0 if selected else None],
        gaps=gaps,
        open_trials=opens,
        configured=configured,
        effective_closed=effective_parallelism(start[is_closed], end[is_closed]),
        effective=effective,
        effective_low=min(low, effective),
        effective_high=max(high, effective),
        effective_begun=effective_parallelism(start, np.minimum(end, start.max())),
        effective_window=weighted_sum(n_all, held_s) / window_s if window_s else float("nan"),
        peak_closed=int(n_closed.max()),
        peak=peak,
        efficiency_pct=100 * effective / configured,
        at_configured_pct=100 * held_s[n_all == configured].sum() / busy_s if known and busy_s else float("nan"),
        above_configured_s=float(held_s[n_all > configured].sum()) if known else float("nan"),
        above_configured_trials=max(peak - configured, 0.0) if known else float("nan"),
        n_workers=int(placed["worker"].max()) + 1,
        median_gap_s=float(gaps["gap_s"].median()),
        mean_gap_s=float(gaps["gap_s"].mean()),
        gap_worker_h=float(gaps["gap_s"].sum() / 3600),
        handover_pct=_handover_pct(start, end[is_closed]),
        serialised=bool(configured >= 2 and effective <= SERIAL_BELOW),
        selected=selected,
        window_s=window_s,
        busy_s=busy_s,
        n_timed=len(closed),
        n_open=len(opens),
        coverage_pct=100 * len(placed) / int((~intervals["state"].isin(["WAITING", ADDED])).sum()),
    )


def effective_parallelism(start_us: np.ndarray, end_us: np.ndarray) -> float:
    """Sum of the lengths of the intervals over the length of their union; NaN without any length."""
    times = distinct(start_us, end_us)
    held = np.diff(times, append=times[-1])
    busy = held[count_at(times, start_us, end_us) >= 1].sum()
    return float((end_us - start_us).sum() / busy) if busy else float("nan")


def _workers(run: Run, first_us: int) -> pd.DataFrame:
    times, number = worker_counts(run)
    steps = pd.Index([str(step) for step in range(len(times))], name="step", dtype=object)
    return pd.DataFrame({"from_s": (times - first_us) / SECOND_US, "n_workers": number}, index=steps)


def _gaps(placed: pd.DataFrame) -> pd.DataFrame:
    """What lies between one trial and the next of its worker and study, unless no trial of any worker ran for an hour
    in between: then somebody launched the rest later. Nothing is known after an open trial.
    """
    start, end = microseconds(placed["start"]), microseconds(placed["end"])
    ordered = placed.sort_values(["worker", "start", "end"], kind="stable")
    before, after = ordered.iloc[:-1], ordered.iloc[1:]
    pairs = (before["worker"].to_numpy() == after["worker"].to_numpy()) & ~before["open"].to_numpy()
    pairs &= before["study"].to_numpy() == after["study"].to_numpy()
    pairs &= ~holds_pause(microseconds(before["end"]), microseconds(after["start"]), pauses(start, end))
    before, after = before[pairs].reset_index(drop=True), after[pairs].reset_index(drop=True)
    return pd.DataFrame(
        {
            "worker": after["worker"],
            "start": before["end"],
            "end": after["start"],
            "gap_s": (after["start"] - before["end"]).dt.total_seconds().clip(lower=0),
            "before_study": before["study"],
            "before_trial": before["trial"],
            "after_study": after["study"],
            "after_trial": after["trial"],
        }
    )


def _levels(n_all: np.ndarray, held_s: np.ndarray) -> pd.DataFrame:
    time_s = np.bincount(n_all, weights=held_s)[1:]
    level = np.arange(1, len(time_s) + 1)
    total = time_s.sum()
    share = 100 * time_s / total if total else np.full(len(time_s), np.nan)
    return pd.DataFrame({"level": level, "time_s": time_s, "share_pct": share})


def _handover_pct(start_us: np.ndarray, end_us: np.ndarray) -> float:
    """Share of the starts after the first end that follow an end by at most 2 s."""
    ends = np.sort(end_us)
    later = start_us[start_us >= ends[0]]
    if not len(later):
        return float("nan")
    latest = ends[np.searchsorted(ends, later, "right") - 1]
    return float(100 * np.mean(later - latest <= HANDOVER_US))
