"""Timestamps as whole microseconds, in which time arithmetic is exact."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gpudiag import spans, units
from gpudiag.schema import dtype

SECOND_US, microseconds = units.SECOND_US, spans.microseconds
NEVER = np.iinfo(np.int64).max
"""Microseconds since 1970 of what does not come; LONG_AGO of what was before everything."""
LONG_AGO = np.iinfo(np.int64).min
LOOK = 1000
"""Steps by which a usual one is guessed."""


def distinct(*times_us: np.ndarray) -> np.ndarray:
    """All of these times in order, each once. A stable sort merges parts that are sorted; np.unique would hash all."""
    together = np.sort(np.concatenate(times_us), kind="stable")
    return together[np.append(True, together[1:] > together[:-1])[: len(together)]]


def median_of_steps(steps: np.ndarray) -> float:
    """The median of one or more steps. Most recorders keep one, which is told without the sorting that many equal
    values make slow.
    """
    usual = float(np.median(steps[:: len(steps) // LOOK + 1]))
    half = len(steps) / 2
    if np.count_nonzero(steps < usual) < half and np.count_nonzero(steps > usual) < half:
        return usual
    return float(np.median(steps))


def after(start_us: np.ndarray, seconds: pd.Series) -> np.ndarray:
    """Microseconds since 1970 of so many seconds after each start; NEVER where they are unknown."""
    length = seconds.to_numpy(float)
    out = np.full(len(start_us), NEVER)
    known = np.isfinite(length)
    out[known] = start_us[known] + (length[known] * SECOND_US).astype(np.int64)
    return out


def utc(microseconds_: np.ndarray) -> pd.Series:
    """The inverse of :func:`microseconds`."""
    timestamps = pd.Series(np.asarray(microseconds_, np.int64).astype("datetime64[us]"))
    return timestamps.dt.tz_localize("UTC").astype(dtype("time"))
