"""Trials that ended with exactly the worst value of their study: what an objective returns that catches its errors."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from gpudiag.facts import Column, Row, column
from gpudiag.measures._time.trial_intervals import trial_names
from gpudiag.measures._trials.constraints import infeasible
from gpudiag.run import Run

MOST_NAMED = 3


class WorstValues(Row):
    """A study of one objective whose direction is known: its COMPLETE trials with a value that keep the constraints. Of
    trials of the same parameters, which give the value again, the first.
    """

    study: Column[str] = column("study")
    n_valued: Column[int] = column("these trials", label="completed")
    n_worst: Column[int] = column("those of them that have exactly the worst value", label="with the worst value")
    worst_value: Column[str] = column("that value, as Python writes it", label="worst value")
    worst_trials: Column[str] = column(
        "the names of the first three of them, joined by commas", label="the first of these trials"
    )
    worst_worker_h: Column[float] = column("the time they took; NaN where none is known", label="time of these trials")
    other_values_pct: Column[float] = column(
        "different values of the others, as a share of these; NaN without others", label="other values that differ"
    )


def worst_values(run: Run, intervals: pd.DataFrame, repeats: np.ndarray) -> pd.DataFrame:
    """The columns of :class:`WorstValues`; ``repeats``: trials with the parameters of an earlier one."""
    return pd.DataFrame(list(_rows(run, intervals, repeats)), columns=list(WorstValues.declared()))


def _rows(run: Run, intervals: pd.DataFrame, repeats: np.ndarray) -> Iterator[dict[str, object]]:
    if "value" not in run.trials:
        return
    directions = dict(zip(run.studies["study"], run.studies["directions"].fillna(""), strict=True))
    trials = run.trials.reset_index(drop=True)
    names = trial_names(intervals)
    done = ((trials["state"] == "COMPLETE") & trials["value"].notna()).to_numpy() & ~repeats & ~infeasible(trials)
    for study, value in trials[done].groupby("study")["value"]:
        if directions.get(study) not in ("MINIMIZE", "MAXIMIZE"):
            continue
        worst = value == (value.max() if directions[study] == "MINIMIZE" else value.min())
        at, others = worst.index[worst], value[~worst]
        took_s = intervals.loc[at, "duration_s"]
        yield {
            "study": str(study),
            "n_valued": len(value),
            "n_worst": len(at),
            "worst_value": repr(float(value[at[0]])),
            "worst_trials": ", ".join(names[at].head(MOST_NAMED)),
            "worst_worker_h": float(took_s.sum() / 3600) if took_s.notna().any() else math.nan,
            "other_values_pct": 100 * others.nunique() / len(others) if len(others) else math.nan,
        }
