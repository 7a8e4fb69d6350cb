"""Failures that follow from the one before them on the same worker: its error left the process unusable."""

from __future__ import annotations

from typing import NamedTuple

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


class Followers(NamedTuple):
    """By trial whether it follows from the failure before it, and whether that is open."""

    sure: np.ndarray
    open: np.ndarray


def follows(trials: pd.DataFrame, ends: pd.DataFrame) -> Followers:
    """A FAIL that is short and comes right after a FAIL of a kind that poisons, on the same worker, follows from it
    where short failures come oftener there than after trials that ended well. Those that share a value of a parameter,
    which others near them lack, would have failed anywhere, and are left out.

    ``trials`` and ``ends`` (of the same trials study, state, start, end, duration_s, known, kind) have the same rows.
    Short is a tenth of the usual duration of the study; where none of it ended well, of the longest of the failures in
    a row before it. Without workers, right after means within 2 s of the other's end: the worker was handed over.
    Without an error that tells, see :func:`_oftener`.
    """
    none = np.zeros(len(ends), bool)
    place, before = _in_rows(trials, ends)
    fails = (ends["state"].eq("FAIL") & ends["kind"].isin(POISONING)).to_numpy()
    well = (ends["known"] & ends["state"].isin(("COMPLETE", "PRUNED"))).to_numpy()
    lasted_s = ends["duration_s"].to_numpy(float)
    usual_s = ends["duration_s"].where(well).groupby(ends["study"]).transform("median").to_numpy(float)
    compared_s = np.where(usual_s > 0, usual_s, _longest_before(place, before, fails, lasted_s))
    short = fails & (lasted_s <= np.minimum(SHORT_S, SHORT_SHARE * compared_s))
    after_fail, after_well = (np.zeros(len(ends), bool) for _ in range(2))
    behind = before >= 0
    after_fail[place[behind]], after_well[place[behind]] = fails[before[behind]], well[before[behind]]
    if not (short & after_fail).any():
        return Followers(none, none)
    anywhere = having_in_common(trials, ends, pd.Series(short, ends.index), BY_CHANCE)
    told = ends["kind"].ne("unknown").to_numpy()
    counted = (after_fail & ~anywhere, after_well & ~anywhere)
    poisons = not (usual_s > 0).any() or _chance(short & told, *counted) <= TOLD_BY_CHANCE
    oftener = _oftener(ends, well, short & ~told, *counted)
    return Followers((short & told & counted[0] & poisons) | oftener.sure, oftener.open)


def _oftener(
    ends: pd.DataFrame, well: np.ndarray, short: np.ndarray, after_fail: np.ndarray, after_well: np.ndarray
) -> Followers:
    """The short failures behind failures, of each study in which they are no coincidence.

    They must come oftener than behind trials that ended well even without the longest stretch of the study in which
    none began that ended well: what is broken at the beginning, at the end or for a while fails in a row as well. Where
    they do only with that stretch, it is open which of both it was.
    """
    out = Followers(np.zeros(len(ends), bool), np.zeros(len(ends), bool))
    hits = short & after_fail
    studies = ends["study"].to_numpy()
    judged = list(dict.fromkeys(studies[hits]))
    for study in judged:
        mine = studies == study
        order = np.flatnonzero(mine)[np.argsort(microseconds(ends["start"])[mine], kind="stable")]
        stretch = np.zeros(len(ends), np.int64)
        stretch[order] = np.cumsum(well[order])
        rest = after_fail & mine & (stretch != np.bincount(stretch[hits & mine]).argmax())
        for found, where in ((out.sure, rest), (out.open, after_fail & mine)):
            if _chance(short, where, after_well & mine) <= BY_CHANCE / len(judged):
                found |= hits & mine
    return Followers(out.sure, out.open & ~out.sure)


def _chance(hits: np.ndarray, after_fail: np.ndarray, after_well: np.ndarray) -> float:
    """Chance of so many hits behind failures, were they as frequent behind trials that ended well."""
    counts = [(int((hits & group).sum()), int(group.sum())) for group in (after_fail, after_well)]
    return p_more_often(*counts[0], *counts[1])


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
