"""Failures that follow from the one before them on the same worker: its error left the process unusable."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gpudiag.measures._time.microseconds import microseconds
from gpudiag.measures._time.trial_intervals import HANDOVER_US
from gpudiag.measures._trials.chances import p_more_often
from gpudiag.measures._trials.in_common import having_in_common

POISONING = ("device_assert", "illegal_access", "unknown")
SHORT_SHARE = 0.1
SHORT_S = 30.0
BY_CHANCE = 0.01
"""Chance of so many short failures right behind failures, were they as frequent behind trials that ended well, up to
which they are no coincidence."""
TOLD_BY_CHANCE = 0.5
"""The same where the error tells that it poisons its process: failures that are as frequent elsewhere speak against."""


def follows(trials: pd.DataFrame, ends: pd.DataFrame) -> np.ndarray:
    """True for a FAIL that is short and comes right after a FAIL of a kind that poisons, on the same worker, where
    short failures come oftener there than after trials that ended well. Those that share a value of a parameter, which
    others near them lack, would have failed anywhere, and are left out.

    ``trials`` and ``ends`` (of the same trials study, state, start, end, duration_s, known, kind) have the same rows.
    Short is a tenth of the usual duration; where no trial ended well, of the longest of the failures in a row before
    it. Without workers, right after means within 2 s of the other's end: the worker was handed over.
    """
    out = np.zeros(len(ends), bool)
    place, before = _in_rows(trials, ends)
    fails = (ends["state"].eq("FAIL") & ends["kind"].isin(POISONING)).to_numpy()
    well = (ends["known"] & ends["state"].isin(("COMPLETE", "PRUNED"))).to_numpy()
    lasted_s = ends["duration_s"].to_numpy(float)
    usual_s = float(np.median(lasted_s[well])) if well.any() else 0.0
    compared_s = np.full(len(ends), usual_s) if usual_s > 0 else _longest_before(place, before, fails, lasted_s)
    short = fails & (lasted_s <= np.minimum(SHORT_S, SHORT_SHARE * compared_s))
    after_fail, after_well = (np.zeros(len(ends), bool) for _ in range(2))
    behind = before >= 0
    after_fail[place[behind]], after_well[place[behind]] = fails[before[behind]], well[before[behind]]
    if not (short & after_fail).any():
        return out
    anywhere = having_in_common(trials, ends, pd.Series(short, ends.index), BY_CHANCE)
    told = ends["kind"].ne("unknown").to_numpy()
    for kind, limit in ((told, TOLD_BY_CHANCE), (~told, BY_CHANCE)):
        hits, rest = short & kind & ~anywhere, ~anywhere
        counts = [(int((hits & group).sum()), int((rest & group).sum())) for group in (after_fail, after_well)]
        if not usual_s > 0 or p_more_often(*counts[0], *counts[1]) <= limit:
            out |= hits & after_fail
    return out


def _in_rows(trials: pd.DataFrame, ends: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the trials with known times, in an order in which each comes behind the one before it on its worker, and
    that one's row, -1 where there is none.
    """
    known = ends[ends["known"]].assign(row=np.flatnonzero(ends["known"]))
    worker = trials["worker"].to_numpy()[known["row"]] if "worker" in trials else None
    if worker is not None and not pd.isna(worker).any():
        known = known.assign(worker=worker).sort_values(["worker", "start", "end"], kind="stable")
        before = known.groupby("worker")["row"].shift(fill_value=-1).to_numpy(np.int64)
        return known["row"].to_numpy(), before
    known = known.sort_values(["end", "start", "study", "trial"], kind="stable")
    row, start, ended = known["row"].to_numpy(), microseconds(known["start"]), microseconds(known["end"])
    at = np.minimum(np.searchsorted(ended, start, "right"), np.arange(len(row))) - 1
    near = (at >= 0) & (start - ended[at] <= HANDOVER_US)
    return row, np.where(near, row[at], -1)


def _longest_before(place: np.ndarray, before: np.ndarray, fails: np.ndarray, lasted_s: np.ndarray) -> np.ndarray:
    """By row the longest of the failures in a row that end with the one before it; NaN where that did not fail."""
    out = np.full(len(fails), np.nan)
    for row, last in zip(place.tolist(), before.tolist(), strict=True):
        if last >= 0 and fails[last]:
            out[row] = np.fmax(lasted_s[last], out[last])
    return out
