"""What became of the trials: counts, durations in seconds, best value, streaks."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from gpudiag.measures._time.trial_intervals import lifetimes
from gpudiag.measures._trials.abandoned import find_open_trials
from gpudiag.measures._trials.proportions import streak_probability, wilson_pct
from gpudiag.measures.base import GIVE_TRIALS, Profile, need_columns
from gpudiag.run import Run
from gpudiag.schema import FINISHED, STATES


@dataclass(frozen=True, eq=False, repr=False)
class TrialsProfile(Profile):
    """``by_state`` (index state, all five, Optuna's order): n, n_timed, share_pct, low_pct, high_pct (Wilson
    95 % of all), min_s, p25_s, median_s, mean_s, p75_s, max_s, total_slot_s (durations where start and end are
    known, or stated).
    ``durations``: study, trial, state, start, end, duration_s of every trial with a known duration.
    ``best``: study, trial, value, at (UTC), after_s (since the study's first start), over COMPLETE
    trials of single-objective studies with a known direction; the first of equals.
    ``fail_streak``/``success_streak``: longest run of FAIL / of not-FAIL among finished trials in
    order of their end; ``p_fail_streak`` the probability of a FAIL run at least that long by chance
    (Markov recursion; NaN without FAIL). ``n_running``: RUNNING trials; ``orphans``: those that the data show
    to be dead; ``open_trials`` says why. ``n_reversed``: trials that end before they start, a clock fault.
    ``span_s``: first start to last end.
    """

    by_state: pd.DataFrame
    durations: pd.DataFrame
    best: pd.DataFrame
    open_trials: pd.DataFrame
    n: int
    n_finished: int
    n_fail: int
    n_running: int
    n_reversed: int
    fail_pct: float
    fail_low_pct: float
    fail_high_pct: float
    fail_streak: int
    success_streak: int
    p_fail_streak: float
    span_s: float
    orphans: int
    fail_slot_h: float


def measure_trials(run: Run) -> TrialsProfile:
    """Counts and durations by state. Needs at least one trial. Failure rate is FAIL of finished."""
    need_columns(run.trials, ("state",), "trials table", GIVE_TRIALS)
    lives = lifetimes(run.trials)
    by_state = _by_state(lives)
    counts = by_state["n"]
    n_finished, n_fail = int(counts[list(FINISHED)].sum()), int(counts["FAIL"])
    fail_low, fail_high = wilson_pct(n_fail, n_finished)
    failed = _failed_in_order(lives)
    fail_streak = _longest(failed)
    opens = find_open_trials(run)
    return TrialsProfile(
        by_state=by_state,
        durations=lives[lives["duration_s"].notna()].drop(columns="known").reset_index(drop=True),
        best=_best(run, lives),
        open_trials=opens,
        n=len(lives),
        n_finished=n_finished,
        n_fail=n_fail,
        n_running=int(counts["RUNNING"]),
        n_reversed=int((lives["end"] < lives["start"]).sum()),
        fail_pct=100 * n_fail / n_finished if n_finished else math.nan,
        fail_low_pct=fail_low,
        fail_high_pct=fail_high,
        fail_streak=fail_streak,
        success_streak=_longest(~failed),
        p_fail_streak=streak_probability(n_fail / n_finished, n_finished, fail_streak) if n_fail else math.nan,
        span_s=(lives["end"].max() - lives["start"].min()).total_seconds(),
        orphans=int(opens["orphan"].sum()),
        fail_slot_h=float(by_state.at["FAIL", "total_slot_s"] / 3600),
    )


def _by_state(lives: pd.DataFrame) -> pd.DataFrame:
    n = lives["state"].value_counts().reindex(list(STATES), fill_value=0)
    seconds = lives.groupby("state")["duration_s"]
    quantile = seconds.quantile([0, 0.25, 0.5, 0.75, 1]).unstack()
    bounds = [wilson_pct(int(k), len(lives)) for k in n]
    out = pd.DataFrame({"n": n, "n_timed": seconds.count()}, index=pd.Index(STATES, name="state"))
    out["n_timed"] = out["n_timed"].fillna(0).astype(int)
    out["share_pct"] = 100 * n / len(lives)
    out["low_pct"], out["high_pct"] = zip(*bounds, strict=True)
    out["min_s"], out["p25_s"], out["median_s"] = quantile[0.0], quantile[0.25], quantile[0.5]
    out["mean_s"] = seconds.mean()
    out["p75_s"], out["max_s"] = quantile[0.75], quantile[1.0]
    out["total_slot_s"] = seconds.sum()
    return out.fillna({"total_slot_s": 0.0})


def _failed_in_order(lives: pd.DataFrame) -> np.ndarray:
    """True for each finished trial that failed, in order of end; trials without an end last, by number."""
    done = lives[lives["state"].isin(FINISHED)].sort_values(["end", "study", "trial"], kind="stable")
    return (done["state"] == "FAIL").to_numpy()


def _longest(flags: np.ndarray) -> int:
    """Length of the longest unbroken run of True."""
    return int(np.bincount(np.cumsum(~flags)[flags]).max()) if flags.any() else 0


def _best(run: Run, lives: pd.DataFrame) -> pd.DataFrame:
    """The best finite value of each single-objective study. A PRUNED trial's value is a report, no result."""
    directions = run.studies.drop_duplicates("study").set_index("study")["directions"]
    values = lives.assign(value=run.trials["value"].to_numpy() if "value" in run.trials else math.nan)
    first = values.groupby("study")["start"].min()
    rows = []
    usable = values[(values["state"] == "COMPLETE") & np.isfinite(values["value"].astype(float))]
    for study, group in usable.sort_values("trial").groupby("study"):
        direction = directions.get(study, "")
        if direction not in ("MINIMIZE", "MAXIMIZE"):
            continue
        at = group["value"].idxmin() if direction == "MINIMIZE" else group["value"].idxmax()
        rows.append((study, group.at[at, "trial"], group.at[at, "value"], group.at[at, "end"], first[study]))
    best = pd.DataFrame(rows, columns=["study", "trial", "value", "at", "after_s"])
    best["at"] = best["at"].astype(lives["end"].dtype)
    best["after_s"] = (best["at"] - best["after_s"].astype(lives["end"].dtype)).dt.total_seconds()
    return best
