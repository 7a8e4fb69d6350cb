"""Stretches without any trial, and whether the search broke off before them.

A search that somebody ended, by hand or by ``n_trials``, leaves no trial undone: of the time until the next one nothing
says that a GPU was held. One that broke off leaves a trial that is dead or failed, behind which nothing began, and
whose study went on later. One of which no trial had finished by then had not begun to work.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from gpudiag.facts import Column, Row, column
from gpudiag.measures._time.microseconds import SECOND_US, microseconds, utc
from gpudiag.measures._time.pauses import pauses
from gpudiag.measures._time.trial_intervals import trial_names
from gpudiag.measures._trials.placed import placed_trials
from gpudiag.run import Run
from gpudiag.schema import ABANDONED

AT_ONCE_US = 60 * SECOND_US
"""Where a trial of a study began so soon after a failed one, its failures end no search: they are caught, or a loop
starts the worker again (a default without a published source)."""


class SearchPause(Row):
    """A stretch of an hour or more in which no trial ran."""

    start: Column[pd.Timestamp] = column("the last start or recorded end before it: from then on nothing is seen")
    end: Column[pd.Timestamp] = column("the next start")
    pause_s: Column[float] = column(
        "time without a trial: from the end of the last one, where it is recorded or likely"
    )
    unseen_s: Column[float] = column("from ``start`` to ``end``")
    broke_off: Column[str] = column(
        "trials that died or failed, nothing began behind them, and their studies, which had finished trials before, "
        "went on after it; joined by commas"
    )
    failed: Column[bool] = column("all of these were marked FAIL when they ended")


def search_pauses(run: Run) -> pd.DataFrame:
    """A row of :class:`SearchPause` for each, in order."""
    placed = placed_trials(run)
    start, end = microseconds(placed["start"]), microseconds(placed["end"])
    is_open, state = placed["open"].to_numpy(bool), placed["state"].to_numpy(object)
    recorded = np.where(is_open, start, end)
    undone = ((state == ABANDONED) | (state == "FAIL")) & (is_open | ~_caught(placed, start, end))
    names = trial_names(placed)
    rows = []
    for left, right in zip(*pauses(start, end), strict=True):
        before = start <= left
        unknown = (before & is_open & (state == "RUNNING")).any()  # it may have run on
        last = [] if unknown else _behind_which_nothing_began(placed, start, end, undone & before, int(left))
        rows.append({
            "start": max(start[before].max(), recorded[before].max()), "end": right,
            "pause_s": (right - left) / SECOND_US, "broke_off": ", ".join(names.iloc[last]),
            "failed": bool(last) and not is_open[last].any(),
        })  # fmt: skip
    out = pd.DataFrame(rows, columns=["start", "end", "pause_s", "broke_off", "failed"])
    out.insert(3, "unseen_s", (out["end"] - out["start"]).astype(float) / SECOND_US)
    out = out.assign(**{name: utc(out[name].to_numpy(np.int64)).set_axis(out.index) for name in ("start", "end")})
    return out.set_axis(pd.Index([str(place) for place in range(len(out))], name="pause", dtype=object))


def _caught(placed: pd.DataFrame, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """By trial whether its study went on at once after one that failed."""
    out = np.zeros(len(placed), bool)
    failed = (placed["state"] == "FAIL").to_numpy() & ~placed["open"].to_numpy(bool)
    for study in placed["study"][failed].unique():
        own = (placed["study"] == study).to_numpy()
        starts = np.append(start[own], np.iinfo(np.int64).max)  # in order, as the trials are
        ended = end[own & failed]
        out[own] = (starts[np.searchsorted(starts, ended, "right")] - ended < AT_ONCE_US).any()
    return out


def _behind_which_nothing_began(
    placed: pd.DataFrame, start: np.ndarray, end: np.ndarray, undone: np.ndarray, left_us: int
) -> list[int]:
    """Rows of the undone trials before ``left_us`` that are the last of their study and of all, if the study had
    finished one before and has later ones.
    """
    last_start = int(start[start <= left_us].max())
    finished = placed["state"].isin(["COMPLETE", "PRUNED"]).to_numpy()
    rows = []
    for row in np.flatnonzero(undone & (end >= last_start)):
        own = (placed["study"] == placed["study"].iloc[row]).to_numpy()
        behind = start[own & (np.arange(len(start)) > row)]
        if len(behind) and behind.min() > left_us and (end[own & finished] <= left_us).any():
            rows.append(int(row))
    return rows
