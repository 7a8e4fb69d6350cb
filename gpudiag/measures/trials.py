"""What became of the trials: counts, durations in seconds, best value, streaks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from gpudiag._run.allocated_gpus import JOB_GPUS, allocated_gpus, are_jobs
from gpudiag.facts import Column, Fact, Row, Rows, column, fact, table_of
from gpudiag.measures._time.microseconds import NEVER, microseconds
from gpudiag.measures._time.trial_intervals import HANDOVER_US, intervals_of, without_own_times
from gpudiag.measures._trials.abandoned import OpenTrial, find_open_trials
from gpudiag.measures._trials.constraints import infeasible
from gpudiag.measures._trials.failure_periods import FailurePeriod, failure_periods
from gpudiag.measures._trials.in_common import in_common
from gpudiag.measures._trials.left_idle import behind_dead_trials
from gpudiag.measures._trials.outcomes import outcomes_of
from gpudiag.measures._trials.pareto import pareto_front
from gpudiag.measures._trials.proportions import streak_probability, wilson_pct
from gpudiag.measures.base import Profile, TrialRow, need_trials
from gpudiag.measures.failures import trial_ends
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import ABANDONED, ADDED, FINISHED, OUTCOMES, STOPPED
from gpudiag.statement import NOTHING, Statement, joined
from gpudiag.values import is_number

MOST_STUDIES = 3
LEFT_IDLE = 0.1
"""Share of the search that GPUs were idle behind dead trials, from which on that is what matters of them (as of idle
time without a trial)."""
MOST_PARAMS = 8
"""Parameters of the best trial that are named."""


class TrialState(Row):
    """What became of trials: a state of Optuna, but STOPPED for a FAIL that somebody stopped, and ABANDONED for a
    RUNNING one that is dead. Durations are of trials whose start and end are known, or stated.
    """

    n: Column[int] = column("trials", label="trials")
    n_timed: Column[int] = column("trials with a known duration")
    share_pct: Column[float] = column("share of all trials")
    low_pct: Column[float] = column("lower end of its Wilson 95 % interval")
    high_pct: Column[float] = column("upper end of its Wilson 95 % interval")
    min_s: Column[float] = column("shortest")
    p25_s: Column[float] = column("first quartile")
    median_s: Column[float] = column("median duration", label="usual")
    mean_s: Column[float] = column("mean duration")
    p75_s: Column[float] = column("third quartile")
    max_s: Column[float] = column("longest")
    total_worker_s: Column[float] = column("sum of known durations; NaN where none is known")


class TrialDuration(TrialRow):
    """A trial with a known duration."""

    state: Column[str] = column("state")
    start: Column[pd.Timestamp] = column("start")
    end: Column[pd.Timestamp] = column("end")
    duration_s: Column[float] = column("duration")


class BestTrial(TrialRow):
    """A single-objective study with a known direction: the best of its COMPLETE trials that broke no constraint, the
    first of equals.
    """

    value: Column[float] = column("its value")
    at: Column[pd.Timestamp] = column("its end")
    after_s: Column[float] = column("time since the study's first start")


class ParetoTrial(TrialRow, families=("value_",)):
    """A trial on the Pareto front of a study with several objectives (``value_<i>``): COMPLETE, no constraint broken,
    and no other such trial is as good in all of them and better in one.
    """

    at: Column[pd.Timestamp] = column("its end")


class TrialsProfile(Profile, topic="trials"):
    """What became of the trials. Streaks are among finished trials in order of their end."""

    by_state: Rows = table_of(TrialState)
    durations: Rows = table_of(TrialDuration)
    best: Rows = table_of(BestTrial)
    pareto: Rows = table_of(ParetoTrial)
    open_trials: Rows = table_of(OpenTrial)
    by_period: Rows = table_of(FailurePeriod)
    n: Fact[int] = fact("trials, without results that were added")
    n_added: Fact[int] = fact(
        "results that were added to a study in which they did not run: they count for the best value alone",
        label="results added",
    )
    n_together: Fact[int] = fact(
        "trials that were asked for several at once and told in turn: nothing says how long each ran",
        label="asked for together",
    )
    n_finished: Fact[int] = fact("COMPLETE, PRUNED and FAIL", label="finished trials")
    n_fail: Fact[int] = fact("FAIL, without those that somebody stopped", label="failed trials")
    n_died: Fact[int] = fact(
        "FAIL of unknown kind that were marked so after the end of the trial: its process ended, and reported no "
        "error; without those after which the next trial began at once, so that it may have gone on",
        label="ended with their process",
    )
    n_stopped: Fact[int] = fact("FAIL of which the error says that they were stopped or canceled", label="stopped")
    n_running: Fact[int] = fact("RUNNING, abandoned ones included", label="marked RUNNING")
    n_nodes: Fact[int] = fact(
        "nodes of a scheduler's jobs where nothing says which of them the telemetry is of; 0 elsewhere"
    )
    are_jobs: Fact[bool] = fact("all of them are jobs of a scheduler, and none is a trial of a study")
    jobs_logged: Fact[bool] = fact("they are, and there are logs of trainings, which tell what became of the work")
    n_timed_out: Fact[int] = fact("FAIL that reached a time limit", label="at the time limit")
    job_gpu_h: Fact[float] = fact(
        "time of jobs times the GPUs that the scheduler gave them; NaN where either is unknown of one",
        label="GPU time of jobs",
    )
    failed_job_gpu_h: Fact[float] = fact("that of FAIL", label="GPU time of failed jobs")
    timed_out_gpu_h: Fact[float] = fact("that of FAIL at a time limit", label="GPU time of jobs at the limit")
    timed_out_h: Fact[float] = fact("sum of durations of these, on whatever GPUs", label="time of jobs at the limit")
    n_infeasible: Fact[int] = fact(
        "COMPLETE trials with a constraint above 0, which are never the best", label="trials that broke a constraint"
    )
    n_infinite: Fact[int] = fact(
        "COMPLETE trials of one objective that is infinite, which are never the best",
        label="trials with an infinite value",
    )
    n_reversed: Fact[int] = fact("trials that end before they start, a clock fault")
    fail_pct: Fact[float] = fact("FAIL of the finished trials", label="failed")
    fail_low_pct: Fact[float] = fact("lower end of its Wilson 95 % interval", label="failed, at least")
    fail_high_pct: Fact[float] = fact("upper end of its Wilson 95 % interval", label="failed, at most")
    fail_streak: Fact[int] = fact("longest run of FAIL", label="longest streak of failures")
    success_streak: Fact[int] = fact("longest run without FAIL")
    fail_study: Fact[str] = fact("the study with most failures, '' where there is only one")
    n_studies: Fact[int] = fact("studies of which a trial finished")
    n_failed_studies: Fact[int] = fact(
        "those of which every finished trial failed, where trials of others ended well; 0 for jobs of a scheduler",
        label="studies without a success",
    )
    failed_studies: Fact[str] = fact("their names, the first three, joined by commas")
    fail_condition: Fact[Statement] = fact(
        "the value of a parameter that failed trials have most oftener than trials that ended well between the first "
        "and the last of them; of the study with most failures, without those that followed another in a poisoned "
        "process",
        label="in common",
    )
    n_fail_compared: Fact[int] = fact("failed trials with that parameter")
    n_fail_with: Fact[int] = fact("failed trials with that value", label="failed with it")
    n_well_compared: Fact[int] = fact("trials that ended well with that parameter")
    n_well_with: Fact[int] = fact("trials that ended well with that value", label="ended well with it")
    p_condition: Fact[float] = fact(
        "one-sided, exact within ten neighbors in the order of starts, times the values tried",
        label="chance of such a share by luck (p)",
    )
    p_fail_streak: Fact[float] = fact(
        "probability of a FAIL run at least that long by chance (Markov recursion); NaN without FAIL",
        label="chance of such a streak by luck (p)",
    )
    span_s: Fact[float] = fact("first start to last end")
    abandoned: Fact[int] = fact("RUNNING trials that the data show to be dead", label="dead, at least")
    dead_idle_gpu_h: Fact[float] = fact(
        "idle time of GPUs behind trials that are dead or hang, up to the next start there; 0 without telemetry",
        label="GPU idle since then",
    )
    dead_idle_gpus: Fact[str] = fact("these GPUs, joined by commas")
    dead_held_mib: Fact[float] = fact(
        "mean memory held on each of them then, the least; NaN where one held none", label="memory held since then"
    )
    hangs: Fact[bool] = fact("they held memory, and were idle for a tenth of the search: most likely a process hangs")
    fail_worker_h: Fact[float] = fact(
        "sum of durations of FAIL whose end is known; NaN where none is", label="time of failed trials"
    )
    to_best_worker_h: Fact[float] = fact(
        "time of all trials up to the end of the best one, those that were running included; NaN with several studies",
        label="trial time to the best value",
    )
    best_trial: Fact[str] = fact("the best trial of the only study with one objective; '' elsewhere")
    best_value: Fact[float] = fact("its value", label="best value")
    best_direction: Fact[str] = fact("MINIMIZE or MAXIMIZE")
    best_params: Fact[Statement] = fact("its parameters, in the order of their names")
    after_best_worker_h: Fact[float] = fact(
        "time of trials from then on: it found nothing better", label="trial time after the best value"
    )


@memoized
def measure_trials(run: Run) -> TrialsProfile:
    """Counts and durations by outcome. Needs at least one trial. Failure rate is FAIL of finished."""
    need_trials(run)
    known_to_study = intervals_of(run).assign(state=outcomes_of(run))
    was_added = known_to_study["state"] == ADDED
    intervals = known_to_study[~was_added].reset_index(drop=True)
    by_state = _by_state(intervals)
    counts = by_state["n"]
    n_finished, n_fail = int(counts[list(FINISHED)].sum()), int(counts["FAIL"])
    fail_low, fail_high = wilson_pct(n_fail, n_finished)
    failed = _failed_in_order(intervals)
    fail_streak = _longest(failed)
    span_s = (intervals["end"].max() - intervals["start"].min()).total_seconds()
    opens, left_idle = find_open_trials(run), behind_dead_trials(run)
    results = _results(run, known_to_study)
    best = _best(run, results[~results["infeasible"]], intervals.groupby("study")["start"].min())
    to_best_s, after_best_s = _around_best(
        intervals, best, varied="value" in results and results["value"].nunique() > 1
    )
    return TrialsProfile(
        by_state=by_state,
        durations=intervals[intervals["duration_s"].notna()].drop(columns="known").reset_index(drop=True),
        best=best,
        pareto=_pareto(run, results[~results["infeasible"]]),
        open_trials=opens,
        by_period=failure_periods(run),
        n=len(intervals),
        n_added=int(was_added.sum()),
        n_finished=n_finished,
        n_fail=n_fail,
        n_died=_died(run),
        n_stopped=int(counts[STOPPED]),
        n_running=int(counts["RUNNING"] + counts[ABANDONED]),
        n_nodes=allocated_gpus(run).n_nodes,
        **_as_jobs(run),
        n_infeasible=int(results["infeasible"].sum()),
        n_infinite=int(np.isinf(results["value"]).sum()) if "value" in results else 0,
        n_reversed=int((intervals["end"] < intervals["start"]).sum()),
        fail_pct=100 * n_fail / n_finished if n_finished else math.nan,
        fail_low_pct=fail_low,
        fail_high_pct=fail_high,
        fail_streak=fail_streak,
        success_streak=_longest(~failed),
        p_fail_streak=streak_probability(n_fail / n_finished, n_finished, fail_streak) if n_fail else math.nan,
        **_in_common(run),
        **_failed_studies(intervals, are_jobs=bool(are_jobs(run.trials).all())),
        span_s=span_s,
        abandoned=int(opens["abandoned"].sum()),
        dead_idle_gpu_h=left_idle.gpu_h,
        dead_idle_gpus=left_idle.gpus,
        dead_held_mib=left_idle.all_held_mib,
        hangs=left_idle.all_held_mib > 0 and 3600 * left_idle.gpu_h >= LEFT_IDLE * span_s,
        fail_worker_h=float(by_state.at["FAIL", "total_worker_s"]) / 3600,
        to_best_worker_h=to_best_s / 3600,
        **_told(run, best),
        n_together=int(without_own_times(run).sum()),
        after_best_worker_h=after_best_s / 3600,
    )


def _as_jobs(run: Run) -> dict[str, Any]:
    """What is told of trials that are jobs of a scheduler; a job that runs on has no known time yet."""
    jobs, ends = bool(are_jobs(run.trials).all()), trial_ends(run)
    failed = (ends["state"] == "FAIL").to_numpy()
    limited = failed & (ends["kind"] == "time_limit").to_numpy()
    hours = ends["duration_s"].to_numpy(float) / 3600
    given = run.trials[JOB_GPUS] if jobs and JOB_GPUS in run.trials else pd.Series(math.nan, run.trials.index)
    gpu_h = np.where(ends["state"] == "WAITING", 0.0, hours * pd.to_numeric(given, errors="coerce").to_numpy(float))
    return {
        "are_jobs": jobs,
        "jobs_logged": jobs and len(run.steps) > 0,
        "n_timed_out": int(limited.sum()),
        "job_gpu_h": float(gpu_h.sum()),
        "failed_job_gpu_h": float(gpu_h[failed].sum()),
        "timed_out_gpu_h": float(gpu_h[limited].sum()),
        "timed_out_h": float(np.nansum(hours[limited])),
    }


def _by_state(intervals: pd.DataFrame) -> pd.DataFrame:
    n = intervals["state"].value_counts().reindex(list(OUTCOMES), fill_value=0)
    seconds = intervals.groupby("state")["duration_s"]
    quantile = seconds.quantile([0, 0.25, 0.5, 0.75, 1]).unstack()
    bounds = [wilson_pct(int(k), len(intervals)) for k in n]
    out = pd.DataFrame({"n": n, "n_timed": seconds.count()}, index=pd.Index(OUTCOMES, name="state"))
    out["n_timed"] = out["n_timed"].fillna(0).astype(int)
    out["share_pct"] = 100 * n / len(intervals)
    out["low_pct"], out["high_pct"] = zip(*bounds, strict=True)
    out["min_s"], out["p25_s"], out["median_s"] = quantile[0.0], quantile[0.25], quantile[0.5]
    out["mean_s"] = seconds.mean()
    out["p75_s"], out["max_s"] = quantile[0.75], quantile[1.0]
    out["total_worker_s"] = seconds.sum(min_count=1)
    out.loc[n == 0, "total_worker_s"] = 0.0
    return out


def _failed_in_order(intervals: pd.DataFrame) -> np.ndarray:
    """True for each finished trial that failed, in order of end: of start where the end is unknown, as of a process
    that was killed. Trials without times come last, by number.
    """
    done = intervals[intervals["state"].isin(FINISHED)]
    done = done.assign(at=done["end"].fillna(done["start"])).sort_values(["at", "study", "trial"], kind="stable")
    return (done["state"] == "FAIL").to_numpy()


def _died(run: Run) -> int:
    ends = trial_ends(run)
    if "marked" not in run.trials:
        return 0
    silent = ((ends["state"] == "FAIL") & (ends["kind"] == "unknown")).to_numpy()
    mine = run.trials[silent & run.trials["marked"].notna().to_numpy()]
    begun = np.append(np.sort(microseconds(ends["start"].dropna())), NEVER)
    marked = microseconds(mine["marked"])
    following = np.searchsorted(begun, marked)
    beside = following > np.searchsorted(begun, microseconds(mine["start"]), "right")
    seen = mine["last_seen"].notna().to_numpy() if "last_seen" in mine else False
    return int((beside | seen | (begun[following] > marked + HANDOVER_US)).sum())


def _in_common(run: Run) -> dict[str, Any]:
    ends = trial_ends(run)
    failed = (ends["state"] == "FAIL") & ~ends["follows"]
    usual = ends.loc[failed, "study"].mode()
    mine = ends["study"].eq(usual.iloc[0]) if len(usual) else failed
    several = len(usual) > 0 and ends["study"].nunique() > 1
    ends = ends[mine].assign(end=ends["end"].fillna(ends["start"]))
    found = in_common(run.trials.reset_index(drop=True)[mine], ends, failed[mine], single=True)
    return {
        "fail_study": str(usual.iloc[0]) if several else "",
        "fail_condition": found.condition,
        "n_fail_compared": found.n_bad,
        "n_fail_with": found.bad_with,
        "n_well_compared": found.n_well,
        "n_well_with": found.well_with,
        "p_condition": found.p,
    }


def _failed_studies(intervals: pd.DataFrame, *, are_jobs: bool) -> dict[str, Any]:
    done = intervals[intervals["state"].isin(FINISHED)]
    all_failed = (done["state"] == "FAIL").groupby(done["study"], sort=False).all()
    names = [] if are_jobs or all_failed.all() else all_failed.index[all_failed].tolist()
    return {
        "n_studies": len(all_failed),
        "n_failed_studies": len(names),
        "failed_studies": ", ".join(map(str, names[:MOST_STUDIES])),
    }


def _longest(flags: np.ndarray) -> int:
    """Length of the longest unbroken run of True."""
    return int(np.bincount(np.cumsum(~flags)[flags]).max()) if flags.any() else 0


def _results(run: Run, intervals: pd.DataFrame) -> pd.DataFrame:
    """COMPLETE trials with their objectives, ``infeasible`` and end, those that were added without one. A PRUNED
    trial's value is a report, no result.
    """
    objectives = [name for name in run.trials if str(name) == "value" or str(name).startswith("value_")]
    values = run.trials[objectives].astype(float).reset_index(drop=True)
    rows = pd.concat([intervals[["study", "trial", "state", "end"]], values], axis=1)
    rows["infeasible"] = infeasible(run.trials)
    return rows[(run.trials["state"] == "COMPLETE").to_numpy()].rename(columns={"end": "at"})


def _best(run: Run, feasible: pd.DataFrame, first: pd.Series) -> pd.DataFrame:
    """The best finite value of each single-objective study; ``first`` is the first start of each."""
    directions = _directions(run)
    rows = []
    usable = feasible[np.isfinite(feasible["value"])] if "value" in feasible else feasible[:0]
    for study, group in usable.sort_values("trial").groupby("study"):
        direction = directions.get(study, "")
        if direction not in ("MINIMIZE", "MAXIMIZE"):
            continue
        at = group["value"].idxmin() if direction == "MINIMIZE" else group["value"].idxmax()
        rows.append((study, group.at[at, "trial"], group.at[at, "value"], group.at[at, "at"], first.get(study, pd.NaT)))
    best = pd.DataFrame(rows, columns=["study", "trial", "value", "at", "after_s"])
    # A study whose best trial has no end, and no other, makes a column of NaT alone, which has no zone.
    best["at"], began = (
        pd.to_datetime(best[name], utc=True).astype(feasible["at"].dtype) for name in ("at", "after_s")
    )
    best["after_s"] = (best["at"] - began).dt.total_seconds()
    return best


def _around_best(intervals: pd.DataFrame, best: pd.DataFrame, *, varied: bool) -> tuple[float, float]:
    """Seconds of trials up to the end of the best one, and from then on; NaN without one, with several, or where all
    values are equal.
    """
    if len(best) != 1 or best["at"].isna().any() or not varied:
        return math.nan, math.nan
    of_study = intervals["study"] == best["study"].iloc[0]
    timed = intervals[intervals["duration_s"].notna() & intervals["end"].notna() & of_study]
    if timed.empty:
        return math.nan, math.nan
    later_s = (timed["end"] - best["at"].iloc[0]).dt.total_seconds().clip(lower=0)
    later_s = np.minimum(later_s, timed["duration_s"])
    return float((timed["duration_s"] - later_s).sum()), float(later_s.sum())


def _told(run: Run, best: pd.DataFrame) -> dict[str, Any]:
    """The best trial by its number, value, direction and parameters; unknown with several studies, or none."""
    if len(best) != 1 or run.trials["study"].nunique() != 1:
        return {"best_trial": "", "best_value": math.nan, "best_direction": "", "best_params": NOTHING}
    one = best.iloc[0]
    row = run.trials[(run.trials["study"] == one["study"]) & (run.trials["trial"] == one["trial"])].iloc[0]
    names = sorted(str(name) for name in run.trials if str(name).startswith("params."))
    known = [(name.removeprefix("params."), row[name]) for name in names if pd.notna(row[name])]
    parts = [Statement("{name} = {value}", name=name, value=_value(value)) for name, value in known[:MOST_PARAMS]]
    if len(known) > MOST_PARAMS:
        parts.append(Statement("{n} more", n=len(known) - MOST_PARAMS))
    return {
        "best_trial": str(one["trial"]), "best_value": float(one["value"]),
        "best_direction": str(_directions(run)[one["study"]]), "best_params": joined(*parts, by=", "),
    }  # fmt: skip


def _value(value: Any) -> float | int | str:
    """A value that a statement can hold: a number or a text."""
    item = value.item() if hasattr(value, "item") else value
    return item if is_number(item) else str(item)


def _pareto(run: Run, feasible: pd.DataFrame) -> pd.DataFrame:
    """The Pareto front of each study with several objectives of known direction."""
    directions = _directions(run)
    names = [name for name in feasible if str(name).startswith("value_")]
    parts = [feasible[:0]]
    for study, group in feasible.groupby("study"):
        ways = str(directions.get(study, "")).split(",")
        own = [f"value_{i}" for i in range(len(ways))]
        if len(ways) < 2 or not set(ways) <= {"MINIMIZE", "MAXIMIZE"} or not set(own) <= set(names):
            continue
        known = group.dropna(subset=own).sort_values("trial")
        losses = known[own].to_numpy() * [1.0 if way == "MINIMIZE" else -1.0 for way in ways]
        parts.append(known[pareto_front(losses)])
    return pd.concat(parts)[["study", "trial", *names, "at"]].reset_index(drop=True)


def _directions(run: Run) -> pd.Series:
    return run.studies.drop_duplicates("study").set_index("study")["directions"]
