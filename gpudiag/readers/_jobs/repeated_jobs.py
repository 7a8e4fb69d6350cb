"""Jobs of Slurm that several lists hold, each run of a job once: one list tells its end, another one its GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from gpudiag.readers._studies.pivot import column
from gpudiag.readers.base import Trials
from gpudiag.report.format import plural

JOB = "user_attrs.job"
_ATTRIBUTES = "user_attrs."
_RANK = {"WAITING": 0, "RUNNING": 1}
"""What has ended is known better than what ran when the list was printed, and that better than what waited."""


@dataclass(frozen=True)
class _Listed:
    """A row of one of the lists; ``key``: its job and start, to the second."""

    part: int
    row: int
    key: tuple[str, pd.Timestamp | None]
    rank: tuple[int, float]


def each_job_once(parts: Sequence[Trials]) -> tuple[list[Trials], list[str]]:
    """The parts, and what is to be said of it. A job that waits is the one that began by another list. Attributes that
    the row that is kept lacks are taken from the others.
    """
    lists = [at for at, part in enumerate(parts) if JOB in part.trials]
    if len(lists) < 2:
        return list(parts), []
    runs: dict[tuple[str, pd.Timestamp | None], list[_Listed]] = {}
    began: dict[str, set[int]] = {}
    for one in (one for at in lists for one in _rows(parts[at].trials, at)):
        runs.setdefault(one.key, []).append(one)
        if one.key[1] is not None:
            began.setdefault(one.key[0], set()).add(one.part)
    gone: list[_Listed] = []
    filled: dict[int, dict[int, list[_Listed]]] = {}
    for key, same in runs.items():
        if key[1] is None:
            same = [one for one in same if one.rank[0] or not began.get(key[0], set()) - {one.part}]
            gone += [one for one in runs[key] if one not in same]
        best = max(same, key=lambda one: one.rank, default=None)
        twins = [one for one in same if best is not None and one.part != best.part]
        gone += twins
        if best is not None and twins:
            filled.setdefault(best.part, {})[best.row] = twins
    if not gone:
        return list(parts), []
    out = list(parts)
    for at in lists:
        trials = _filled(parts[at].trials, filled.get(at, {}), parts)
        out[at] = _without(replace(parts[at], trials=trials), [one.row for one in gone if one.part == at])
    return out, [
        f"{plural(len(gone), 'job')} in several lists of Slurm {'counts' if len(gone) == 1 else 'count'} once."
    ]


def _rows(trials: pd.DataFrame, part: int) -> Iterator[_Listed]:
    ran_s = trials["duration_s"] if "duration_s" in trials else pd.Series(np.nan, trials.index)
    cells = zip(trials[JOB], trials["start"].dt.floor("s"), trials["state"], ran_s.fillna(0.0), strict=True)
    for row, (job, start, state, seconds) in enumerate(cells):
        if isinstance(job, str):
            key = job, None if pd.isna(start) else start
            yield _Listed(part, row, key, (_RANK.get(state, 2), float(seconds)))


def _filled(trials: pd.DataFrame, by_row: Mapping[int, list[_Listed]], parts: Sequence[Trials]) -> pd.DataFrame:
    """With attributes of twins in rows that have none."""
    new: dict[str, np.ndarray] = {}
    for row, twins in by_row.items():
        for twin in twins:
            other = parts[twin.part].trials
            for name in (str(name) for name in other if str(name).startswith(_ATTRIBUTES)):
                value = other[name].iat[twin.row]
                if name not in new:
                    own = trials[name] if name in trials else pd.Series(None, trials.index, dtype=object)
                    new[name] = own.astype(object).to_numpy(copy=True)
                if pd.isna(new[name][row]) and not pd.isna(value):
                    new[name][row] = value.item() if isinstance(value, np.generic) else value
    out = trials.copy()
    for name, cells in new.items():
        there = np.flatnonzero(~pd.isna(cells))
        out[name] = column(cells[there], there, len(cells))
    return out


def _without(part: Trials, rows: list[int]) -> Trials:
    """The part without these rows and what befell them; without a study of which no row is left."""
    left_out = part.trials.iloc[rows]
    events = part.events
    if "trial" in events and len(left_out):
        events = events[~events["trial"].isin(left_out["trial"])].reset_index(drop=True)
    trials = part.trials.drop(left_out.index).reset_index(drop=True)
    studies = part.studies[part.studies["study"].isin(trials["study"])].reset_index(drop=True)
    return replace(part, trials=trials, events=events, studies=studies)
