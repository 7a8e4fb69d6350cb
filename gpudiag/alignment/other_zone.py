"""Logs whose times state no zone and were read in a wrong one, beside logs of the same GPUs that state theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import PurePath
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from gpudiag.alignment.apply import later
from gpudiag.readers._shape.identity import same_model, short_bus_id
from gpudiag.readers.base import Telemetry, Trials
from gpudiag.spans import microseconds
from gpudiag.statement import Statement
from gpudiag.timezones import QUARTER_S
from gpudiag.units import SECOND_US

QUARTER_US = round(QUARTER_S * SECOND_US)
QUARTERS = 56
"""Zones are whole quarters of an hour from UTC, up to 14 hours."""
LEAST = 40
"""Samples that two logs must have at the same time."""
FITS = 0.9
CLEARLY = 4.0
"""By so much less may be left unexplained (1 less the correlation) than at any other shift."""
SAME = 0.5
"""At one moment a GPU has one state: two logs of it then differ by less than half of what one sample differs from the
next of its log. Two GPUs that do the same work differ by as much."""
READ_AS = "read as local time of"
"""What notes on trials and logs say of times in the run's zone."""
TIMES = ("time", "start", "end", "marked")
"""What is in the run's zone; heartbeats are UTC."""
MOST_PAIRS = 16
MOST_GPUS = 4
MOST_SAMPLES = 1000
COLUMNS = {"util_pct": 3.0, "power_w": 3.0}
"""What is compared, where it varies by more than this (standard deviation)."""
MOVED = (
    "The times of {logs}, which state no zone, were moved by {shift_s:as shift}: so the samples agree with those of "
    "{stated}, whose times state theirs (correlation {fit:as ratio}), and at no other whole quarter of an hour. State "
    "the zone of the clock (timezone) to be sure."
)
ALIKE = "The times of {logs}, which state no zone either, were moved alike, though none of their samples show it."
AFTERWARDS = "These times were then moved by {shift_s:as shift}, as those of the logs of its GPUs that state no zone."
DOUBT = (
    "The samples of {logs} agree with those of {stated} if they are moved by {shift_s:as shift} (correlation {fit:as "
    "ratio}), not as they are. Their clocks may be of two zones; nothing was moved, since {why}. If so, record times "
    "with their zone, or load one log alone."
)
NO_ZONE = "neither log states its zone"
STATED = "the zone of such times was given"
UNCLEAR = "another shift, or other work of the same kind, is not ruled out"


_ANY = "*"
"""Any host: no name of one has this sign."""
_SPELT: Mapping[str, Callable[[str], str]] = {
    "uuid": str.lower,
    "host": str.casefold,
    "bus_id": short_bus_id,
    "name": str,
}


@dataclass(frozen=True)
class _Found:
    """A shift of one log against another; ``sure``: nothing else explains how they agree."""

    shift_us: int
    fit: float
    sure: bool


class InOneZone(NamedTuple):
    """The logs, those moved that were read in a wrong zone; what is said of it; by how much all of them were moved."""

    logs: list[Telemetry]
    notes: tuple[str, ...] = ()
    moved_us: int = 0


def in_one_zone(parts: Sequence[Telemetry], paths: Sequence[str] = (), *, given: bool = False) -> InOneZone:
    """Put logs that state no zone on the clock of those that do.

    Where such a log shows it, all that state none are moved alike, but for those that agree as they are. What the
    samples leave open is told. ``given``: somebody stated the zone in which they were read, so that none is moved.
    """
    agree: set[int] = set()
    sure: dict[int, tuple[int, _Found]] = {}
    doubts: list[tuple[int, int, _Found]] = []
    for one, other in _pairs(parts):
        found = _found(parts[one], parts[other])
        stated = parts[one].clock == "utc"
        if found is not None and not found.shift_us:
            agree |= {other} if stated else set()
        elif found is not None and found.sure and stated:
            sure.setdefault(other, (one, found))
        elif found is not None:
            doubts.append((one, other, found))
    names = _names(parts, paths)
    if given or len({found.shift_us for _, found in sure.values()}) != 1:
        doubts = [*((one, other, found) for other, (one, found) in sure.items()), *doubts]
        told = [_doubt(parts[one], names[one], names[other], found, given=given) for one, other, found in doubts]
        return InOneZone(list(parts), tuple(told))
    shift_us = next(iter(sure.values()))[1].shift_us
    alike = [at for at, part in enumerate(parts) if part.clock == "local" and at not in sure and at not in agree]
    logs = [_moved(part, shift_us) if at in sure or at in alike else part for at, part in enumerate(parts)]
    return InOneZone(logs, _told_moved(sure, alike, names), shift_us)


def in_same_zone(trials: Trials, moved_us: int) -> Trials:
    """Trials and logs of steps whose times state no zone, moved as the telemetry was; the same ones without any.

    Heartbeats are UTC: where they fit a study as it was read, its zone is known.
    """
    if not moved_us:
        return trials
    local = trials.studies.loc[trials.studies["clock"] == "local", "study"] if "clock" in trials.studies else ()
    if "last_seen" in trials.trials:
        beating = set(trials.trials.loc[trials.trials["last_seen"].notna(), "study"])
        local = [name for name in local if name not in beating]
    every = trials.clock == "local" or (len(local) > 0 and len(local) == len(trials.studies))
    if not every and not len(local):
        return trials
    shift_s, moved = moved_us / SECOND_US, {}
    for name in ("trials", "reports", "events", "steps", "profiled"):
        table = getattr(trials, name)
        rows = table["study"].isin(local).to_numpy() if "study" in table else np.full(len(table), every)
        moved[name] = later(table, TIMES, shift_s * rows)
    then = Statement(AFTERWARDS, shift_s=shift_s)
    of = [note for note in trials.notes if READ_AS in note and (every or any(f"'{name}'" in note for name in local))]
    return replace(trials, **moved, notes=tuple(f"{note} {then}" if note in of else note for note in trials.notes))


def _names(parts: Sequence[Telemetry], paths: Sequence[str]) -> list[str]:
    if not paths:
        return [part.reader for part in parts]
    short = [PurePath(path).name for path in paths]
    return short if len(set(short)) == len(short) else list(paths)


def _doubt(one: Telemetry, name: str, other: str, found: _Found, *, given: bool) -> str:
    why = STATED if given else UNCLEAR if one.clock == "utc" else NO_ZONE
    shift_s = found.shift_us / SECOND_US
    return str(Statement(DOUBT, logs=[other], stated=name, shift_s=shift_s, fit=found.fit, why=why))


def _told_moved(sure: Mapping[int, tuple[int, _Found]], alike: Sequence[int], names: Sequence[str]) -> tuple[str, ...]:
    logs, stated = [names[at] for at in sorted(sure)], [names[at] for at in sorted({one for one, _ in sure.values()})]
    shift_s = next(found.shift_us for _, found in sure.values()) / SECOND_US
    fit = min(found.fit for _, found in sure.values())
    told = Statement(MOVED, logs=logs, stated=stated, shift_s=shift_s, fit=fit)
    return (str(told), *([str(Statement(ALIKE, logs=[names[at] for at in alike]))] if alike else ()))


def _pairs(parts: Sequence[Telemetry]) -> Iterator[tuple[int, int]]:
    """Logs to compare: each that states no zone with those that do, then with those before it."""
    dated = [at for at, part in enumerate(parts) if len(part.gpu)]
    local = [at for at in dated if parts[at].clock == "local"]
    stated = [(one, other) for other in local for one in dated if parts[one].clock == "utc"]
    both = [(one, other) for other in local for one in local if one < other]
    yield from [*stated, *both][:MOST_PAIRS]


def _found(one: Telemetry, other: Telemetry) -> _Found | None:
    """By how much ``other`` must be moved; None where the samples do not tell.

    Of logs that share no time as they are, the one may go on where the other ends: only what is sure counts.
    """
    made = (_Course.of(one, gpu, other, its) for gpu, its in _shared(one, other))
    courses = list(islice((course for course in made if course is not None), MOST_GPUS))
    if not courses:
        return None
    as_read, stated = _fit(courses, 0), one.clock == "utc"
    agree = _Found(0, as_read, sure=True) if as_read >= FITS else None
    if agree and _differ(courses, 0) <= SAME:
        return agree
    if np.isnan(as_read) and not stated:
        return None
    shifts = [quarters * QUARTER_US for quarters in range(-QUARTERS, QUARTERS + 1)]
    fits = np.array([_fit(courses, shift) for shift in shifts])
    best = int(np.argmax(np.nan_to_num(fits, nan=-1.0)))
    unexplained, others = 1 - fits[best], 1 - np.delete(fits, best)
    if not fits[best] >= FITS or 1 - as_read < CLEARLY * unexplained:
        return agree
    sure = not (others < CLEARLY * unexplained).any() and _differ(courses, shifts[best]) <= SAME
    told = sure or (stated and not np.isnan(as_read))
    return _Found(shifts[best], float(fits[best]), sure) if told else None


def _shared(one: Telemetry, other: Telemetry) -> Iterator[tuple[str, str]]:
    """The names of each GPU that both logs may hold, in either."""
    others = other.gpus.to_dict("records")
    places: dict[tuple[str, ...], list[int]] = {}
    for at, its in enumerate(others):
        for key in _known_by(its, *{_plain(its, "host"), _ANY}):
            places.setdefault(key, []).append(at)
    for row in one.gpus.to_dict("records"):
        host = _plain(row, "host")
        keys = _known_by(row, *({host, ""} if host else {_ANY}))
        for at in sorted({at for key in keys for at in places.get(key, ())}):
            if _may_be_one(row, others[at]):
                yield str(row["gpu"]), str(others[at]["gpu"])


def _known_by(row: Mapping[Any, Any], *hosts: str) -> list[tuple[str, ...]]:
    """What a GPU may be found by: no two are one that share none of these."""
    uuid, bus = _plain(row, "uuid"), _plain(row, "bus_id")
    slots = [("bus_id", host, bus) for host in hosts] if bus else []
    return [("gpu", str(row["gpu"])), *([("uuid", uuid)] if uuid else []), *slots]


def _plain(row: Mapping[Any, Any], name: str) -> str:
    """In one spelling; "" where it is unknown."""
    value = row.get(name)
    return "" if pd.isna(value) or not value else _SPELT[name](str(value))


def _may_be_one(row: Mapping[Any, Any], its: Mapping[Any, Any]) -> bool:
    """Whether nothing but its samples tells two logs' GPUs apart."""
    for name in ("uuid", "host", "bus_id"):
        mine, other = _plain(row, name), _plain(its, name)
        if mine and other and mine != other:
            return False
        if mine and other and name != "host":
            return True
    return row["gpu"] == its["gpu"] and same_model(_plain(row, "name"), _plain(its, "name"))


@dataclass(frozen=True)
class _Course:
    """What one GPU did by two logs: the sparser one, thinned out, and the denser one; microseconds, rows by column."""

    sparse_us: np.ndarray
    sparse: np.ndarray
    dense_us: np.ndarray
    dense: np.ndarray
    sign: int
    """1 where the sparser log is the one to move."""

    @classmethod
    def of(cls, one: Telemetry, gpu: str, other: Telemetry, its: str) -> _Course | None:
        logs = [log.gpu[log.gpu["gpu"] == name] for log, name in ((one, gpu), (other, its))]
        names = [name for name in COLUMNS if all(name in log for log in logs)]
        moved = logs[1]
        sparse, dense = sorted(logs, key=len)
        if not names or len(sparse) < LEAST:
            return None
        sparse = sparse.iloc[:: -(-len(sparse) // MOST_SAMPLES)]
        times = [microseconds(log["time"]) for log in (sparse, dense)]
        values = [np.array([log.get(name, pd.Series(np.nan, log.index)).to_numpy(float) for name in COLUMNS])
                  for log in (sparse, dense)]  # fmt: skip
        return cls(times[0], values[0], times[1], values[1], 1 if moved is not dense else -1)

    def pairs(self, shift_us: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Values of each column in both logs at the same time, in order, where they vary."""
        when = self.sparse_us + self.sign * shift_us
        after = np.clip(np.searchsorted(self.dense_us, when), 1, len(self.dense_us) - 1)
        nearest = after - (when - self.dense_us[after - 1] <= self.dense_us[after] - when)
        near = np.abs(self.dense_us[nearest] - when) <= np.median(np.diff(self.dense_us))
        for values, others, least in zip(self.sparse, self.dense, COLUMNS.values(), strict=True):
            value, its = values[near], others[nearest[near]]
            known = ~np.isnan(value) & ~np.isnan(its)
            if np.count_nonzero(known) >= LEAST and min(value[known].std(), its[known].std()) > least:
                yield value[known], its[known]


def _fit(courses: Sequence[_Course], shift_us: int) -> float:
    """The correlation, the mean of all GPUs and columns; NaN without enough samples at the same time."""
    made = [np.corrcoef(*pair)[0, 1] for course in courses for pair in course.pairs(shift_us)]
    return float(np.mean(made)) if made else float("nan")


def _differ(courses: Sequence[_Course], shift_us: int) -> float:
    """By how much a sample differs from that of the other log, over that from the next of its own; medians."""
    pairs = [pair for course in courses for pair in course.pairs(shift_us)]
    own = [float(np.median(np.abs(np.diff(value)))) for value, _ in pairs]
    made = [
        float(np.median(np.abs(pair[0] - pair[1]))) / step for pair, step in zip(pairs, own, strict=True) if step > 0
    ]
    return float(np.mean(made)) if made else float("inf")


def _moved(part: Telemetry, shift_us: int) -> Telemetry:
    tables = {name: getattr(part, name) for name in ("gpu", "processes", "host", "events")}
    shift_s = shift_us / SECOND_US
    return replace(part, **{name: later(table, TIMES, np.full(len(table), shift_s)) for name, table in tables.items()})
