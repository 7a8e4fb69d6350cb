"""The course of a search: repeats, durations over time, waits over time, its end, and what was written down of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from gpudiag._run.directions import undirected
from gpudiag.facts import Column, Fact, Row, Rows, column, fact, table_of
from gpudiag.measures._time.concurrency import busy_stretches, count_at
from gpudiag.measures._time.microseconds import SECOND_US, microseconds
from gpudiag.measures._time.pauses import holds_pause, pauses
from gpudiag.measures._time.trial_intervals import intervals_of, trial_names, without_own_times
from gpudiag.measures._trials.broken_off import SearchPause, search_pauses
from gpudiag.measures._trials.chances import p_trend
from gpudiag.measures._trials.in_common import in_common
from gpudiag.measures._trials.left_idle import NOTHING, beside_the_last, within_trials
from gpudiag.measures._trials.placed import placed_trials, worker_counts
from gpudiag.measures._trials.repeats import describe_repeats, find_repeats, small_space
from gpudiag.measures._trials.worst_values import WorstValues, worst_values
from gpudiag.measures.base import Profile, TrialRow, need_trials
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import FINISHED, STATES
from gpudiag.statement import Statement

IQRS = 3.0
TIMES_MEDIAN = 3.0
MIN_GROUP = 10
MIN_DRIFT = 20
MIN_GAPS = 20


class LongTrial(TrialRow):
    """A COMPLETE or PRUNED trial (10 or more of the state) longer than the third quartile of log durations plus 3
    interquartile ranges, and than 3 medians of the state and of COMPLETE (one that was cut late is none); FAIL against
    all finished trials of the study.
    """

    name: Column[str] = column("its own name, else its number")
    state: Column[str] = column("state")
    duration_s: Column[float] = column("duration")
    median_s: Column[float] = column("median of its like")


class Contradiction(Row):
    """A setting that the data contradict."""

    what: Column[str] = column("setting", label="what changed")
    stated: Column[object] = column("as written down", label="written down")
    found: Column[object] = column("as the data show it", label="in the data")


class RepeatedTrial(TrialRow):
    """A trial with the parameters of an earlier one of its study that did not fail."""

    duration_s: Column[float] = column("duration; NaN unknown")
    together: Column[bool] = column("it started while an earlier one of the same parameters still ran")
    why: Column[str] = column(
        "enqueued, grid (GridSampler had tried each cell), seed (the sequence of a sampler once more), or empty"
    )


class ParameterChoice(Row):
    """A parameter of a space that is smaller than the search was long."""

    name: Column[str] = column("parameter")
    values: Column[object] = column("the values tried, in their order")


class SearchProfile(Profile, topic="search"):
    """Oddities of the search. Correlations are Spearman's; first and last are medians of the first and last third."""

    outliers: Rows = table_of(LongTrial)
    repeats: Rows = table_of(RepeatedTrial)
    space: Rows = table_of(ParameterChoice)
    stated: Rows = table_of(Contradiction)
    pauses: Rows = table_of(SearchPause)
    worst: Rows = table_of(WorstValues)
    n_with_params: Fact[int] = fact("trials with parameters")
    n_undirected: Fact[int] = fact("studies of several values of which nothing says which is better")
    n_duplicates: Fact[int] = fact(
        "trials whose parameters equal those of an earlier trial of the study that did not fail", label="repeated"
    )
    n_same_seed: Fact[int] = fact(
        "those that come in the order in which their parameters were drawn first, each next to the one before it",
        label="in the order of the first",
    )
    n_after_grid: Fact[int] = fact(
        "those that GridSampler began after each cell of its grid", label="after the whole grid"
    )
    n_enqueued: Fact[int] = fact("those that somebody enqueued", label="enqueued")
    duplicate_pct: Fact[float] = fact("their share of the trials with parameters")
    duplicate_worker_h: Fact[float] = fact(
        "the time they took; NaN where no time of any is known", label="time of the repeats"
    )
    n_combinations: Fact[float] = fact(
        "combinations of the values tried, where the space of the only study has fewer than it has trials with "
        "parameters and every trial has every parameter; NaN elsewhere",
        label="combinations of the values tried",
    )
    outlier_worker_h: Fact[float] = fact("the time of the outliers")
    outlier_idle_gpu_h: Fact[float] = fact(
        "idle time of GPUs that one of them had to itself; 0 without telemetry", label="GPU idle meanwhile"
    )
    outlier_idle_gpus: Fact[str] = fact("these GPUs, joined by commas")
    outlier_condition: Fact[Statement] = fact(
        "the value of a parameter that they have most oftener than other trials that ended well near them",
        label="in common",
    )
    n_outliers_compared: Fact[int] = fact("of them, those with that parameter")
    n_outliers_with: Fact[int] = fact("of them, those with that value", label="unusually long with it")
    n_others_compared: Fact[int] = fact("other trials that ended well with that parameter")
    n_others_with: Fact[int] = fact("other trials that ended well with that value", label="others with it")
    p_outlier_condition: Fact[float] = fact(
        "one-sided, exact within ten neighbors in the order of starts, times the values tried",
        label="chance of such a share by luck (p)",
    )
    outlier_held_mib: Fact[float] = fact("mean memory held on each of them then, the least; NaN where none was")
    drift_rho: Fact[float] = fact(
        "of start order and duration of COMPLETE trials of a study, 20 or more; of the study with the smallest p",
        label="rank correlation with the order",
    )
    drift_p: Fact[float] = fact("its p times the number of such studies", label="chance of such a drift by luck (p)")
    drift_ratio: Fact[float] = fact("last over first", label="last third to first")
    n_drift: Fact[int] = fact("trials that it rests on, of the study with most where none has enough")
    drift_study: Fact[str] = fact("the study, where there are several")
    drift_workers: Fact[int] = fact("the number of workers that it was judged with; 0 where it never changed")
    gap_rho: Fact[float] = fact(
        "of the gaps between trials of a worker and their order within a study, 20 or more; of the study with the "
        "smallest p",
        label="rank correlation with the order",
    )
    gap_p: Fact[float] = fact("its p times the number of such studies")
    gap_first_s: Fact[float] = fact("gap at first", label="gap at first")
    gap_last_s: Fact[float] = fact("gap at last", label="gap at last")
    gap_worker_h: Fact[float] = fact("time in gaps of all studies")
    n_gaps: Fact[int] = fact("gaps that it rests on, of the study with most where none has enough")
    gap_study: Fact[str] = fact("the study, where there are several")
    tail_s: Fact[float] = fact(
        "time at the end in which no trial began and the last ``n_tail`` ran alone, though more had run at once before",
        label="last trials alone",
    )
    n_tail: Fact[int] = fact(
        "how many: one, or up to half of those that ran at once where that left workers idle for longer in all"
    )
    tail_trials: Fact[str] = fact("their names, joined by commas")
    tail_idle_gpu_h: Fact[float] = fact(
        "time without a trial meanwhile of GPUs that trials ran on; 0 without telemetry", label="GPUs idle meanwhile"
    )
    tail_idle_gpus: Fact[str] = fact("these GPUs, joined by commas")
    tail_pct: Fact[float] = fact("its share of the time with trials", label="of the whole study")
    tail_idle_worker_h: Fact[float] = fact("what the other workers lost", label="workers idle meanwhile")
    peak: Fact[int] = fact("most trials at once")
    pause_s: Fact[float] = fact(
        "time between the first start and the last end in which no trial ran for an hour or more",
        label="without a trial",
    )
    longest_pause_s: Fact[float] = fact("the longest stretch of it", label="longest stretch")
    n_pauses: Fact[int] = fact("stretches")
    pause_pct: Fact[float] = fact("its share of the time from the first start to the last end", label="of the time")
    broken_off_s: Fact[float] = fact(
        "time in which no trial began or ended, an hour or more without any trial, behind trials that died or failed "
        "and whose studies went on later",
        label="nothing ran after it broke off",
    )
    longest_broken_off_s: Fact[float] = fact("the longest stretch of it", label="longest stretch")
    n_broken_off: Fact[int] = fact("stretches")
    broken_off_pct: Fact[float] = fact(
        "its share of the time from the first start to the last end, without other stretches of an hour or more in "
        "which no trial ran",
        label="of the time of the search",
    )
    n_timed: Fact[int] = fact("trials with start and end")
    trial_worker_h: Fact[float] = fact("their time")


@memoized
def measure_search(run: Run) -> SearchProfile:
    """The course of the search. Needs trials."""
    need_trials(run)
    intervals = intervals_of(run)
    outliers = _outliers(intervals)
    repeats, with_params = find_repeats(run)
    space = small_space(run, with_params)
    repeated = describe_repeats(run, intervals, repeats, small=not space.empty)
    seconds = intervals["duration_s"].fillna(0).to_numpy()
    repeats_timed = not repeats.any() or bool(repeated["duration_s"].notna().any())
    own = intervals[~without_own_times(run)]
    far = intervals.merge(outliers[["study", "trial"]].assign(far=True), "left", on=["study", "trial"])["far"].notna()
    common = in_common(run.trials.reset_index(drop=True), intervals, far, single=True)
    left_idle = within_trials(run, np.flatnonzero(far)) if far.any() else NOTHING
    return SearchProfile(
        outliers=outliers,
        repeats=repeated,
        space=space,
        stated=_stated(run),
        worst=worst_values(run, intervals, repeats),
        n_with_params=int(with_params.sum()),
        n_undirected=len(undirected(run)),
        n_duplicates=int(repeats.sum()),
        n_same_seed=int((repeated["why"] == "seed").sum()),
        n_after_grid=int((repeated["why"] == "grid").sum()),
        n_enqueued=int((repeated["why"] == "enqueued").sum()),
        duplicate_pct=100 * float(repeats.sum()) / float(with_params.sum()) if with_params.any() else math.nan,
        duplicate_worker_h=float(seconds[repeats].sum() / 3600) if repeats_timed else math.nan,
        n_combinations=float(math.prod(map(len, space["values"]))) if len(space) else math.nan,
        outlier_worker_h=float(outliers["duration_s"].sum() / 3600),
        outlier_idle_gpu_h=left_idle.gpu_h,
        outlier_idle_gpus=left_idle.gpus,
        outlier_condition=common.condition,
        n_outliers_compared=common.n_bad,
        n_outliers_with=common.bad_with,
        n_others_compared=common.n_well,
        n_others_with=common.well_with,
        p_outlier_condition=common.p,
        outlier_held_mib=left_idle.all_held_mib,
        **_drift(run, own),
        **_gap_growth(own),
        **_tail(run, own),
        **_pauses(run),
        n_timed=int(own["known"].sum()),
        trial_worker_h=float(seconds.sum() / 3600),
    )


def _outliers(intervals: pd.DataFrame) -> pd.DataFrame:
    """Failures come early or late, so that theirs are held against all finished trials of the study."""
    parts = []
    finished = intervals[(intervals["duration_s"] > 0) & intervals["state"].isin(FINISHED)]
    for (study, state), group in finished.groupby(["study", "state"]):
        others = finished[finished["study"] == study] if state == "FAIL" else group
        if len(others) < MIN_GROUP:
            continue
        low, middle, high = np.quantile(np.log(others["duration_s"].to_numpy()), [0.25, 0.5, 0.75])
        least = max(high + IQRS * (high - low), middle + math.log(TIMES_MEDIAN))
        full = finished.loc[(finished["study"] == study) & (finished["state"] == "COMPLETE"), "duration_s"].median()
        far = (np.log(group["duration_s"]) > least) & ~(group["duration_s"] <= TIMES_MEDIAN * full)
        parts.append(group[far].assign(median_s=math.exp(middle)))
    columns = ["study", "trial", "name", "state", "duration_s", "median_s"]
    found = pd.concat(parts) if parts else intervals.assign(median_s=math.nan).iloc[:0]
    found = found.assign(name=trial_names(found, several=intervals["study"].nunique() > 1))[columns]
    return found.sort_values(["duration_s", "study", "trial"], ascending=[False, True, True], ignore_index=True)


def _stated(run: Run) -> pd.DataFrame:
    counts = run.trials["state"].value_counts()  # as the storage counts, and so did who wrote the setting down
    known = {state: int(counts.get(state, 0)) for state in STATES}
    known |= {"trials": len(run.trials), "n_trials": len(run.trials)}
    lookup = {name.lower(): value for name, value in known.items()}
    rows = [
        (name, float(value), float(lookup[name.lower()]))
        for name, value in sorted(run.info.stated.items())
        if name.lower() in lookup
    ]
    return pd.DataFrame(rows, columns=["what", "stated", "found"])


def _drift(run: Run, intervals: pd.DataFrame) -> dict[str, Any]:
    """Of the study that drifts most surely: studies differ in length, which is no drift.

    Nor is it one that trials get shorter where fewer run beside them: where the number of workers changed, only trials
    count that started and ended while the one held that held for most of them.
    """
    done = intervals[intervals["known"] & (intervals["state"] == "COMPLETE")].sort_values(["start", "study", "trial"])
    done, n_workers = _while_the_same(run, done)
    time_series = {str(study): group["duration_s"].to_numpy() for study, group in done.groupby("study")}
    trends = {study: _trend(seconds, MIN_DRIFT) for study, seconds in time_series.items() if len(seconds) >= MIN_DRIFT}
    if not trends:
        most = max(time_series, key=lambda study: len(time_series[study]), default="")
        return {
            "drift_rho": math.nan,
            "drift_p": math.nan,
            "drift_ratio": math.nan,
            "n_drift": len(time_series.get(most, ())),
            "drift_study": most if intervals["study"].nunique() > 1 else "",
            "drift_workers": n_workers,
        }
    study, (rho, p, first, last) = min(trends.items(), key=lambda item: item[1][1])
    return {
        "drift_rho": rho,
        "drift_p": min(p * len(trends), 1.0),  # Bonferroni: the best of many studies is chosen
        "drift_ratio": last / first if first > 0 else math.nan,
        "n_drift": len(time_series[study]),
        "drift_study": study if intervals["study"].nunique() > 1 else "",
        "drift_workers": n_workers,
    }


def _while_the_same(run: Run, done: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Those within the stretch of one number of workers that holds most of them, and the number; all of them and 0
    where it never changed.
    """
    if done.empty:
        return done, 0
    times, number = worker_counts(run)
    if len(times) < 2:
        return done, 0
    start = np.searchsorted(times, microseconds(done["start"]), "right") - 1
    end = np.searchsorted(times, microseconds(done["end"]) - 1, "right") - 1
    inside = np.maximum(start, 0) == np.maximum(end, 0)
    places, counts = np.unique(np.maximum(start, 0)[inside], return_counts=True)
    if not len(places):
        return done[:0], 0
    most = int(places[int(np.argmax(counts))])
    return done[inside & (np.maximum(start, 0) == most)], int(number[most])


def _gap_growth(intervals: pd.DataFrame) -> dict[str, Any]:
    """Of the study whose gaps change most surely, in order of their ends; pauses of the whole run are none."""
    known = intervals[intervals["known"]]
    across = pauses(microseconds(known["start"]), microseconds(known["end"]))
    gaps: dict[str, np.ndarray] = {}
    for study, own in known.groupby("study"):
        waits = _waits(microseconds(own["start"]), microseconds(own["end"]))
        waits = waits[np.argsort(waits[:, 1], kind="stable")]
        waits = waits[~holds_pause(waits[:, 0], waits[:, 1], across)]
        gaps[str(study)] = (waits[:, 1] - waits[:, 0]) / SECOND_US
    trends = {study: _trend(of, MIN_GAPS) for study, of in gaps.items() if len(of) >= MIN_GAPS}
    most = max(gaps, key=lambda study: len(gaps[study]), default="")
    chosen = min(trends, key=lambda study: trends[study][1], default=most)
    rho, p, first, last = trends.get(chosen, (math.nan,) * 4)
    return {
        "gap_rho": rho, "gap_p": min(p * len(trends), 1.0) if trends else p, "gap_first_s": first, "gap_last_s": last,
        "gap_study": chosen if len(gaps) > 1 else "", "n_gaps": len(gaps.get(chosen, ())),
        "gap_worker_h": float(sum(of.sum() for of in gaps.values())) / 3600,
    }  # fmt: skip


def _waits(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Each start waits since the latest end that no other start has taken: a worker that left leaves no gap behind."""
    ends = np.sort(end).tolist()
    free: list[int] = []
    waits, ended = [], 0
    for begin in np.sort(start).tolist():
        while ended < len(ends) and ends[ended] <= begin:
            free.append(ends[ended])
            ended += 1
        if free:
            waits.append((free.pop(), begin))
    return np.array(waits, np.int64).reshape(-1, 2)


def _trend(values: np.ndarray, least: int) -> tuple[float, float, float, float]:
    """Spearman's rho with the order, its two-sided p, and the medians of the first and the last third."""
    n = len(values)
    if n < least:
        return math.nan, math.nan, math.nan, math.nan
    third = n // 3
    first, last = float(np.median(values[:third])), float(np.median(values[-third:]))
    return *p_trend(values), first, last


def _pauses(run: Run) -> dict[str, Any]:
    """Stretches of an hour or more in which no trial ran, open ones counted to where they most likely ended."""
    placed, found = placed_trials(run), search_pauses(run)
    lengths, broke_off = found["pause_s"], found["broke_off"] != ""
    unseen_s = found["unseen_s"][broke_off]
    span_s = (placed["end"].max() - placed["start"].min()).total_seconds() if len(placed) else math.nan
    searched_s = span_s - float(lengths[~broke_off].sum())
    return {
        "pauses": found,
        "pause_s": float(lengths.sum()) if len(placed) else math.nan,
        "longest_pause_s": float(lengths.max()) if len(found) else 0.0 if len(placed) else math.nan,
        "n_pauses": len(found),
        "pause_pct": 100 * float(lengths.sum()) / span_s if span_s else math.nan,
        "broken_off_s": float(unseen_s.sum()),
        "longest_broken_off_s": float(unseen_s.max()) if len(unseen_s) else 0.0,
        "n_broken_off": len(unseen_s),
        "broken_off_pct": min(100 * float(unseen_s.sum()) / searched_s, 100.0) if searched_s else math.nan,
    }


def _tail(run: Run, intervals: pd.DataFrame) -> dict[str, Any]:
    known = intervals[intervals["known"]]
    unknown: dict[str, Any] = {
        "tail_s": math.nan,
        "tail_pct": math.nan,
        "n_tail": 0,
        "tail_trials": "",
        "tail_idle_worker_h": math.nan,
        "tail_idle_gpu_h": math.nan,
        "tail_idle_gpus": "",
        "peak": 0,
    }
    if known.empty or intervals["state"].eq("RUNNING").any():
        return unknown
    start, end = microseconds(known["start"]), microseconds(known["end"])
    left, right = busy_stretches(start, end)
    if not len(left):
        return unknown
    # From a stretch of work apart from the last one nobody can tell that its end was waited for.
    inside = (start >= left[-1]) & (end <= right[-1])
    peak = int(count_at(start[inside], start[inside], end[inside]).max(initial=0))
    ends = np.sort(end[inside])
    alone_us = {
        n: max(int(ends[-1]) - max(int(ends[-1 - n]), int(start[inside].max())), 0)
        for n in range(1, max(peak // 2, 1) + 1)
        if n < len(ends) and peak > 1
    } or {1: 0}
    n_tail = max(alone_us, key=lambda n: (peak - n) * alone_us[n])
    alone = alone_us[n_tail]
    last = (known[end > right[-1] - alone] if alone else known[:0]).sort_values(["study", "trial"], kind="stable")
    idle = beside_the_last(run, int(right[-1]) - alone, int(right[-1])) if alone else NOTHING
    return {
        "tail_s": alone / SECOND_US,
        "tail_pct": 100 * alone / float((right - left).sum()),
        "n_tail": n_tail,
        "tail_trials": ", ".join(trial_names(last, several=intervals["study"].nunique() > 1)),
        "tail_idle_worker_h": (peak - n_tail) * alone / SECOND_US / 3600 if peak else 0.0,
        "tail_idle_gpu_h": idle.gpu_h,
        "tail_idle_gpus": idle.gpus,
        "peak": peak,
    }
