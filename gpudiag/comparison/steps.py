"""Steps that a COMPLETE trial reports, and whether two runs differ in them by more than chance."""

from __future__ import annotations

import math

import numpy as np
import scipy

from gpudiag.comparison.side import Side

SAME_STEPS = 0.1
"""Part by which the mean steps of a COMPLETE trial may differ and the trial is still the same unit."""
SURE = 1e-3
"""Where trials draw their steps, or a pruner picks who completes, chance alone gives a smaller p once in a thousand."""
LEAST_CONSTANT = 3
"""COMPLETE trials a side from which one number of steps in all of them is a budget and no accident."""


def steps_of_items(side: Side) -> np.ndarray:
    """Steps reported by each COMPLETE trial that reported any."""
    reports, trials = side.run.reports, side.run.trials
    if reports.empty or trials.empty:
        return np.zeros(0)
    done = trials.loc[trials["state"] == "COMPLETE", ["study", "trial"]]
    count = reports.groupby(["study", "trial"])["step"].nunique().rename("n").reset_index()
    return done.merge(count, on=["study", "trial"])["n"].to_numpy(float)


def steps_per_item(side: Side) -> float | None:
    """Mean number of steps reported by COMPLETE trials; None without reports."""
    found = steps_of_items(side)
    return float(found.mean()) if len(found) else None


def chance_of_steps(baseline: np.ndarray, experiment: np.ndarray) -> float:
    """Two-sided p of the difference of two means by Welch's test; NaN for too few.

    Where each run has one number of steps, chance has no part in it: 0, or 1 if it is the same number.
    """
    sides = (baseline, experiment)
    if not len(baseline) or not len(experiment):
        return math.nan
    if all(np.ptp(steps) == 0 for steps in sides):
        if baseline[0] == experiment[0]:
            return 1.0
        return 0.0 if min(map(len, sides)) >= LEAST_CONSTANT else math.nan
    if min(map(len, sides)) < 2:
        return math.nan
    known = [part for steps in sides for part in (steps.mean(), steps.std(ddof=1), len(steps))]
    return float(scipy.stats.ttest_ind_from_stats(*known, equal_var=False).pvalue)
