"""Trials that ended with exactly the worst value of their study: what an objective returns that catches its errors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

from gpudiag.measures._time.trial_intervals import trial_names
from gpudiag.run import Run

MOST_NAMED = 3


class WorstValues(NamedTuple):
    """Of the study in which most trials share the worst value, as :class:`SearchProfile` has it."""

    n_valued: int = 0
    n_worst: int = 0
    worst_value: str = ""
    worst_trials: str = ""
    worst_study: str = ""
    worst_worker_h: float = math.nan
    other_values_pct: float = math.nan


def worst_values(run: Run, intervals: pd.DataFrame, repeats: np.ndarray) -> WorstValues:
    """Of trials that repeat the parameters of another, which give its value again, the first is looked at."""
    if "value" not in run.trials:
        return WorstValues()
    found = list(_studies(run, intervals, repeats))
    return max(found, key=lambda one: (one.n_worst * one.other_values_pct, one.n_valued), default=WorstValues())


def _studies(run: Run, intervals: pd.DataFrame, repeats: np.ndarray) -> Iterator[WorstValues]:
    directions = dict(zip(run.studies["study"], run.studies["directions"].fillna(""), strict=True))
    trials = run.trials.reset_index(drop=True)
    done = ((trials["state"] == "COMPLETE") & trials["value"].notna()).to_numpy() & ~repeats
    for study, own in trials[done].groupby("study"):
        sign = {"MINIMIZE": 1.0, "MAXIMIZE": -1.0}.get(directions.get(study, ""))
        if sign is None:
            continue
        worst = own["value"] == sign * (sign * own["value"]).max()
        others = own.loc[~worst, "value"]
        rows = intervals.loc[worst.index[worst]]
        yield WorstValues(
            n_valued=len(own),
            n_worst=int(worst.sum()),
            worst_value=f"{own.loc[worst, 'value'].iloc[0]:.6g}",
            worst_trials=", ".join(trial_names(rows).head(MOST_NAMED)),
            worst_study=str(study) if trials["study"].nunique() > 1 else "",
            worst_worker_h=float(rows["duration_s"].sum() / 3600) if rows["duration_s"].notna().any() else math.nan,
            other_values_pct=100 * others.nunique() / len(others) if len(others) else 0.0,
        )
