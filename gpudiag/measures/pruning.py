"""How much was pruned, when, and what it cost, in all three definitions of the rate."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from gpudiag.errors import NotMeasurable
from gpudiag.facts import Column, Fact, Rows, column, fact, table_of
from gpudiag.measures._time.trial_intervals import intervals_of
from gpudiag.measures._trials.proportions import wilson_pct
from gpudiag.measures._trials.pruner_spec import EarliestPrune, earliest_prune, stated_pruner
from gpudiag.measures.base import Profile, TrialRow, need_trials
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import ADDED, FINISHED


class PrunedTrial(TrialRow):
    """A PRUNED trial with reports."""

    last_step: Column[int] = column("step of its last report")
    n_reports: Column[int] = column("reports")


class LearningCurve(TrialRow):
    """A finite report, each trial's in order of its steps."""

    state: Column[str] = column("state of the trial")
    step: Column[int] = column("step")
    value: Column[float] = column("value")


class PruningProfile(Profile, topic="pruning"):
    """How much was pruned and when. Rates are PRUNED over all trials; over finished ones (COMPLETE + PRUNED + FAIL);
    over decided ones (COMPLETE + PRUNED); each with Wilson 95 % bounds.
    """

    steps: Rows = table_of(PrunedTrial)
    curves: Rows = table_of(LearningCurve)
    n_pruned: Fact[int] = fact("PRUNED trials", label="pruned trials")
    n_decided: Fact[int] = fact("COMPLETE and PRUNED trials")
    n_unended: Fact[int] = fact("RUNNING and WAITING trials")
    n_with_reports: Fact[int] = fact("PRUNED trials with reports")
    of_all_pct: Fact[float] = fact("PRUNED of all trials", label="of all trials")
    of_all_low_pct: Fact[float] = fact("its lower bound")
    of_all_high_pct: Fact[float] = fact("its upper bound")
    of_finished_pct: Fact[float] = fact("PRUNED of finished trials", label="of finished trials")
    of_finished_low_pct: Fact[float] = fact("its lower bound")
    of_finished_high_pct: Fact[float] = fact("its upper bound")
    of_decided_pct: Fact[float] = fact("PRUNED of decided trials", label="of COMPLETE + PRUNED")
    of_decided_low_pct: Fact[float] = fact("its lower bound", label="of these, at least")
    of_decided_high_pct: Fact[float] = fact("its upper bound", label="of these, at most")
    cost_pct: Fact[float] = fact(
        "share of worker time that PRUNED trials took, of all trials with a known duration", label="of the trial time"
    )
    cost_worker_h: Fact[float] = fact("worker time that PRUNED trials took")
    median_step: Fact[float] = fact("median step at which trials were pruned", label="median step of the cut")
    first_step: Fact[float] = fact("smallest step at which a trial was pruned", label="earliest cut")
    at_first_pct: Fact[float] = fact(
        "share of PRUNED trials with reports that were cut at first_step", label="at the first possible step"
    )
    config_first_report: Fact[float] = fact(
        "earliest report (1 = first) at which the stated pruner can prune, infinite for nop, NaN unknown",
        label="first possible report",
    )
    before_possible: Fact[float] = fact(
        "PRUNED trials with fewer reports than that, or cut at a step before its first, NaN unknown", label="too early"
    )
    budget_pct: Fact[float] = fact(
        "sum of steps of PRUNED over their number times max_steps (stated, else the most that any trial of the study "
        "did), of trials with reports"
    )
    n_late: Fact[int] = fact(
        "PRUNED trials that lasted 90 % of the median COMPLETE trial of their study or longer, with as much of its "
        "steps where they report any",
        label="pruned at the end",
    )
    n_late_known: Fact[int] = fact(
        "PRUNED trials of which that is known: five COMPLETE ones to compare with", label="pruned trials compared"
    )
    late_low_pct: Fact[float] = fact("share of these, lower end of its Wilson 95 % interval", label="at least")
    pruned_median_s: Fact[float] = fact(
        "median duration of these PRUNED trials, NaN where they are of several studies", label="median pruned trial"
    )
    complete_median_s: Fact[float] = fact(
        "median duration of their study's COMPLETE ones, NaN likewise", label="median whole trial"
    )
    pruner: Fact[str] = fact("the configuration stated, empty if unknown")


LATE = 0.9
"""Of a whole trial's length and steps: who is pruned later saved next to nothing."""
MIN_COMPLETE = 5
"""COMPLETE trials of a study without which the length of a whole trial is not known."""


@memoized
def measure_pruning(run: Run) -> PruningProfile:
    """Pruning rates, steps and cost over all studies of the run. Needs at least one finished trial.

    Raises ConfigError where the pruner stated in run.toml cannot be read.
    """
    need_trials(run)
    intervals = intervals_of(run)
    intervals = intervals[intervals["state"] != ADDED]
    state = intervals["state"]
    if not state.isin(FINISHED).any():
        raise NotMeasurable("No trial has finished yet.", "Measure again when some trials have ended.")
    n_pruned = int((state == "PRUNED").sum())
    n_decided = n_pruned + int((state == "COMPLETE").sum())
    rates = _rates("of_all", n_pruned, len(state))
    rates |= _rates("of_finished", n_pruned, int(state.isin(FINISHED).sum()))
    rates |= _rates("of_decided", n_pruned, n_decided)
    seconds = intervals["duration_s"].groupby(intervals["state"]).sum()
    total_s, pruned_s = float(seconds.sum()), float(seconds.get("PRUNED", 0.0))
    reached = _reached(run)
    steps = reached.loc[reached["state"] == "PRUNED", ["study", "trial", "last_step", "n_reports"]]
    late = _late(intervals, reached)
    spec = stated_pruner(run)
    earliest = earliest_prune(spec) if spec else None
    return PruningProfile(
        steps=steps.reset_index(drop=True),
        curves=_curves(run),
        n_pruned=n_pruned,
        n_decided=n_decided,
        n_unended=int((~state.isin(FINISHED)).sum()),
        n_with_reports=len(steps),
        **rates,
        cost_pct=100 * pruned_s / total_s if total_s else math.nan,
        cost_worker_h=pruned_s / 3600,
        median_step=float(steps["last_step"].median()),
        first_step=float(steps["last_step"].min()),
        at_first_pct=100 * float((steps["last_step"] == steps["last_step"].min()).mean()) if len(steps) else math.nan,
        config_first_report=_first_report(earliest, run.reports),
        before_possible=_before_possible(earliest, steps, n_pruned, run),
        budget_pct=_budget_pct(reached, run.info.settings.max_steps),
        n_late=late.n,
        n_late_known=late.n_known,
        late_low_pct=wilson_pct(late.n, late.n_known)[0],
        pruned_median_s=late.pruned_s,
        complete_median_s=late.complete_s,
        pruner=run.info.settings.pruner or "",
    )


def _curves(run: Run) -> pd.DataFrame:
    known = run.reports.loc[np.isfinite(run.reports["value"].astype(float)), ["study", "trial", "step", "value"]]
    known = known.drop_duplicates(["study", "trial", "step"], keep="last")
    out = known.merge(intervals_of(run)[["study", "trial", "state"]], on=["study", "trial"])
    columns = ["study", "trial", "state", "step", "value"]
    return out[columns].sort_values(["study", "trial", "step"], kind="stable", ignore_index=True)


def _rates(name: str, hits: int, n: int) -> dict[str, float]:
    low, high = wilson_pct(hits, n)
    share = 100 * hits / n if n else math.nan
    return {f"{name}_pct": share, f"{name}_low_pct": low, f"{name}_high_pct": high}


def _reached(run: Run) -> pd.DataFrame:
    """study, trial, state, last_step, n_reports, steps_done of every trial with reports.

    ``steps_done`` counts from the first step that the study reports: 0 where it counts from 0, else 1.
    """
    reports = run.reports.drop_duplicates(["study", "trial", "step"], keep="last")
    grouped = reports.groupby(["study", "trial"])["step"].agg(last_step="max", n_reports="count").reset_index()
    out = intervals_of(run)[["study", "trial", "state"]].merge(grouped, on=["study", "trial"])
    from_zero = reports.groupby("study")["step"].min() <= 0
    out["steps_done"] = out["last_step"] + out["study"].map(from_zero).astype(int)
    return out


def _first_report(earliest: EarliestPrune | None, reports: pd.DataFrame) -> float:
    """The earliest report number, given how the study numbers its steps; NaN where that is not known."""
    if earliest is None:
        return math.nan
    if reports.empty or math.isinf(earliest.report):
        return earliest.report if earliest.step <= 1 or math.isinf(earliest.report) else math.nan
    return float(max(earliest.report, 1 + int((pd.unique(reports["step"]) < earliest.step).sum())))


def _before_possible(earliest: EarliestPrune | None, steps: pd.DataFrame, n_pruned: int, run: Run) -> float:
    """PRUNED trials that the configured pruner cannot have cut, also those without reports in a study that has any."""
    if earliest is None or (n_pruned and run.reports.empty):
        return math.nan
    too_early = (steps["n_reports"] < earliest.report) | (steps["last_step"] < earliest.step)
    reporting = run.reports["study"].unique()
    intervals = intervals_of(run)
    pruned = intervals[(intervals["state"] == "PRUNED") & intervals["study"].isin(reporting)]
    return float(too_early.sum() + len(pruned) - len(steps))


@dataclass(frozen=True)
class _Late:
    """PRUNED trials that ran to the end, or nearly so."""

    n: int
    n_known: int
    pruned_s: float
    complete_s: float


def _late(intervals: pd.DataFrame, reached: pd.DataFrame) -> _Late:
    """Each is held against the COMPLETE ones of its study: the median of their lengths and steps, and where it has no
    reports the third quartile of their lengths.
    """
    timed = intervals[intervals["duration_s"].notna()][["study", "trial", "state", "duration_s"]]
    timed = timed.merge(reached[["study", "trial", "steps_done"]], how="left", on=["study", "trial"])
    whole = timed[timed["state"] == "COMPLETE"]
    by_study = whole.groupby("study")[["duration_s", "steps_done"]]
    usual = by_study.median().assign(long_s=by_study.quantile(0.75)["duration_s"])
    usual = usual[(by_study.size() >= MIN_COMPLETE) & (usual["duration_s"] > 0)]
    pruned = timed[(timed["state"] == "PRUNED") & timed["study"].isin(usual.index)]
    of = usual.loc[pruned["study"]].set_axis(pruned.index)
    whole_s = of["duration_s"].where(pruned["steps_done"].notna(), of["long_s"])
    short = (pruned["duration_s"] < LATE * whole_s) | (pruned["steps_done"] < LATE * of["steps_done"])
    n_late, studies = int((~short).sum()), pruned["study"].unique()
    if len(studies) != 1:  # what is long in one study is short in another
        return _Late(n_late, len(pruned), math.nan, math.nan)
    complete_s = float(usual["duration_s"].loc[studies[0]])
    return _Late(n_late, len(pruned), float(pruned["duration_s"].median()), complete_s)


def _budget_pct(reached: pd.DataFrame, max_steps: int | None) -> float:
    most = reached.groupby("study")["steps_done"].transform("max")
    limit = most if max_steps is None else most.clip(lower=max_steps)  # a stated limit that was passed is none
    pruned = reached["state"] == "PRUNED"
    possible = float(limit[pruned].sum())
    return 100 * float(reached.loc[pruned, "steps_done"].sum()) / possible if possible else math.nan
