"""Optuna's zone-less timestamps become UTC: decided study by study, and said.

Optuna up to 4 wrote naive local time, Optuna 5 writes naive UTC into the same columns (so does Rustuna, which keeps the
schema), and nothing in a storage tells which: ``library_version`` is the version that created it, and a study may be
resumed by another. The evidence, best first: a zone in the timestamps (journals of Optuna 5), heartbeats (SQLite
timestamps them in UTC), a single jump back of the start times that fits the zone, the creator's version.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import tzinfo

import numpy as np
import pandas as pd

from gpudiag.readers._studies.fold import Settled, settle
from gpudiag.readers._studies.stored import RUSTUNA

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
    if created_by == RUSTUNA:
        return _by_creator(trials, zone, "Rustuna created the storage", "it writes UTC")
    if _major(created_by) >= UTC_SINCE:
        made = f"Optuna {created_by} created the storage"
        return _by_creator(trials, zone, made, "versions from 5 on write UTC")
    return _by_order(trials, zone, created_by)


def _by_creator(trials: pd.DataFrame, zone: tzinfo, made: str, writes: str) -> Clocked:
    """UTC, unless that runs backwards where the zone's clock was turned back, and local time does not."""
    start, end = _as_utc(trials["start"]), _as_utc(trials["end"])
    backwards = _backwards(trials["number"], start, end)
    if sum(backwards):
        local = _local(trials, zone)
        left = _backwards(trials["number"], local.start, local.end)
        if left[0] == 0 and sum(left) < sum(backwards) and (backwards[0] or not left[1]):
            why = f"assumed, though {made}: as UTC {sum(backwards)} would run backwards where the zone's clock was"
            return Clocked(local.start, local.end, "local", f"{why} turned back{local.said}")
    return Clocked(start, end, "utc", f"assumed, because {made} and {writes}")


def _backwards(number: pd.Series, start: pd.Series, end: pd.Series) -> tuple[int, int]:
    """How many ends lie before their start, and how many starts before that of the number before."""
    steps = start.iloc[np.argsort(number.to_numpy(), kind="stable")].dropna().diff()
    return int((end < start - SLACK).sum()), int((steps < -pd.Timedelta(QUARTER)).sum())


def _as_utc(naive: pd.Series) -> pd.Series:
    return naive.astype("datetime64[us]").dt.tz_localize("UTC")


def _local(trials: pd.DataFrame, zone: tzinfo) -> Settled:
    """Start and end read as local time of ``zone``."""
    return settle(trials["number"], trials["start"], trials["end"], zone, trials.get("heartbeat"))


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
    local = (_local(trials, zone).end - _as_utc(trials["end"])) / QUARTER
    is_utc, is_local = (low <= 0) & (high >= 0), (low <= local) & (high >= local)
    quarters = only.fillna(local.where(is_local & ~is_utc)).fillna((local * 0).where(is_utc & ~is_local))
    return quarters.where(quarters.abs() <= MAX_QUARTERS) * pd.Timedelta(QUARTER)


def _by_heartbeat(trials: pd.DataFrame, offset: pd.Series, zone: tzinfo) -> Clocked:
    """Every trial by its own heartbeat, the others as their nearest neighbour by number."""
    seen = int(offset.notna().sum())
    local = _local(trials, zone)
    known = offset.notna()
    naive_end = _as_utc(trials["end"])
    if (offset[known] == pd.Timedelta(0)).all():
        return Clocked(_as_utc(trials["start"]), naive_end, "utc", f"shown by {seen} heartbeats")
    if (local.end[known] == naive_end[known] + offset[known]).all():
        return Clocked(local.start, local.end, "local", f"shown by {seen} heartbeats, which fit {zone}{local.said}")
    order = np.argsort(trials["number"].to_numpy(), kind="stable")
    filled = offset.iloc[order].ffill().bfill().reindex(trials.index)
    hours = ", ".join(f"{-value.total_seconds() / 3600:+g} h" for value in sorted(set(offset[known]), reverse=True))
    clock = "mixed" if (offset[known] == pd.Timedelta(0)).any() else "local"
    start, end = _as_utc(trials["start"]) + filled, naive_end + filled
    return Clocked(start, end, clock, f"shown by {seen} heartbeats, trial by trial", f"clocks at {hours} from UTC")


def _by_order(trials: pd.DataFrame, zone: tzinfo, created_by: str) -> Clocked:
    """Local time, unless one jump back of the starts shows that Optuna 5 went on with the study."""
    local = _local(trials, zone)
    start, end = local.start, local.end
    made = f"Optuna {created_by} created the storage" if created_by else "the version that wrote it is not stated"
    why = f"assumed, because {made} and versions before 5 write local time{local.said}"
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
