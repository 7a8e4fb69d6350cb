"""Stamps as whole microseconds, in which time arithmetic is exact."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gpudiag.schema import dtype

SECOND_US = 1_000_000


def microseconds(time: pd.Series) -> np.ndarray:
    """UTC stamps as whole microseconds since 1970. NaT must have been dropped."""
    return time.to_numpy("datetime64[us]").astype(np.int64)


def utc(microseconds_: np.ndarray) -> pd.Series:
    """The inverse of :func:`microseconds`."""
    stamps = pd.Series(np.asarray(microseconds_, np.int64).astype("datetime64[us]"))
    return stamps.dt.tz_localize("UTC").astype(dtype("time"))
