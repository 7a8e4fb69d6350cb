"""Crashes by class and by number of trials at once, and whether memory had to do with them (METHODS 6).

The classes are kept apart: a device-side assert or a killed process says nothing about GPU memory. A failure that only
follows another one in a poisoned process is part of that event.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from gpudiag.measures._time.concurrency import count_at
from gpudiag.measures._time.microseconds import SECOND_US, microseconds
from gpudiag.measures._time.trial_intervals import HANDOVER_US
from gpudiag.measures._trials.abandoned import find_open_trials
from gpudiag.measures._trials.chances import p_greater, p_more_often
from gpudiag.measures._trials.proportions import clopper_pearson_pct
from gpudiag.measures.attribution import measure_attribution
from gpudiag.measures.failures import FULL_PCT, trial_ends
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import FINISHED

MIN_GROUP = 5
"""Below so many of either the Mann-Whitney test is not made (METHODS 6: power close to 1 for 5)."""
TOGETHER_US = 5 * SECOND_US
LOST = "lost"
"""A trial that was left RUNNING: its process ended without a word."""
LONGEST_RESTART_S = 6 * 3600.0
"""A worker that stood empty for longer was stopped by somebody (a default without a published source)."""
MIN_SEEN = 30
"""Ends of trials at a level from which on its own crashes say more than a forecast (a default without a published
source)."""


@dataclass(frozen=True, eq=False)
class Crashes:
    """``by_class``: kind, n_trials, n_events (less those that follow another in a poisoned process), event_pct with
    low_pct and high_pct (Clopper-Pearson 95 % of independent ends), before_pct (median of the greatest memory in use in
    the 60 s before), full_pct (share of events at 95 % or more), p_memory (one-sided Mann-Whitney of before_pct
    against trials that ended well; NaN below 5 of either).
    ``by_level``: k (trials on the GPU at the end of one, itself among them), n (ends of trials, less those that
    follow), oom_events with oom_pct, oom_low_pct, oom_high_pct, other_events with other_pct, other_low_pct,
    other_high_pct; p_fisher: one-sided, whether oom is more frequent than at all lower k (NaN at the lowest).
    ``failed``: index k, n_ended (all ends of trials, those that follow included), n_failed (of them).
    ``n``: independent ends. ``success_streak``: longest run of trials in order of their end without a failure.
    ``restart_s``: seconds from the end of each event to the next trial of its worker. ``takes_all``: whether an
    overflow usually ends the trials beside it as well. ``ok_before_pct``: before_pct of trials that ended well.
    ``crashed_s``, ``well_s``: seconds of trials that failed by themselves, and of COMPLETE and PRUNED ones.
    """

    by_class: pd.DataFrame
    by_level: pd.DataFrame
    failed: pd.DataFrame
    n: int
    n_finished: int
    success_streak: int
    restart_s: np.ndarray
    oom_restart_s: np.ndarray
    takes_all: bool
    ok_before_pct: float
    crashed_s: np.ndarray
    well_s: np.ndarray

    def events(self, kind: str = "") -> int:
        """Number of events of a class; of all classes together without one, for streaks and restarts only."""
        rows = self.by_class if not kind else self.by_class[self.by_class["kind"] == kind]
        return int(rows["n_events"].sum())


@memoized
def find_crashes(run: Run) -> Crashes:
    """The crashes of a run. Needs trials."""
    ends = trial_ends(run)
    ends["level"] = _levels(run, ends)
    finished = ends[ends["state"].isin(FINISHED)]
    single = finished[~finished["follows"]]
    well = single.loc[single["state"] != "FAIL", "before_pct"].dropna().to_numpy()
    opens = find_open_trials(run)
    restarts = _restarts(ends)
    return Crashes(
        by_class=_by_class(finished, single, well, int(opens["abandoned"].sum())),
        by_level=_by_level(single),
        failed=_failed(finished),
        n=len(single),
        n_finished=len(finished),
        success_streak=_streak(single),
        restart_s=restarts["gap_s"].to_numpy(),
        oom_restart_s=restarts.loc[restarts["kind"] == "oom", "gap_s"].to_numpy(),
        takes_all=_takes_all(finished),
        ok_before_pct=float(np.median(well)) if len(well) else math.nan,
        crashed_s=_seconds(single[single["state"] == "FAIL"]),
        well_s=_seconds(single[single["state"] != "FAIL"]),
    )


def _seconds(ends: pd.DataFrame) -> np.ndarray:
    """How long the trials with a known start and end took."""
    known = ends[ends["known"] & ends["start"].notna()]
    return (microseconds(known["end"]) - microseconds(known["start"])) / SECOND_US


def _levels(run: Run, ends: pd.DataFrame) -> np.ndarray:
    """Trials on the same GPU just before the end of each, itself among them; NaN without an end or a GPU."""
    out = np.full(len(ends), np.nan)
    known = ends["known"].to_numpy()
    gpu = np.full(len(ends), "", dtype=object)
    if not run.gpu.empty:
        gpu = measure_attribution(run).trials["gpu"].fillna("").to_numpy(object)
    for name in pd.unique(gpu[known]):
        here = known & (gpu == name)
        start, end = microseconds(ends.loc[here, "start"]), microseconds(ends.loc[here, "end"])
        out[here] = np.maximum(count_at(end - 1, start, end), 1)
    return out


def _by_class(finished: pd.DataFrame, single: pd.DataFrame, well: np.ndarray, n_lost: int) -> pd.DataFrame:
    rows = []
    failed, events = finished[finished["state"] == "FAIL"], single[single["state"] == "FAIL"]
    for kind, own in failed.groupby("kind", sort=False):
        mine = events[events["kind"] == kind]
        before = mine["before_pct"].dropna().to_numpy()
        rows.append({
            "kind": kind, "n_trials": len(own), "n_events": len(mine), **_share(len(mine), len(single), ""),
            "before_pct": float(np.median(before)) if len(before) else math.nan,
            "full_pct": 100 * float((before >= FULL_PCT).mean()) if len(before) else math.nan,
            "p_memory": _higher(before, well),
        })  # fmt: skip
    if n_lost:
        unknown = {"before_pct": math.nan, "full_pct": math.nan, "p_memory": math.nan}
        rows.append(
            {"kind": LOST, "n_trials": n_lost, "n_events": n_lost, **_share(n_lost, len(single), ""), **unknown}
        )
    columns = [
        "kind", "n_trials", "n_events", "event_pct", "low_pct", "high_pct", "before_pct", "full_pct", "p_memory",
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns).sort_values(
        "n_events", ascending=False, kind="stable", ignore_index=True
    )


def _by_level(single: pd.DataFrame) -> pd.DataFrame:
    rows = []
    failed, oom = single["state"] == "FAIL", single["kind"] == "oom"
    counts = pd.DataFrame({"level": single["level"], "oom": failed & oom, "other": failed & ~oom, "n": 1})
    below = np.zeros(2, int)
    for level, part in counts.groupby("level"):
        n, n_oom, n_other = len(part), int(part["oom"].sum()), int(part["other"].sum())
        p = p_more_often(n_oom, n, int(below[0]), int(below.sum())) if below.sum() else math.nan
        rows.append({
            "k": int(level), "n": n, "oom_events": n_oom, **_share(n_oom, n, "oom_"),
            "other_events": n_other, **_share(n_other, n, "other_"), "p_fisher": p,
        })  # fmt: skip
        below += (n_oom, n - n_oom)
    columns = [
        "k", "n", "oom_events", "oom_pct", "oom_low_pct", "oom_high_pct",
        "other_events", "other_pct", "other_low_pct", "other_high_pct", "p_fisher",
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def _failed(finished: pd.DataFrame) -> pd.DataFrame:
    """All ends at a level and how many of them were failures, as somebody who counts trials has them."""
    known = finished[finished["level"].notna()]
    counted = (known["state"] == "FAIL").groupby(known["level"].astype(int)).agg(["size", "sum"])
    return counted.set_axis(["n_ended", "n_failed"], axis=1).rename_axis("k")


def _share(hits: int, n: int, prefix: str) -> dict[str, float]:
    low, high = clopper_pearson_pct(min(hits, n), n)
    name = f"{prefix}pct" if prefix else "event_pct"
    return {name: 100 * hits / n if n else math.nan, f"{prefix}low_pct": low, f"{prefix}high_pct": high}


def _higher(bad: np.ndarray, well: np.ndarray) -> float:
    if min(len(bad), len(well)) < MIN_GROUP:
        return math.nan
    return p_greater(bad, well)


def _streak(single: pd.DataFrame) -> int:
    """Longest run of ends without a failure."""
    failed = (single.sort_values("end", kind="stable")["state"] == "FAIL").to_numpy()
    borders = np.concatenate([[-1], np.flatnonzero(failed), [len(failed)]])
    return int(np.diff(borders).max() - 1)


def _restarts(ends: pd.DataFrame) -> pd.DataFrame:
    """kind, gap_s: from each failure to the next trial of its worker; where others followed it, from the last of them.

    An end that a start follows within 2 s kept its process. The ends left over are joined in order with the starts left
    over: after a restart nobody knows who took which trial, but in the sum nothing is lost.
    """
    known = ends[ends["known"]].sort_values("end", kind="stable")
    end = microseconds(known["end"])
    start = microseconds(known["start"])
    order = np.argsort(start, kind="stable")
    begun, follows = start[order], known["follows"].to_numpy()[order]
    failed, kinds = (known["state"] == "FAIL").to_numpy(), known["kind"].to_numpy()
    free_ends, used = [], 0
    rows: list[tuple[str, float]] = []
    taken = np.zeros(len(begun), bool)
    for i, timestamp in enumerate(end.tolist()):
        used = max(used, int(np.searchsorted(begun, timestamp)))
        if used < len(begun) and begun[used] - timestamp <= HANDOVER_US:
            taken[used] = True
            if failed[i] and not follows[used]:
                rows.append((kinds[i], (begun[used] - timestamp) / SECOND_US))
            used += 1
        else:
            free_ends.append(i)
    free_starts = begun[~taken]
    place = 0
    for i in free_ends:
        while place < len(free_starts) and free_starts[place] < end[i]:
            place += 1
        if place == len(free_starts):
            break
        if failed[i]:
            rows.append((kinds[i], (free_starts[place] - end[i]) / SECOND_US))
        place += 1
    out = pd.DataFrame(rows, columns=["kind", "gap_s"])
    return out[out["gap_s"].astype(float) <= LONGEST_RESTART_S]


def _takes_all(finished: pd.DataFrame) -> bool:
    """Whether most overflows with other trials beside them ended one of those within 5 s."""
    failed = finished[(finished["state"] == "FAIL") & finished["known"]]
    oom = failed[(failed["kind"] == "oom") & (failed["level"] > 1)]
    if oom.empty:
        return False
    ends = np.sort(microseconds(failed["end"]))
    at = microseconds(oom["end"])
    near = np.searchsorted(ends, at + TOGETHER_US, "right") - np.searchsorted(ends, at - TOGETHER_US, "left")
    return bool((near > 1).mean() > 0.5)
