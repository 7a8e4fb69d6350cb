"""What became of each trial, by the one name that every table and picture has for it."""

from __future__ import annotations

import pandas as pd

from gpudiag.measures._time.trial_intervals import intervals_of, is_open
from gpudiag.measures._trials.abandoned import find_open_trials
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import ABANDONED


def outcomes_of(run: Run) -> pd.Series:
    """One of :data:`~gpudiag.schema.OUTCOMES` for each trial, in the order of ``run.trials`` from 0 on."""
    return _made(run).copy()


@memoized
def _made(run: Run) -> pd.Series:
    intervals = intervals_of(run)
    out = intervals["state"].astype(object)
    dead = find_open_trials(run)["abandoned"].to_numpy(bool)
    out[intervals.index[is_open(intervals)][dead]] = ABANDONED
    return out
