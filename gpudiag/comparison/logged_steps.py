"""Time of a step by the logs of two trainings that have no trials."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd

from gpudiag.comparison.check import FAIL, PASS, UNKNOWN, GateCheck
from gpudiag.comparison.intervals import unpaired_ratio
from gpudiag.comparison.quantity import TIME, Quantity, make
from gpudiag.comparison.side import Side
from gpudiag.measures._steps.courses import courses
from gpudiag.measures._steps.ranks import in_lock_step, one_of_each
from gpudiag.statement import Statement

MOST_STRETCHES = 400
"""More lines than these are taken together, in their order: an interval needs no more of them."""
SAME_TOKENS = 0.1
"""Part by which the tokens of a step may differ, and it is still the same work (a default without a published
source)."""
ONE_EACH = Statement(
    "Pauses are left out. The interval is of the steps of these two runs: by how much the same training differs from "
    "run to run is not in it."
)
OTHER_WORK = "A step of {b} is {times} times the tokens of one of {a}: compare time per token."
SAME_STEP = "Both logs count {unit}s, of as many tokens each."
STEP_UNKNOWN = "Both logs count {unit}s. Whether one is the same work in both (batch, tokens), the logs do not say."
OTHER_UNITS = "One log counts {a}s and the other {b}s, or their lines are of different kinds."


def logged_step_time(baseline: Side, experiment: Side) -> list[Quantity]:
    """Time of a step, where neither run has trials and both logs count the same."""
    lines = [_lines(side) for side in (baseline, experiment)]
    if not comparable(*lines):
        return []
    a, b = (_each_s(part) for part in lines)
    values = [float(np.exp(np.log(x).mean())) for x in (a, b)]
    unit = str(lines[0]["unit"].iloc[0])
    of = "a step" if unit == "step" else "an epoch"
    title = Statement("Time of {of} by the training logs, geometric mean", of=of)
    made = make("logged_step_time", title, "s", TIME, values, unpaired_ratio(a, b), note=ONE_EACH)
    return [replace(made, n_baseline=float(len(a)), n_experiment=float(len(b)))]


def n_logged(*sides: Side) -> list[int]:
    """Stretches of steps by side; nothing where they are not compared."""
    lines = [_lines(side) for side in sides]
    return [len(_each_s(part)) for part in lines] if comparable(*lines) else []


def same_step(baseline: Side, experiment: Side) -> GateCheck | None:
    """Whether a step is the same work in both logs; None where they are not compared."""
    sides = (baseline, experiment)
    lines = [_lines(side) for side in sides]
    if any(part.empty for part in lines):
        return None
    units = [str(part["unit"].iloc[0]) for part in lines]
    if not comparable(*lines):
        return GateCheck("same-unit", UNKNOWN, Statement(OTHER_UNITS, a=units[0], b=units[1]))
    a, b = (_tokens(side, part) for side, part in zip(sides, lines, strict=True))
    if not (a > 0 and b > 0):
        return GateCheck("same-unit", UNKNOWN, Statement(STEP_UNKNOWN, unit=units[0]))
    if abs(b / a - 1) > SAME_TOKENS:
        said = Statement(OTHER_WORK, a=baseline.name, b=experiment.name, times=b / a)
        return GateCheck("same-unit", FAIL, said)
    return GateCheck("same-unit", PASS, Statement(SAME_STEP, unit=units[0]))


def comparable(baseline: pd.DataFrame, experiment: pd.DataFrame) -> bool:
    """Whether lines of two logs count the same: one unit, and one kind of line or one total."""
    if baseline.empty or experiment.empty or baseline["unit"].iloc[0] != experiment["unit"].iloc[0]:
        return False
    return any(set(baseline[name].dropna()) & set(experiment[name].dropna()) for name in ("series", "total"))


def _lines(side: Side) -> pd.DataFrame:
    """Intervals of the steps of the run's training, with the kind and the total of its lines; empty where there are
    trials, or several trainings at once.
    """
    told = courses(side.run) if side.run.trials.empty else []
    if not told or not in_lock_step(told):
        return pd.DataFrame()
    whole = pd.concat(one_of_each(told), ignore_index=True)
    whole = whole[(whole["n"] > 0) & ~whole["first"].astype(bool) & (whole["each_s"] > 0)]
    steps = side.run.steps.reindex(columns=["path", "series", "total", "unit"])
    steps = steps[steps["path"].isin(whole["path"]) & steps["unit"].isin(whole["unit"])]
    kinds = steps.groupby("path").agg({"series": lambda s: s.mode().iloc[0], "total": "max"})
    return whole.merge(kinds, left_on="path", right_index=True)


def _each_s(lines: pd.DataFrame) -> np.ndarray:
    """Mean time of a step over each of some stretches, in order; seconds."""
    stretch = np.arange(len(lines)) * min(MOST_STRETCHES, len(lines)) // max(len(lines), 1)
    by = lines.assign(work_s=lines["each_s"] * lines["n"]).groupby(stretch)
    return (by["work_s"].sum() / by["n"].sum()).to_numpy(float)


def _tokens(side: Side, lines: pd.DataFrame) -> float:
    """Tokens of a step, as run.toml states them, else by the rate that lines state; NaN unknown."""
    stated = side.run.info.training.tokens_per_step
    if stated is not None:
        return float(stated)
    known = lines[lines["tokens_s"].notna()]
    return float((known["tokens_s"] * known["each_s"]).median()) if len(known) else math.nan
