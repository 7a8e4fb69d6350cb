"""The span that telemetry should cover."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gpudiag.measures._steps.intervals import step_intervals
from gpudiag.measures._time.cells import cells
from gpudiag.measures._time.microseconds import microseconds
from gpudiag.measures._time.span import limits_us
from gpudiag.measures._time.trial_intervals import intervals_of, ran_until
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import IDLE_PCT

MOST_OUTSIDE = 0.1
"""Share of the GPUs' work that may lie outside of the logs that tell of it: start-up, a last evaluation."""


def expected_window(run: Run, samples: pd.DataFrame) -> tuple[int, int]:
    """The span, in microseconds, that telemetry should cover: the trials', else that of all GPUs and of the logs of
    their trainings together.
    """
    return trials_window(run) or with_logs(run, (int(samples["start_us"].min()), int(samples["end_us"].max())))


@memoized
def trials_window(run: Run) -> tuple[int, int] | None:
    """First start and last known timestamp of the trials, in microseconds; None where the clocks cannot be joined. What
    was still running when its list was printed may have run to the end of the record.
    """
    if not run.info.clock.joined or run.trials.empty:
        return None
    intervals = intervals_of(run)
    start = intervals["start"].dropna()
    if start.empty:
        return None
    on = ran_until(run.trials).dropna()
    ends = [intervals["end"].dropna(), on, run.gpu["time"].dropna().nlargest(min(len(on), 1))]
    timestamps = np.concatenate([microseconds(some) for some in (start, *ends)])
    low, high = limits_us(run)
    low, high = max(int(microseconds(start).min()), low), min(int(timestamps.max()), high)
    return (low, high) if high > low else None


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
