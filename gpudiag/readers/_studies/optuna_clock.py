"""Optuna's zone-less timestamps become UTC: decided study by study, and said.

Optuna up to 4 wrote naive local time, Optuna 5 writes naive UTC into the same columns, and nothing in a
storage tells which: ``library_version`` is the version that created it, and a study may be resumed by
another. The evidence, best first: a zone in the timestamps (journals of Optuna 5), heartbeats (SQLite
timestamps them in UTC), a single jump back of the start times that fits the zone, the creator's version.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import tzinfo

import numpy as np
import pandas as pd

from gpudiag.timezones import localize

QUARTER = np.timedelta64(15 * 60, "s")
SLACK = pd.Timedelta(minutes=1)
"""How far a heartbeat may lie outside its trial: the timestamps are taken one after the other."""
MAX_QUARTERS = 14 * 4
"""No zone is further from UTC than 14 hours."""
UTC_SINCE = 5
"""First major version of Optuna that writes UTC."""


@dataclass(frozen=True)
class Clocked:
    """``start``/``end``: UTC, in the order given. ``clock``: utc, local, mixed or unknown; ``why``: one clause.

    ``meant`` says in words how the timestamps were meant, where ``clock`` and the run's zone do not.
    """

    start: pd.Series
    end: pd.Series
    clock: str
    why: str
    meant: str = ""

    def meaning(self, zone: tzinfo) -> str:
        """How the timestamps were meant, in words."""
        words = {"utc": "UTC", "local": f"local time of {zone}", "mixed": f"partly UTC, partly local time of {zone}"}
        return self.meant or words[self.clock]


def to_utc(trials: pd.DataFrame, zone: tzinfo, created_by: str) -> Clocked:
    """Timestamps of one study as UTC.

    ``trials`` has ``number``, ``state``, naive ``start`` and ``end``, and may have ``heartbeat``
    (naive UTC, the last sign of life of the trial).
    """
    if trials["start"].isna().all() and trials["end"].isna().all():
        return Clocked(_as_utc(trials["start"]), _as_utc(trials["end"]), "unknown", "it has no timestamps")
    if "heartbeat" in trials:
        offset = _heartbeat_offsets(trials, zone)
        if offset.notna().any():
            return _by_heartbeat(trials, offset, zone)
    if _major(created_by) >= UTC_SINCE:
        why = f"assumed, because Optuna {created_by} created the storage and versions from 5 on write UTC"
        return Clocked(_as_utc(trials["start"]), _as_utc(trials["end"]), "utc", why)
    return _by_order(trials, zone, created_by)


def _as_utc(naive: pd.Series) -> pd.Series:
    return naive.astype("datetime64[us]").dt.tz_localize("UTC")


def _local(trials: pd.DataFrame, zone: tzinfo) -> tuple[pd.Series, pd.Series, int]:
    """Start and end read as local time of ``zone``, resolved in the order of trial numbers."""
    order = np.argsort(trials["number"].to_numpy(), kind="stable")
    start = localize(trials["start"].iloc[order], zone)
    ends = trials["end"].sort_values(kind="stable") if start.ambiguous else trials["end"]
    end = localize(ends, zone)
    return start.time.reindex(trials.index), end.time.reindex(trials.index), start.ambiguous + end.ambiguous


def _heartbeat_offsets(trials: pd.DataFrame, zone: tzinfo) -> pd.Series:
    """Per trial what must be added to its timestamps to get UTC; NaT where its heartbeat cannot tell.

    The last heartbeat of a trial that finished by itself lies between its start and its end. Zones are
    multiples of 15 minutes from UTC, so a short trial leaves one offset; a long one is asked only
    whether it was UTC or ``zone``.
    """
    finished = trials["state"].isin(["COMPLETE", "PRUNED"])
    low = ((trials["heartbeat"] - trials["end"] - SLACK) / QUARTER).where(finished)
    high = ((trials["heartbeat"] - trials["start"] + SLACK) / QUARTER).where(finished)
    only = np.ceil(low).where(np.ceil(low) == np.floor(high))
    _, local_end, _ = _local(trials, zone)
    local = (local_end - _as_utc(trials["end"])) / QUARTER
    is_utc, is_local = (low <= 0) & (high >= 0), (low <= local) & (high >= local)
    quarters = only.fillna(local.where(is_local & ~is_utc)).fillna((local * 0).where(is_utc & ~is_local))
    return quarters.where(quarters.abs() <= MAX_QUARTERS) * pd.Timedelta(QUARTER)


def _by_heartbeat(trials: pd.DataFrame, offset: pd.Series, zone: tzinfo) -> Clocked:
    """Every trial by its own heartbeat, the others as their nearest neighbour by number."""
    seen = int(offset.notna().sum())
    local_start, local_end, _ = _local(trials, zone)
    known = offset.notna()
    naive_end = _as_utc(trials["end"])
    if (offset[known] == pd.Timedelta(0)).all():
        return Clocked(_as_utc(trials["start"]), naive_end, "utc", f"shown by {seen} heartbeats")
    if (local_end[known] == naive_end[known] + offset[known]).all():
        return Clocked(local_start, local_end, "local", f"shown by {seen} heartbeats, which fit {zone}")
    order = np.argsort(trials["number"].to_numpy(), kind="stable")
    filled = offset.iloc[order].ffill().bfill().reindex(trials.index)
    hours = ", ".join(f"{-value.total_seconds() / 3600:+g} h" for value in sorted(set(offset[known]), reverse=True))
    clock = "mixed" if (offset[known] == pd.Timedelta(0)).any() else "local"
    start, end = _as_utc(trials["start"]) + filled, naive_end + filled
    return Clocked(start, end, clock, f"shown by {seen} heartbeats, trial by trial", f"clocks at {hours} from UTC")


def _by_order(trials: pd.DataFrame, zone: tzinfo, created_by: str) -> Clocked:
    """Local time, unless one jump back of the starts shows that Optuna 5 went on with the study."""
    start, end, doubtful = _local(trials, zone)
    made = f"Optuna {created_by} created the storage" if created_by else "the version that wrote it is not stated"
    why = f"assumed, because {made} and versions before 5 write local time"
    if doubtful:
        why += f"; {doubtful} timestamps fall into the hour that the clock change repeats"
    number = trials["number"].to_numpy()
    started = start.notna().to_numpy()
    order = np.argsort(number, kind="stable")
    order = order[started[order]]
    steps = start.iloc[order].diff()
    back = np.flatnonzero((steps < -pd.Timedelta(QUARTER)).to_numpy())
    if len(back) == 0:
        return Clocked(start, end, "local", why)
    first = int(number[order[back[0]]])
    jump = -steps.iloc[back[0]]
    naive = _as_utc(trials["start"])
    ahead = (naive - start).iloc[order[back[0]]]
    if len(back) > 1 or jump > ahead:
        why += f"; the starts run back {len(back)} times (first by {jump.total_seconds():.0f} s at trial {first})"
        return Clocked(start, end, "local", why + ", so several clocks may have written them; nothing was shifted")
    later = pd.Series(number >= first, index=trials.index)
    why = f"assumed: starts run back once, by {jump.total_seconds():.0f} s at trial {first}, which fits Optuna 5"
    why += f" (UTC) going on with a study begun in local time of {zone}"
    return Clocked(start.where(~later, naive), end.where(~later, _as_utc(trials["end"])), "mixed", why)


def _major(version: str) -> int:
    """Major number of a version; 0 if there is none."""
    found = re.match(r"\d+", version)
    return int(found[0]) if found else 0
