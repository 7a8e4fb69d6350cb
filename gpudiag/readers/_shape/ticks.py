"""The time of samples whose lines say little of it: a second shared by several, a time of day, nothing at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any, TypeGuard

import numpy as np
import pandas as pd

from gpudiag.readers._shape.moments import Moment
from gpudiag.units import FIRST_YEAR, LAST_YEAR, SECOND_US

_FIRST_EPOCH_S, _LAST_EPOCH_S = (datetime(year, 1, 1, tzinfo=UTC).timestamp() for year in (FIRST_YEAR, LAST_YEAR))
_DAY, _HALF_DAY = np.timedelta64(1, "D"), np.timedelta64(12, "h")
DEFAULT_PERIOD_S = 1.0
_TRIED = 100


def is_epoch(seconds: float | None) -> TypeGuard[float]:
    """True for a count of seconds since 1970 that can be the time of a sample; a torn one is smaller or larger."""
    return seconds is not None and _FIRST_EPOCH_S <= seconds < _LAST_EPOCH_S


def moment_column(moments: Sequence[Moment | None], zone: tzinfo) -> pd.Series:
    """The timestamps of moments, NaT for None: UTC if all carried a zone, else in ``zone`` and without one."""
    known, missing = [moment for moment in moments if moment is not None], np.datetime64("NaT", "us")
    if known and all(moment.utc for moment in known):
        timestamps = np.array([missing if m is None else m.timestamp for m in moments], dtype="datetime64[us]")
        return pd.Series(timestamps).dt.tz_localize("UTC")
    local = [missing if m is None else _in_zone(m, zone) for m in moments]
    return pd.Series(np.array(local, dtype="datetime64[us]"))


def _in_zone(moment: Moment, zone: tzinfo) -> object:
    if not moment.utc:
        return moment.timestamp
    return moment.timestamp.replace(tzinfo=UTC).astimezone(zone).replace(tzinfo=None)


def zone_note(moments: Sequence[Moment | None]) -> list[str]:
    """A sentence if timestamps carry a zone abbreviation that means several offsets."""
    names = sorted({m.zone for m in moments if m is not None and m.zone and not m.utc})
    return [f"The zone {names[0]} of its date lines means several offsets; the run's zone was used."] if names else []


def spread(timestamps: Sequence[Moment | None]) -> np.ndarray:
    """What to add to each timestamp, in microseconds, so that samples of one second share it evenly.

    Only neighbours are compared: the k-th of n samples that state the same whole second lies k/n s after it.
    """
    extra = np.zeros(len(timestamps), dtype="timedelta64[us]")
    low = 0
    while low < len(timestamps):
        high, first = low + 1, timestamps[low]
        while high < len(timestamps) and first is not None and _same(timestamps[high], first):
            high += 1
        if first is not None and first.timestamp.microsecond == 0:
            extra[low:high] = (np.arange(high - low) * SECOND_US // (high - low)).astype("timedelta64[us]")
        low = high
    return extra


def _same(moment: Moment | None, other: Moment) -> bool:
    return moment is not None and moment.timestamp == other.timestamp


def apart(timestamps: Any, code: np.ndarray, columns: Mapping[str, np.ndarray]) -> tuple[Any, list[str]]:
    """Timestamps with the samples of a second spread over it, where a log writes whole seconds and samples more often.

    That is told from timestamps shared by samples that differ, in most cases where one is shared; the same sample
    written twice stays at its timestamp. Where all timestamps are whole minutes, it is minutes that are shared.

    Args:
        timestamps: the times, UTC or local; rows of one GPU stand together.
        code: which GPU each row speaks of.
        columns: what was measured.
    """
    series = timestamps if isinstance(timestamps, np.ndarray) else timestamps.to_numpy(dtype="datetime64[us]")
    plain = series.astype("datetime64[us]", copy=False).view(np.int64)
    if len(plain) < 2 or (plain[:_TRIED] % SECOND_US).any() or (plain % SECOND_US).any():
        return timestamps, []
    starts = np.flatnonzero(np.append(True, (plain[1:] != plain[:-1]) | (code[1:] != code[:-1])))
    sizes = np.diff(starts, append=len(plain))
    if np.median(sizes) < 2:
        return timestamps, []
    changes = np.zeros(len(plain), dtype=bool)
    for values in columns.values():
        changes[1:] |= (values[1:] != values[:-1]) & ~(np.isnan(values[1:]) & np.isnan(values[:-1]))
    changes[starts] = False
    if 2 * np.logical_or.reduceat(changes, starts)[sizes > 1].sum() < (sizes > 1).sum():
        return timestamps, []
    minutes = not (plain % (60 * SECOND_US)).any() and len(starts) > 1
    unit, name = (60 * SECOND_US, "minute") if minutes else (SECOND_US, "second")
    place = np.arange(len(plain)) - np.repeat(starts, sizes)
    extra = (place * unit // np.repeat(sizes, sizes)).astype("timedelta64[us]")
    return timestamps + extra, [f"Several samples share each {name}; they were spread over it evenly."]


def process_ticks(gpu: Sequence[int], pid: Sequence[int | None]) -> np.ndarray:
    """Number of the tick of each row: one begins where the GPU index falls or a process comes again."""
    tick, last, out = 0, -1, []
    seen: set[tuple[int, int | None]] = set()
    for pair in zip(gpu, pid, strict=True):
        if pair[0] < last or pair in seen:
            tick += 1
            seen.clear()
        seen.add(pair)
        last = pair[0]
        out.append(tick)
    return np.array(out)


def relative_time(tick: np.ndarray, period_s: float | None) -> np.ndarray:
    """Timestamps of samples without any time: tick number x period, counted from 1970."""
    step = round((period_s or DEFAULT_PERIOD_S) * SECOND_US)
    return (tick.astype("int64") * step).astype("datetime64[us]")


def relative_note(period_s: float | None) -> str:
    """The sentence that goes with :func:`relative_time`."""
    return f"Its samples carry no time: they are counted from 1970-01-01 with a period of {_how(period_s)}."


def counted_note(period_s: float | None) -> str:
    """The sentence on samples that share a date line, as from one date at the top."""
    return f"Its samples carry no time: they are counted from the date above them with a period of {_how(period_s)}."


def _how(period_s: float | None) -> str:
    if period_s:
        return f"{period_s:g} s as told"
    return (
        f"{DEFAULT_PERIOD_S:g} s assumed, on which every duration rests (give the real one with --period, or as "
        "period_s in run.toml)"
    )


def since_midnight(time_of_day: np.ndarray) -> np.ndarray:
    """Timestamps from times of day (timedelta64, in order) that carry no date, counted from 1970.

    A step back of more than half a day is the next midnight.
    """
    step = np.diff(time_of_day, prepend=time_of_day[:1])
    days = np.cumsum(step < -_HALF_DAY)
    return np.datetime64("1970-01-01T00:00:00", "us") + time_of_day + days * _DAY


FROM_START = "Its timestamps count from an unknown start: they are shown as counted from 1970-01-01."
MIDNIGHT_NOTE = "Its timestamps carry no date: they are counted from the midnight of 1970-01-01."
