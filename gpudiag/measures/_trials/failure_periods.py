"""How trials ended while the number of workers was the same: a rate over all of them is that of no part."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pandas as pd

from gpudiag._run.failure_text import failure_classes
from gpudiag.facts import Column, Row, column
from gpudiag.measures._time.microseconds import LONG_AGO, SECOND_US, microseconds
from gpudiag.measures._time.span import limits_us
from gpudiag.measures._time.trial_intervals import intervals_of
from gpudiag.measures._trials.placed import placed_us, worker_counts
from gpudiag.measures._trials.proportions import wilson_pct
from gpudiag.run import Run
from gpudiag.schema import FINISHED

LEAST_ENDED = 10
"""Trials that ended with a number of workers, from which on their rate is worth a sentence (a default without a
published source): at the end of a run workers leave one by one."""


class FailurePeriod(Row):
    """A stretch of time with one number of workers, and how the trials ended that ended in it."""

    from_s: Column[float] = column("its start, since the first start")
    to_s: Column[float] = column("its end")
    n_workers: Column[int] = column("workers")
    n_ended: Column[int] = column("trials that finished in it")
    n_fail: Column[int] = column("FAIL of these", label="failed trials")
    fail_pct: Column[float] = column("their share", label="failed")
    fail_low_pct: Column[float] = column("lower end of its Wilson 95 % interval")
    fail_high_pct: Column[float] = column("upper end of its Wilson 95 % interval")
    n_oom: Column[int] = column("those out of GPU memory")
    trial_h: Column[float] = column("time of trials within it")


def failure_periods(run: Run, since_us: int = LONG_AGO) -> pd.DataFrame:
    """A row of :class:`FailurePeriod` for each, of what lies behind ``since_us``; none without a trial whose times are
    known.
    """
    rows: list[dict[str, float]] = []
    start, end = placed_us(run)
    if len(start):
        intervals = intervals_of(run).assign(kind=failure_classes(run.trials).to_numpy())
        ends = intervals[intervals["known"] & intervals["state"].isin(FINISHED)]
        ended = microseconds(ends["end"]).clip(*limits_us(run))
        times, number = worker_counts(run)
        first, final = int(start.min()), int(end.max())
        for place, (left, right) in enumerate(pairwise([first, *times.tolist()[1:], final])):
            if right <= since_us:
                continue
            inside = (ended > max(left, since_us)) | ((place == 0) & (since_us <= first))
            left = max(left, since_us)
            inside &= (ended <= right) | (place == len(times) - 1)
            held = np.clip(np.minimum(end, right) - np.maximum(start, left), 0, None).sum() / SECOND_US / 3600
            since = {"from_s": (left - first) / SECOND_US, "to_s": (right - first) / SECOND_US}
            rows.append({**since, "n_workers": int(number[place]), **rates(ends[inside]), "trial_h": float(held)})
    names = pd.Index([str(place) for place in range(len(rows))], name="period", dtype=object)
    return pd.DataFrame(rows, names, columns=list(FailurePeriod.declared()))


def rates(ends: pd.DataFrame) -> dict[str, float]:
    """The counts and the share of failures of these ends (``state``, ``kind``)."""
    failed = ends["state"] == "FAIL"
    n, hits = len(ends), int(failed.sum())
    low, high = wilson_pct(hits, n)
    return {
        "n_ended": n, "n_fail": hits, "fail_pct": 100 * hits / n if n else math.nan, "fail_low_pct": low,
        "fail_high_pct": high, "n_oom": int((failed & (ends["kind"] == "oom")).sum()),
    }  # fmt: skip
