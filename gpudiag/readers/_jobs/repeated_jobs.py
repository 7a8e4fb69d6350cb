"""Jobs of Slurm that several lists hold, each run of a job once: one list tells its end, another one its GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from gpudiag.readers._studies.pivot import column
from gpudiag.readers.base import Trials
from gpudiag.report.format import plural
from gpudiag.timezones import are_zones_apart, quarters_s

JOB = "user_attrs.job"
_ATTRIBUTES = "user_attrs."
_ENDED = 2
_TOLERANCE_S = 1.0
"""Starts and times that a job took are cut to seconds."""
_RANK = {"WAITING": 0, "RUNNING": 1}
"""What has ended is known better than what ran when the list was printed, and that better than what waited."""


@dataclass(frozen=True)
class _Listed:
    """A row of one of the lists; ``key``: its job and start, to the second.

    ``took_s``: from start to end, NaN unknown. ``zoned``: its times are sure to be UTC. ``apart_s``: by how much its
    start was said to be later than by the list whose key it was given.
    """

    part: int
    row: int
    key: tuple[str, pd.Timestamp | None]
    rank: tuple[int, float]
    took_s: float
    zoned: bool
    apart_s: float = 0.0


def each_job_once(parts: Sequence[Trials]) -> tuple[list[Trials], list[str]]:
    """The parts, and what is to be said of it. A job that waits is the one that began by another list. Attributes that
    the row that is kept lacks are taken from the others.
    """
    lists = [at for at, part in enumerate(parts) if JOB in part.trials]
    if len(lists) < 2:
        return list(parts), []
    runs: dict[tuple[str, pd.Timestamp | None], list[_Listed]] = {}
    began: dict[str, set[int]] = {}
    listed = _in_one_zone([one for at in lists for one in _rows(parts[at], at)])
    for one in listed:
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
    notes = [f"{plural(len(gone), 'job')} in several lists of Slurm {'counts' if len(gone) == 1 else 'count'} once."]
    return out, [*notes, *_of_zones(listed)]


def _in_one_zone(listed: Sequence[_Listed]) -> list[_Listed]:
    """The rows, where those without a zone that are another's run in another zone have the key of that one: an ended
    job that took as long and began whole quarters of an hour earlier or later. Of several such it is none.
    """
    zoned: dict[str, dict[tuple[str, pd.Timestamp | None], _Listed]] = {}
    for one in listed:
        if one.zoned and one.key[1] is not None:
            zoned.setdefault(one.key[0], {})[one.key] = one
    out = []
    for one in listed:
        others = {} if one.zoned else zoned.get(one.key[0], {})
        found = (
            [] if one.key in others else [(key, by) for key, other in others.items() if (by := _apart_s(one, other))]
        )
        if len(found) == 1:
            ((key, apart_s),) = found
            one = replace(one, key=key, apart_s=apart_s, rank=(-1, one.rank[1]))
        out.append(one)
    return out


def _apart_s(one: _Listed, other: _Listed) -> float:
    """By how much the one seems to begin later than the other for its zone alone; 0 where they are not one run."""
    (_, start), (_, began) = one.key, other.key
    if start is None or began is None or not one.rank[0] == other.rank[0] == _ENDED or not one.took_s > 0:
        return 0.0
    apart_s = (start - began).total_seconds()
    alike = abs(one.took_s - other.took_s) <= _TOLERANCE_S and are_zones_apart(apart_s, _TOLERANCE_S)
    return quarters_s(apart_s) if alike else 0.0


def _of_zones(listed: Sequence[_Listed]) -> list[str]:
    moved = [one.apart_s / 3600 for one in listed if one.apart_s]
    if not moved:
        return []
    hours = " and ".join(f"{by:+g} h" for by in sorted(set(moved)))
    lie = "lies" if len(moved) == 1 else "lie"
    return [
        f"{plural(len(moved), 'job')} of Slurm listed without a time zone {lie} {hours} from the same in a list that "
        "has one, whose times are taken. Jobs that only the list without a zone holds are as far off: state its zone "
        "with --timezone."
    ]


def _rows(listed: Trials, part: int) -> Iterator[_Listed]:
    trials, studies = listed.trials, listed.studies
    zoned = "clock" in studies and bool((studies["clock"] == "utc").all())
    ran_s = trials["duration_s"] if "duration_s" in trials else pd.Series(np.nan, trials.index)
    took_s = (trials["end"] - trials["start"]).dt.total_seconds()
    cells = zip(trials[JOB], trials["start"].dt.floor("s"), trials["state"], ran_s.fillna(0.0), took_s, strict=True)
    for row, (job, start, state, seconds, took) in enumerate(cells):
        if isinstance(job, str):
            key = job, None if pd.isna(start) else start
            yield _Listed(part, row, key, (_RANK.get(state, _ENDED), float(seconds)), float(took), zoned)


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
