"""Durations of two searches that prune, at the same number of steps: what pruned trials tell of speed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from gpudiag.comparison.autocorrelation import MIN_UNITS
from gpudiag.comparison.differences import PARAMS, command_params, logged_params, requested_params
from gpudiag.comparison.intervals import Mean, log_ratio, unpaired_ratio
from gpudiag.comparison.match import Match
from gpudiag.comparison.named_work import plain
from gpudiag.comparison.quantity import INVALID, TIME, Quantity, make
from gpudiag.comparison.side import Side
from gpudiag.comparison.step_curve import StepCurve, step_curve
from gpudiag.comparison.step_work import BATCH
from gpudiag.plain_data import Scalar
from gpudiag.statement import Statement, joined

AT_SAME_STEPS = "duration_at_same_steps"
TITLE = "Duration of COMPLETE and PRUNED trials at the same number of steps, geometric mean"
TWICE = 2.0
"""Reports that become more frequent without saying so become at least twice as frequent."""
OTHER_INTERVALS = Statement("The runs count or report steps in another way.")
OTHER_BATCH = Statement("A step holds another batch or other tokens.")
OTHER_STEPS = Statement("COMPLETE trials do not show that a step is the same in both runs.")
ONE_NUMBER = Statement("All trials have as many steps.")
NOT_BY_STEPS = Statement("The time of a trial does not follow its number of steps.")
LITTLE_SHARED = Statement("The runs have too few trials of a like number of steps, state and parameters.")
AT = "The times are those of trials of about {n} steps."
ALSO = "Held the same as well, since they explain durations: {names}."


def at_same_steps(baseline: Side, experiment: Side, matched: Match) -> list[Quantity]:
    """Where trials without names are PRUNED: the times of all that reported steps, over one curve of both runs."""
    sides = (baseline, experiment)
    pruned = any((side.finished["state"] == "PRUNED").any() for side in sides)
    if matched.named or not pruned or any(side.run.reports.empty for side in sides):
        return []
    reported = [_reported(side) for side in sides]
    counting = [_counting(steps) for steps in reported]
    tables = [_trials(*parts) for parts in zip(sides, reported, counting, strict=True)]
    if min(map(len, tables)) < MIN_UNITS:
        return []
    if counting[0] != counting[1]:
        return [_withheld(OTHER_INTERVALS)]
    if (why := _other_work(sides, tables)) is not None:
        return [_withheld(why)]
    trials = pd.concat([table.assign(experiment=side) for side, table in enumerate(tables)], ignore_index=True)
    if trials["steps"].nunique() < 2:
        return [_withheld(ONE_NUMBER)]
    names = [name for name in logged_params(baseline) if name in logged_params(experiment)]
    found = step_curve(trials, {name: trials[f"{PARAMS}{name}"] for name in names})
    if not found.enough or not found.explained:
        return [_withheld(LITTLE_SHARED if found.explained else NOT_BY_STEPS)]
    return [_quantity(found, *map(len, tables))]


def _quantity(found: StepCurve, n_baseline: int, n_experiment: int) -> Quantity:
    ratio = unpaired_ratio(*(np.exp(logs) for logs in found.logs))
    note = Statement(AT, n=round(found.steps))
    if found.also:
        note = joined(note, Statement(ALSO, names=", ".join(found.also[:4])))
    counted = partial(make, n_baseline=float(n_baseline), n_experiment=float(n_experiment))
    return counted(AT_SAME_STEPS, TITLE, "s", TIME, found.means, ratio, note=note)


def _withheld(why: Statement) -> Quantity:
    bare = make(AT_SAME_STEPS, TITLE, "s", TIME, (math.nan, math.nan), note=why, tested=False)
    return replace(bare, verdict=INVALID)


def _reported(side: Side) -> pd.DataFrame:
    """First and last step of each trial, and how many it reported."""
    by_trial = side.run.reports.groupby(["study", "trial"])["step"]
    return by_trial.agg(["min", "max", "nunique"]).reset_index()


def _counting(reported: pd.DataFrame) -> tuple[float, float]:
    """The step with which most trials begin, and from one to the next; NaN where none has two."""
    more = reported[reported["nunique"] > 1]
    apart = (more["max"] - more["min"]) / (more["nunique"] - 1)
    return float(reported["min"].mode().iloc[0]), float(apart.median())


def _trials(side: Side, reported: pd.DataFrame, counting: tuple[float, float]) -> pd.DataFrame:
    """COMPLETE and PRUNED trials with times and reports, in the order in which they ran; ``steps`` until the last."""
    rows = side.items[side.items["state"].isin(("COMPLETE", "PRUNED")) & (side.items["duration_s"] > 0)]
    columns = ["study", "trial", *(f"{PARAMS}{name}" for name in logged_params(side))]
    drawn = side.run.trials[columns].drop_duplicates(["study", "trial"])
    kept = rows.merge(reported, on=["study", "trial"]).merge(drawn, on=["study", "trial"])
    kept = kept.assign(complete=kept["state"] == "COMPLETE", steps=(kept["max"] - counting[0]) / counting[1] + 1)
    return kept[kept["steps"] >= 1]


def _other_work(sides: Sequence[Side], tables: Sequence[pd.DataFrame]) -> Statement | None:
    """Why a step is not known to be the same work in both; None where it is."""
    a, b = (_of_a_step(side) for side in sides)
    if any(a[name] != b[name] for name in a.keys() & b.keys()):
        return OTHER_BATCH
    steps = [table.loc[table["complete"], "steps"].to_numpy(float) for table in tables]
    return None if _alike(*steps) else OTHER_STEPS


def _of_a_step(side: Side) -> dict[str, float]:
    """Samples or tokens of a step by the names that state one number of them."""
    info = side.run.info
    held: dict[str, Scalar] = {"loader": info.dataloader.batch_size, "tokens": info.training.tokens_per_step}
    for name, value in (logged_params(side) | command_params(side) | requested_params(side)).items():
        held |= {plain(name): value} if plain(name) in BATCH else {}
    return {name: float(value) for name, value in held.items() if isinstance(value, int | float) and value > 0}


def _alike(baseline: np.ndarray, experiment: np.ndarray) -> bool:
    """Whether COMPLETE trials may have the same number of steps, and one that is twice as great is ruled out."""
    if not len(baseline) or not len(experiment):
        return False
    if np.ptp(baseline) > 0 or np.ptp(experiment) > 0:
        ratio = log_ratio(_geometric_mean(baseline), _geometric_mean(experiment), "Welch on logs")
        return bool(1 / TWICE < ratio.low <= 1 <= ratio.high < TWICE)
    return bool(baseline[0] == experiment[0])


def _geometric_mean(steps: np.ndarray) -> Mean:
    logs = np.log(steps)
    if len(logs) < 2:
        return Mean(math.nan)
    return Mean(math.exp(float(logs.mean())), float(logs.std(ddof=1)) / math.sqrt(len(logs)), len(logs))
