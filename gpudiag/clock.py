"""Time zones: zone-less stamps become UTC, with what was assumed said.

Everything inside gpudiag is UTC. Text written without a zone (nvidia-smi, Optuna up to 4, exports) is
read in the run's zone; the offset between the trials' clock and the telemetry's clock is
established from the data in :mod:`gpudiag.alignment`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import tzinfo
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from gpudiag.errors import ConfigError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Localized:
    """``time``: UTC stamps, in the order given. The counts say how many stamps a DST change made doubtful."""

    time: pd.Series
    ambiguous: int
    nonexistent: int


def parse_zone(name: str | tzinfo | None) -> tzinfo:
    """The zone of that IANA name; ``None`` is the machine's own zone.

    Raises ConfigError for a name that the zone database does not have.
    """
    if name is None:
        return machine_zone()
    if isinstance(name, tzinfo):
        return name
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ConfigError(
            f"time zone '{name}' is not in the zone database; expected an IANA name such as "
            "'Asia/Taipei', 'Europe/Berlin' or 'UTC'."
        ) from error


def machine_zone() -> tzinfo:
    """The zone this machine is set to."""
    import tzlocal

    return tzlocal.get_localzone()


def localize(naive: pd.Series, zone: tzinfo) -> Localized:
    """Zone-less stamps, written in ``zone`` in the order given, as UTC.

    In the hour that autumn repeats, the order of the stamps decides where it can; otherwise the
    first pass through the hour is taken and counted. An hour that spring skips is shifted forward.
    """
    import pandas as pd

    stamps = naive.astype("datetime64[us]")
    first = _utc(stamps, zone, earlier=True)
    second = _utc(stamps, zone, earlier=False)
    # Both readings agree except inside a fold; a stamp that does not exist comes back changed.
    ambiguous = first.notna() & (first != second)
    echoed = first.dt.tz_convert(zone).dt.tz_localize(None)
    nonexistent = int((first.notna() & (echoed != stamps)).sum())
    doubtful = 0
    if ambiguous.any():
        first, doubtful = _resolve_fold(first, second, ambiguous)
    time = first.astype("datetime64[us, UTC]")
    return Localized(pd.Series(time, index=naive.index), doubtful, nonexistent)


def _utc(stamps: pd.Series, zone: tzinfo, *, earlier: bool) -> pd.Series:
    import numpy as np

    flags = np.full(len(stamps), earlier)
    local = stamps.dt.tz_localize(zone, ambiguous=flags, nonexistent="shift_forward")
    return local.dt.tz_convert("UTC")


def _resolve_fold(first: pd.Series, second: pd.Series, ambiguous: pd.Series) -> tuple[pd.Series, int]:
    """Take the second reading where the first would run backwards from the stamp before.

    A step back in local time inside the fold is where the clock was turned: from there on, and
    until the fold ends, the second reading holds. Stamps of a fold without any such step whose
    neighbours do not decide are counted as doubtful.
    """
    import numpy as np

    a = first.to_numpy("datetime64[us]")
    b = second.to_numpy("datetime64[us]")
    fold = ambiguous.to_numpy()
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
    import pandas as pd

    return pd.Series(out, index=first.index).dt.tz_localize("UTC"), doubtful


def _continues(stamps: object, low: int, high: int) -> bool:
    """True if stamps[low:high] joins its neighbours on both sides by steps of under half an hour."""
    import numpy as np

    values = np.asarray(stamps)
    limit = np.timedelta64(1800, "s")
    before = low == 0 or abs(values[low] - values[low - 1]) < limit
    after = high >= len(values) or abs(values[high] - values[high - 1]) < limit
    return bool(before and after) and not (low == 0 and high >= len(values))
