"""The index of a frame that somebody holds: what it says of the rows, such as their times, becomes columns."""

from __future__ import annotations

import pandas as pd

from gpudiag.readers._fields.aliases import meaning_of

_TIMES = ("time", "date", "elapsed")
_DATE = r"\s*\d{4}[-/]\d\d?[-/]\d\d?"


def with_index(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with its index as columns in front: levels that have a name, and times, whatever they are called.

    A level whose name a column has says nothing more; numbers without a name count rows.
    """
    names = list(frame.columns)
    levels: dict[object, pd.Index] = {}
    for place in range(frame.index.nlevels):
        given = frame.index.get_level_values(place)
        level = given.to_timestamp() if isinstance(given, pd.PeriodIndex) else given
        timed = any(meaning_of(str(name)).target in _TIMES for name in (level.name, *names, *levels))
        name = level.name if timed or not (stands_for := _times_in(level)) else stands_for
        counts = name is None or (name == "index" and isinstance(level, pd.RangeIndex))
        if not counts and name not in names:
            levels[name] = level.total_seconds() if isinstance(level, pd.TimedeltaIndex) else level
    out = frame.reset_index(drop=True)
    return pd.concat([pd.DataFrame(levels), out], axis=1) if levels else out


def _times_in(level: pd.Index) -> str:
    """The name of a column of such times; '' where they are none."""
    if isinstance(level, pd.TimedeltaIndex):
        return "elapsed_s"
    kind = pd.api.types.infer_dtype(level, skipna=True)
    if kind == "string":
        return "time" if level.dropna().astype(str).str.match(_DATE).all() else ""
    return "time" if kind in ("datetime64", "datetime", "date") else ""
