"""How often trials failed by how many ran at once, whether that has to do with it, and what failed trials share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from gpudiag.facts import Column, Fact, Row, Rows, column, fact, table_of
from gpudiag.measures._time.concurrency import count_at
from gpudiag.measures._time.microseconds import SECOND_US, distinct, microseconds
from gpudiag.measures._time.trial_intervals import need_own_times
from gpudiag.measures._trials.failure_periods import rates
from gpudiag.measures._trials.in_common import in_common
from gpudiag.measures._trials.placed import placed_trials, placed_us, worker_counts
from gpudiag.measures._trials.split import best_split
from gpudiag.measures.base import Profile, need_trials
from gpudiag.measures.failures import trial_ends
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import FINISHED
from gpudiag.statement import Statement


class FailureLevel(Row):
    """A number of trials at once; how the trials ended at whose end so many ran, themselves among them."""

    n_ended: Column[int] = column("trials that finished at it")
    n_fail: Column[int] = column("FAIL of these", label="failed trials")
    fail_pct: Column[float] = column("their share", label="failed")
    fail_low_pct: Column[float] = column("lower end of its Wilson 95 % interval")
    fail_high_pct: Column[float] = column("upper end of its Wilson 95 % interval")
    n_oom: Column[int] = column("those out of GPU memory")
    trial_h: Column[float] = column("time of trials at this level")


class FailureSplit(Row):
    """The border in a number from which on most more trials failed. Of the study with most failures, in the order of
    ends; without trials that followed another one in a poisoned process, without the failure with which a worker left,
    and of trials at once without those that ended after the last start.
    """

    kind: Column[str] = column("oom, or other for all others")
    by: Column[str] = column("workers or level (trials at once)")
    least: Column[float] = column("the border", label="from so many on")
    n_more: Column[int] = column("trials from it on", label="trials from it on")
    fail_more: Column[int] = column("those of the kind", label="failed from it on")
    n_less: Column[int] = column("trials below it", label="trials below it")
    fail_less: Column[int] = column("those of the kind", label="failed below it")
    n_left_out: Column[int] = column("finished trials not counted, for the reasons above", label="trials not counted")
    p_split: Column[float] = column(
        "one-sided Fisher, times the borders and tests tried", label="chance of this difference by luck (p)"
    )
    aligned_pct: Column[float] = column(
        "part of the other times at which the same course would tell them as well",
        label="other times that fit as well",
    )


class FailureCount(Row):
    """One number of a :class:`FailureSplit`, and how the trials ended at whose end it held; the greatest first."""

    kind: Column[str] = column("oom or other")
    by: Column[str] = column("workers or level")
    number: Column[int] = column("workers, or trials at once")
    n_counted: Column[int] = column("trials")
    n_of_kind: Column[int] = column("those of the kind")


class FailureRatesProfile(Profile, topic="failure_rates"):
    """How often trials failed by how many ran at once; ``by_period`` of the trials says it by number of workers."""

    by_level: Rows = table_of(FailureLevel)
    splits: Rows = table_of(FailureSplit)
    counts: Rows = table_of(FailureCount)
    n_ended: Fact[int] = fact("finished trials with a known end")
    n_fail: Fact[int] = fact("FAIL of these")
    n_oom: Fact[int] = fact("those out of GPU memory", label="out of GPU memory")
    condition: Fact[Statement] = fact(
        "the value of a parameter that trials out of memory have most oftener than trials that ended well between the "
        "first and the last of them",
        label="in common",
    )
    n_oom_compared: Fact[int] = fact("trials out of memory with that parameter")
    n_oom_with: Fact[int] = fact("trials out of memory with that value", label="out of memory with it")
    n_well_compared: Fact[int] = fact("trials that ended well with that parameter")
    n_well_with: Fact[int] = fact("trials that ended well with that value", label="ended well with it")
    p_condition: Fact[float] = fact(
        "one-sided, exact within ten neighbors in the order of starts, times the values tried",
        label="chance of such a share by luck (p)",
    )


@memoized
def measure_failure_rates(run: Run) -> FailureRatesProfile:
    """Failures by workers and by trials at once. Needs trials with start and end."""
    need_trials(run)
    need_own_times(run)
    ends = _ends(run)
    failed = ends["state"] == "FAIL"
    n_oom = int((failed & (ends["kind"] == "oom")).sum())
    tests = _tests(run, ends)
    return FailureRatesProfile(
        by_level=_levels(run, ends),
        splits=_splits(tests, len(ends)),
        counts=_counts(tests),
        n_ended=len(ends),
        n_fail=int(failed.sum()),
        n_oom=n_oom,
        **_of_memory(run, ends),
    )


def _ends(run: Run) -> pd.DataFrame:
    """Finished trials with a known end, in order of their ends: ``n_workers`` and ``level`` just before it."""
    ends = trial_ends(run)
    ends = ends[ends["known"] & ends["state"].isin(FINISHED)]
    ends = ends.sort_values(["end", "study", "trial"], kind="stable")
    if ends.empty:
        return ends.assign(n_workers=0, level=0)
    placed, before = placed_trials(run), microseconds(ends["end"]) - 1
    times, number = worker_counts(run)
    at = np.clip(np.searchsorted(times, before, "right") - 1, 0, None)
    level = count_at(before, microseconds(placed["start"]), microseconds(placed["end"]))
    return ends.assign(n_workers=number[at] if len(number) else 0, level=np.maximum(level, 1))


def _levels(run: Run, ends: pd.DataFrame) -> pd.DataFrame:
    if ends.empty:
        return pd.DataFrame(columns=list(FailureLevel.declared())).rename_axis("level")
    start, end = placed_us(run)
    times = distinct(start, end)
    count, held = count_at(times, start, end), np.diff(times, append=times[-1]) / SECOND_US / 3600
    rows = {
        str(level): {**rates(part), "trial_h": float(level * held[count == level].sum())}
        for level, part in ends.groupby("level")
    }
    names = pd.Index(list(rows), name="level", dtype=object)
    return pd.DataFrame(list(rows.values()), names, columns=list(FailureLevel.declared()))


Test = tuple[str, str, np.ndarray, np.ndarray]
"""Kind, by, whether each trial failed so, and the number that held at its end."""


def _tests(run: Run, ends: pd.DataFrame) -> list[Test]:
    """Each kind of failure against workers, where their number changed, and against trials at once."""
    failed = ends["state"] == "FAIL"
    usual = ends.loc[failed, "study"].mode()
    mine = ends[~ends["follows"] & ends["study"].eq(usual.iloc[0])] if len(usual) else ends[:0]
    mine = mine.drop(mine.index.intersection(_left_failing(run, ends)))
    oom = (mine["state"] == "FAIL") & (mine["kind"] == "oom")
    running = mine["end"] <= ends["start"].max()
    return [
        (kind, by, here[rows].to_numpy(bool), mine.loc[rows, name].to_numpy())
        for kind, here in (("oom", oom), ("other", (mine["state"] == "FAIL") & ~oom))
        for by, name, rows in (("workers", "n_workers", slice(None)), ("level", "level", running))
        if here.any() and mine.loc[rows, name].nunique() > 1
    ]


def _splits(tests: list[Test], n_ended: int) -> pd.DataFrame:
    rows = []
    for kind, by, hits, number in tests:
        found = best_split(hits, number)
        counts = {name: getattr(found, name) for name in ("least", "n_more", "fail_more", "n_less", "fail_less")}
        p = min(1.0, found.p * len(tests))
        left_out = n_ended - len(hits)
        rows.append(
            {"kind": kind, "by": by, **counts, "n_left_out": left_out, "p_split": p, "aligned_pct": 100 * found.aligned}
        )
    return pd.DataFrame(rows, columns=list(FailureSplit.declared()))


def _counts(tests: list[Test]) -> pd.DataFrame:
    rows = [
        (kind, by, int(value), int((number == value).sum()), int(hits[number == value].sum()))
        for kind, by, hits, number in tests
        for value in np.unique(number)[::-1]
    ]
    return pd.DataFrame(rows, columns=list(FailureCount.declared()))


def _left_failing(run: Run, ends: pd.DataFrame) -> pd.Index:
    """Rows of ``ends`` that are failures with which a worker left: that they are its last says why it left, and the
    number of workers falls because of them.
    """
    placed = placed_trials(run)
    last = placed.sort_values("end", kind="stable").groupby("worker").tail(1)
    gone = last[(last["state"] == "FAIL") & (last["end"] < placed["start"].max())]
    keys = pd.MultiIndex.from_frame(gone[["study", "trial"]])
    return ends.index[pd.MultiIndex.from_frame(ends[["study", "trial"]]).isin(keys)]


def _of_memory(run: Run, ends: pd.DataFrame) -> dict[str, Any]:
    """What trials out of memory have much oftener than those that ended well meanwhile; fields of the profile."""
    oom = (ends["state"] == "FAIL") & (ends["kind"] == "oom")
    found = in_common(run.trials.reset_index(drop=True).loc[ends.index], ends, oom)
    return {
        "condition": found.condition,
        "n_oom_compared": found.n_bad,
        "n_oom_with": found.bad_with,
        "n_well_compared": found.n_well,
        "n_well_with": found.well_with,
        "p_condition": found.p,
    }
