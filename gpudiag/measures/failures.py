"""Why trials failed: by kind, by common cause, and with how much memory in use before."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from gpudiag._run.failure_text import CLASSES, classify, failure_classes
from gpudiag.facts import Column, Fact, Row, Rows, column, fact, table_of
from gpudiag.measures._ends.recorded import ENDS, recorded_paths
from gpudiag.measures._gpu.boards import gpu_boards
from gpudiag.measures._gpu.gpu_rows import by_gpu
from gpudiag.measures._time.cells import cells
from gpudiag.measures._time.concurrency import count_at
from gpudiag.measures._time.microseconds import NEVER, SECOND_US, microseconds
from gpudiag.measures._time.reduced import reduced
from gpudiag.measures._time.trial_intervals import intervals_of, trial_names, without_own_times
from gpudiag.measures._trials.chances import p_greater
from gpudiag.measures._trials.error_texts import error_texts, failure_texts
from gpudiag.measures._trials.followers import follows
from gpudiag.measures._trials.two_groups import two_groups
from gpudiag.measures.attribution import measure_attribution
from gpudiag.measures.base import Profile, TrialRow, need_trials
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import FINISHED

BEFORE_S = 60.0
RECURRING = ("nan", "device_assert")
FULL_PCT = 95.0
MOST_ERRORS = 20
"""Errors that are kept."""


class Failure(TrialRow):
    """A failed trial."""

    name: Column[str] = column("its own name, else its number", label="name")
    kind: Column[str] = column("one of CLASSES")
    duration_s: Column[float] = column("duration", label="lasting")
    follows: Column[bool] = column(
        "a short FAIL right after another one on the same worker, where these come oftener than by chance: the same "
        "poisoned process"
    )
    before_pct: Column[float] = column("greatest memory in use in the 60 s before the end")
    alone: Column[bool] = column("no other trial ran at its end that may have been on its GPU")


class FailureKind(Row):
    """A kind of failure."""

    kind: Column[str] = column("kind")
    n: Column[int] = column("failed trials")
    n_events: Column[int] = column("log events of that kind; with those of trials, not beside them")


class FailureError(Row):
    """An error that failed trials ended with, the most frequent first."""

    kind: Column[str] = column("one of CLASSES")
    n: Column[int] = column("failed trials")
    text: Column[str] = column("its first sentence, shortened, without numbers that differ; '' where none is held")


class FailuresProfile(Profile, topic="failures"):
    """Why trials failed. Durations of FAIL may form two groups, told apart by their logarithms."""

    failures: Rows = table_of(Failure)
    by_kind: Rows = table_of(FailureKind)
    by_error: Rows = table_of(FailureError)
    n_finished: Fact[int] = fact("finished trials")
    n_fail: Fact[int] = fact("failed trials")
    n_events: Fact[int] = fact("failures less those that follow another", label="separate events")
    n_open: Fact[int] = fact(
        "more that may follow another: without a message, in one stretch without a trial that ended well",
        label="may follow another",
    )
    n_told: Fact[int] = fact("failures whose kind is known")
    n_recurring: Fact[int] = fact("failures that a trial meets again where it is resumed: NaN, a device-side assert")
    fail_before_pct: Fact[float] = fact(
        "median of before_pct for FAIL that follow none", label="memory before failures"
    )
    ok_before_pct: Fact[float] = fact("the same for COMPLETE and PRUNED", label="memory before other ends")
    p_memory: Fact[float] = fact(
        "one-sided Mann-Whitney, NaN below 5 of either", label="chance of this difference by luck (p)"
    )
    full_pct: Fact[float] = fact("share of these FAIL at 95 % or more", label="failures at 95 % or more")
    split_s: Fact[float] = fact("border between the two groups", label="border between")
    short_n: Fact[int] = fact("failures in the short group", label="fast failures")
    long_n: Fact[int] = fact("failures in the long group", label="slow failures")
    short_s: Fact[float] = fact("geometric mean of the short group", label="after about")
    long_s: Fact[float] = fact("geometric mean of the long group", label="those after about")
    ashman_d: Fact[float] = fact(
        "distance in standard deviations (Ashman 1994)", label="distance of the kinds (Ashman's D)"
    )
    p_one_group: Fact[float] = fact(
        "chance that failures of one kind split so far, by draws", label="chance of this distance by luck (p)"
    )


@memoized
def measure_failures(run: Run) -> FailuresProfile:
    """Failures of the run. Needs trials."""
    intervals = trial_ends(run)
    failed = intervals["state"] == "FAIL"
    first = intervals[failed & ~intervals["follows"]]
    fine = intervals[intervals["state"].isin(("COMPLETE", "PRUNED"))]
    bad_pct, ok_pct = first["before_pct"].dropna().to_numpy(), fine["before_pct"].dropna().to_numpy()
    columns = ["study", "trial", "name", "kind", "duration_s", "follows", "before_pct", "alone"]
    return FailuresProfile(
        failures=intervals.loc[failed, columns].sort_values(["study", "trial"], kind="stable", ignore_index=True),
        by_error=_by_error(run, intervals.loc[failed, "kind"]),
        by_kind=_by_kind(intervals.loc[failed, "kind"], classes_of_events(run)),
        n_finished=int(intervals["state"].isin(FINISHED).sum()),
        n_fail=int(failed.sum()),
        n_events=len(first),
        n_open=int((failed & intervals["may_follow"]).sum()),
        n_told=int((intervals.loc[failed, "kind"] != "unknown").sum()),
        n_recurring=int(intervals.loc[failed, "kind"].isin(RECURRING).sum()),
        fail_before_pct=float(np.median(bad_pct)) if len(bad_pct) else math.nan,
        ok_before_pct=float(np.median(ok_pct)) if len(ok_pct) else math.nan,
        p_memory=p_greater(bad_pct, ok_pct) if min(len(bad_pct), len(ok_pct)) >= 5 else math.nan,
        full_pct=100 * float((bad_pct >= FULL_PCT).mean()) if len(bad_pct) else math.nan,
        **two_groups(intervals.loc[failed & intervals["known"], "duration_s"].to_numpy(float)),
    )


def trial_ends(run: Run) -> pd.DataFrame:
    """One row a trial: what :func:`trial_intervals` says, name, kind, follows, before_pct and alone as in the profile,
    and may_follow, where that is open.
    """
    need_trials(run)
    return _ends(run).copy()


@memoized
def _ends(run: Run) -> pd.DataFrame:
    intervals = intervals_of(run)
    intervals["name"] = trial_names(intervals)
    intervals["kind"] = failure_classes(run.trials).to_numpy()
    intervals["follows"], intervals["may_follow"] = follows(run.trials.reset_index(drop=True), intervals)
    intervals["before_pct"] = _before(run, intervals)
    intervals["alone"] = _alone(run, intervals)
    return intervals


def _alone(run: Run, intervals: pd.DataFrame) -> np.ndarray:
    """By row whether it ended with no other trial running that may have been on its GPU; what is unknown may."""
    out = np.zeros(len(intervals), bool)
    known = intervals["known"].to_numpy() & ~without_own_times(run)
    began = (intervals["state"] != "WAITING").to_numpy()
    start, end = microseconds(intervals["start"]), microseconds(intervals["end"])
    end = np.where(intervals["end"].isna(), NEVER, end)
    gpus = measure_attribution(run).trials["gpu"].fillna("").astype(str).to_numpy()
    for own in np.unique(gpus[known]):
        names = set(own.split(","))
        beside = [other for other in np.unique(gpus) if not own or not other or names & set(other.split(","))]
        those, mine = began & np.isin(gpus, beside), known & (gpus == own)
        out[mine] = count_at(end[mine] - 1, start[those], end[those]) <= 1
    return out


def _before(run: Run, intervals: pd.DataFrame) -> np.ndarray:
    """Greatest share of memory in use in the 60 s before each end, on the trial's GPU, else on any."""
    out = np.full(len(intervals), math.nan)
    ended = intervals["end"].notna().to_numpy()
    if not run.info.clock.exact or run.gpu.empty or "mem_used_mib" not in run.gpu or not ended.any():
        return out
    totals = gpu_boards(run)["total_mib"]
    place, names = pd.factorize(measure_attribution(run).trials["gpu"][ended])
    end = microseconds(intervals["end"][ended])
    found = np.full(int(ended.sum()), math.nan)
    for gpu, part in by_gpu(cells(run, "mem_used_mib")):
        used = 100 * part["mem_used_mib"].to_numpy(float) / totals[gpu]
        time = microseconds(part["time"])
        named = np.array([*(gpu in str(of_one).split(",") for of_one in names), True])  # place -1 is unknown
        here = np.flatnonzero(named[place])
        low, high = (np.searchsorted(time, end[here] - lag) for lag in (int(BEFORE_S * SECOND_US), 0))
        found[here] = np.fmax(found[here], reduced(np.maximum, used, low, high))
    out[ended] = found
    return out


def classes_of_events(run: Run) -> pd.Series:
    """The class of failure that each log event names. How a recorded command ended is none: see the measure endings."""
    events = run.events
    if "path" in events:
        events = events[~(events["kind"].isin(ENDS) & events["path"].isin(recorded_paths(run)))]
    classes = (
        events["kind"]
        .map(classify)
        .where(lambda kind: ~kind.isin(["other", "unknown"]), events["detail"].map(classify))
    )
    return classes.where(~events["kind"].isin(CLASSES[:-2]), events["kind"])


def _by_kind(kinds: pd.Series, classes: pd.Series) -> pd.DataFrame:
    named = [name for name in CLASSES[:-2] if name != "stopped"]
    names = [name for name in CLASSES if (kinds == name).any() or (name in named and (classes == name).any())]
    rows = [(name, int((kinds == name).sum()), int((classes == name).sum())) for name in names]
    return pd.DataFrame(rows, columns=["kind", "n", "n_events"])


def _by_error(run: Run, kinds: pd.Series) -> pd.DataFrame:
    out = error_texts(failure_texts(run), kinds)
    return out.set_axis([str(place) for place in range(1, len(out) + 1)]).rename_axis("error").head(MOST_ERRORS)
