"""How long items take, and their steps."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np

from gpudiag.comparison.intervals import Ratio, mean_ratio, paired_ratio, unpaired_ratio
from gpudiag.comparison.match import Match
from gpudiag.comparison.quantity import SAME_WITHIN, TIME, Quantity, make
from gpudiag.comparison.same_steps import at_same_steps
from gpudiag.comparison.side import Side
from gpudiag.comparison.steps import steps_per_item
from gpudiag.statement import NOTHING, Statement, joined

AT_ONCE = "{a} and {b} ran at once: longer items can still be more an hour."
FEW = Statement("Fewer than 6 a side: described, not tested.")


def durations(baseline: Side, experiment: Side, matched: Match) -> list[Quantity]:
    """Durations of items that succeeded: paired where they have names, else as two samples."""
    pairs = matched.both_complete
    paired = matched.named and len(pairs) > 0
    if paired:
        a, b = pairs["baseline_s"].to_numpy(float), pairs["experiment_s"].to_numpy(float)
        what, ratio = Statement("{n} items that succeeded in both", n=len(a)), paired_ratio(a, b)
    else:
        a, b = _complete_s(baseline), _complete_s(experiment)
        what, ratio = Statement("COMPLETE trials"), unpaired_ratio(a, b) if len(a) and len(b) else Ratio(math.nan)
    if not len(a) or not len(b):
        return []
    item = partial(make, n_baseline=len(a), n_experiment=len(b), whole=not paired)
    geometric = [float(np.exp(np.log(x).mean())) for x in (a, b)]
    few = NOTHING if not math.isnan(ratio.low) else FEW
    at_once = _others_at_once(baseline, experiment)
    arithmetic = mean_ratio(a, b, paired=paired)
    return [
        item(
            "duration",
            Statement("Duration of an item, geometric mean of {what}", what=what),
            "s",
            TIME,
            geometric,
            ratio,
            note=joined(few, at_once),
        ),
        item(
            "mean_duration",
            Statement("Duration of an item, arithmetic mean of {what}", what=what),
            "s",
            TIME,
            (float(a.mean()), float(b.mean())),
            arithmetic,
            note=Statement("The mean that total time follows."),
        ),
    ]


def _complete_s(side: Side) -> np.ndarray:
    rows = side.items[(side.items["state"] == "COMPLETE") & (side.items["duration_s"] > 0)]
    return rows["duration_s"].to_numpy(float)


def _others_at_once(baseline: Side, experiment: Side) -> Statement:
    """That another number of items ran at once, which may make each longer."""
    a, b = baseline.parallel, experiment.parallel
    known = math.isfinite(a) and math.isfinite(b)
    return Statement(AT_ONCE, a=a, b=b) if known and not math.isclose(a, b, rel_tol=0.1) else NOTHING


def durations_at_same_steps(baseline: Side, experiment: Side, matched: Match) -> list[Quantity]:
    found = at_same_steps(baseline, experiment, matched)
    return [replace(one, note=joined(one.note, _others_at_once(baseline, experiment))) for one in found]


def time_per_step(baseline: Side, experiment: Side, matched: Match) -> list[Quantity]:
    """Duration over steps of COMPLETE trials, where trials of the two runs have different numbers of steps."""
    a, b = (_step_s(side) for side in (baseline, experiment))
    n_a, n_b = (steps_per_item(side) for side in (baseline, experiment))
    if not len(a) or not len(b) or not n_a or not n_b or math.isclose(n_a, n_b, rel_tol=SAME_WITHIN):
        return []
    values = [float(np.exp(np.log(x).mean())) for x in (a, b)]
    title = "Time per reported step of COMPLETE trials, geometric mean"
    ratio = unpaired_ratio(a, b)
    return [make("step_time", title, "s", TIME, values, ratio, n_baseline=float(len(a)), n_experiment=float(len(b)))]


def _step_s(side: Side) -> np.ndarray:
    if side.run.reports.empty:
        return np.zeros(0)
    steps = side.run.reports.groupby(["study", "trial"])["step"].nunique().rename("steps").reset_index()
    rows = side.items[(side.items["state"] == "COMPLETE") & (side.items["duration_s"] > 0)].merge(
        steps, on=["study", "trial"]
    )
    return (rows["duration_s"] / rows["steps"]).to_numpy(float)
