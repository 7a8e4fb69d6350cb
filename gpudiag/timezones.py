"""Time zones: zone-less timestamps become UTC, with what was assumed said.

Everything inside gpudiag is UTC. Text written without a zone (nvidia-smi, Optuna up to 4, exports) is
read in the run's zone; the offset between the trials' clock and the telemetry's clock is
established from the data in :mod:`gpudiag.alignment`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import TYPE_CHECKING, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from gpudiag.errors import ConfigError, expected

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

DAY_US = 86_400_000_000
MAX_DAYS = 40_000
QUARTER_S = 900.0
"""Zones lie whole quarters of an hour apart."""
MOST_APART_S = 26 * 3600.0
"""From UTC-12 to UTC+14."""


@dataclass(frozen=True)
class Localized:
    """``utc``: naive UTC timestamps in the order given, in microseconds; ``index``: of the column that they are of,
    None for an array. The counts say how many timestamps a DST change made doubtful.
    """

    utc: np.ndarray
    index: pd.Index | None
    ambiguous: int
    nonexistent: int

    @property
    def time(self) -> pd.Series:
        """The timestamps as a column."""
        import pandas as pd

        return pd.Series(self.utc, index=self.index, copy=False).dt.tz_localize("UTC").astype("datetime64[us, UTC]")


Zone: TypeAlias = str | tzinfo | None
"""A zone or its IANA name; None is this machine's."""


def parse_zone(name: Zone) -> tzinfo:
    """The zone of that IANA name; ``None`` is the machine's own zone.

    Raises ConfigError for a name that the zone database does not have.
    """
    if name is None:
        return machine_zone()
    if isinstance(name, tzinfo):
        return name
    if not isinstance(name, str):
        raise expected("a time zone or its IANA name", name)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ConfigError(
            f"time zone '{name}' is not in the zone database; expected an IANA name such as "
            "'Asia/Taipei', 'Europe/Berlin' or 'UTC'."
        ) from error


def quarters_s(apart_s: float) -> float:
    """The whole number of quarters of an hour that is nearest, s."""
    return QUARTER_S * round(apart_s / QUARTER_S)


def are_zones_apart(apart_s: float, tolerance_s: float) -> bool:
    """Whether clocks so far apart may show one time in two zones: by whole quarters of an hour, but not by none."""
    whole_s = quarters_s(apart_s)
    return 0 < abs(whole_s) <= MOST_APART_S and abs(apart_s - whole_s) <= tolerance_s


def machine_zone() -> tzinfo:
    """The zone this machine is set to.

    TZ=CST-8 is known to the C library alone: a fixed offset. Raises ConfigError for such a zone with summer time.
    """
    import os
    import time

    import tzlocal

    try:
        return tzlocal.get_localzone()
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        if time.daylight:
            raise ConfigError(
                f"the variable TZ is {os.environ.get('TZ')!r}; expected an IANA name such as "
                "'Asia/Taipei', 'Europe/Berlin' or 'UTC'."
            ) from error
        return timezone(timedelta(seconds=-time.timezone))


def localize(
    naive: pd.Series | np.ndarray, zone: tzinfo, streams: Callable[[], Sequence[np.ndarray]] | None = None
) -> Localized:
    """Zone-less timestamps, written in ``zone``, as UTC.

    In the hour that autumn repeats, the order of the timestamps decides where it can; otherwise the
    first pass through the hour is taken and counted. An hour that spring skips is shifted forward.

    Args:
        naive: the timestamps.
        zone: the zone they were written in.
        streams: gives the positions of timestamps in the order in which they were written, apart for each writer; it is
            asked only where an hour repeats. Without it one writer wrote them in the order given.
    """
    first, second, nonexistent = readings(naive, zone)
    ambiguous = _apart(first, second)
    doubtful = 0
    if ambiguous.any():
        for rows in streams() if streams else [slice(None)]:
            first[rows], more = _resolve_fold(first[rows], second[rows], ambiguous[rows])
            doubtful += more
    return Localized(first, getattr(naive, "index", None), doubtful, nonexistent)


def readings(naive: pd.Series | np.ndarray, zone: tzinfo) -> tuple[np.ndarray, np.ndarray, int]:
    """UTC of zone-less timestamps at the first and at the second pass through an hour that autumn repeats.

    Elsewhere both are one. The number is of those in an hour that spring skips, which are shifted forward.
    """
    import numpy as np
    import pandas as pd

    timestamps = np.asarray(naive, "datetime64[us]")
    first, hard = _on_quiet_days(timestamps, zone)
    if not hard.any():
        return first, first, 0
    second = first.copy()
    near = pd.Series(timestamps[hard])
    for reading, earlier in ((first, True), (second, False)):
        reading[hard] = _utc(near, zone, earlier=earlier).to_numpy("datetime64[us]")
    # A timestamp that does not exist comes back changed.
    echoed = pd.Series(first[hard]).dt.tz_localize("UTC").dt.tz_convert(zone).dt.tz_localize(None)
    return first, second, int((near.notna() & (echoed != near)).sum())


def _apart(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """True where the two readings differ, which they do only inside a fold."""
    import numpy as np

    return (first != second) & ~np.isnat(first)


def transitions(zone: tzinfo, start: datetime, end: datetime) -> list[tuple[datetime, timedelta]]:
    """When the zone's offset from UTC changes within (start, end], to the minute, and by how much."""
    found = []
    low = start.astimezone(UTC)
    while low < end:
        high = min(low + timedelta(days=1), end.astimezone(UTC))
        change = _offset(zone, high) - _offset(zone, low)
        if change:
            found.append((_bisect(zone, low, high), change))
        low = high
    return found


def _offset(zone: tzinfo, moment: datetime) -> timedelta:
    return moment.astimezone(zone).utcoffset() or timedelta(0)


def _bisect(zone: tzinfo, low: datetime, high: datetime) -> datetime:
    """The first minute of [low, high] with the offset that holds at ``high``."""
    low = low.replace(second=0, microsecond=0)
    while high - low > timedelta(minutes=1):
        middle = (low + (high - low) / 2).replace(second=0, microsecond=0)
        low, high = (low, middle) if _offset(zone, middle) == _offset(zone, high) else (middle, high)
    return high.replace(second=0, microsecond=0)


def _on_quiet_days(timestamps: np.ndarray, zone: tzinfo) -> tuple[np.ndarray, np.ndarray]:
    """UTC of the timestamps on days far from any change of the zone's offset, and which timestamps are not."""
    import numpy as np

    known = ~np.isnat(timestamps)
    if not known.any():
        return timestamps.copy(), np.zeros(len(timestamps), bool)
    ends = (timestamps if known.all() else timestamps[known]).view(np.int64)
    low, high = int(ends.min()) // DAY_US, int(ends.max()) // DAY_US
    if high - low > MAX_DAYS:
        return timestamps.copy(), known
    noon = [datetime(1970, 1, 1, 12) + timedelta(days=d) for d in range(low - 1, high + 2)]
    offset = np.array([(zone.utcoffset(moment) or timedelta(0)) // timedelta(microseconds=1) for moment in noon])
    quiet = (offset[:-2] == offset[1:-1]) & (offset[1:-1] == offset[2:])
    if quiet.all() and (offset == offset[0]).all():
        return timestamps - offset[0].astype("timedelta64[us]"), np.zeros(len(timestamps), bool)
    day = np.where(known, timestamps.view(np.int64) // DAY_US - low, 0)
    return timestamps - offset[1:-1][day].astype("timedelta64[us]"), known & ~quiet[day]


def _utc(timestamps: pd.Series, zone: tzinfo, *, earlier: bool) -> pd.Series:
    import numpy as np

    flags = np.full(len(timestamps), earlier)
    local = timestamps.dt.tz_localize(zone, ambiguous=flags, nonexistent="shift_forward")
    return local.dt.tz_convert("UTC").dt.tz_localize(None)


def _resolve_fold(a: np.ndarray, b: np.ndarray, fold: np.ndarray) -> tuple[np.ndarray, int]:
    """Take the second reading (b) where the first (a) would run backwards from the timestamp before.

    A step back in local time inside the fold is where the clock was turned: from there on, and
    until the fold ends, the second reading holds. Timestamps of a fold without any such step whose
    neighbours do not decide are counted as doubtful.
    """
    import numpy as np

    out = a.copy()
    doubtful = 0
    edges = np.flatnonzero(np.diff(np.concatenate(([0], fold.view(np.int8), [0]))))
    for low, high in zip(edges[::2], edges[1::2], strict=True):
        turn = np.flatnonzero(np.diff(a[low:high]) < np.timedelta64(-60, "s"))
        if len(turn):
            out[low + turn[0] + 1 : high] = b[low + turn[0] + 1 : high]
        elif not _continues(a, low, high):
            if _continues(b, low, high):
                out[low:high] = b[low:high]
            else:
                doubtful += int(high - low)
    return out, doubtful


def _continues(values: np.ndarray, low: int, high: int) -> bool:
    """True if values[low:high] joins its neighbours on both sides by steps of under half an hour."""
    import numpy as np

    limit = np.timedelta64(1800, "s")
    before = low == 0 or abs(values[low] - values[low - 1]) < limit
    after = high >= len(values) or abs(values[high] - values[high - 1]) < limit
    return bool(before and after) and not (low == 0 and high >= len(values))
