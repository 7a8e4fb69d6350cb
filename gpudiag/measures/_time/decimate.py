"""Fewer points for a figure, with every extreme kept."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd

from gpudiag.measures._gpu.gpu_rows import edges_of_codes


def decimate(frame: pd.DataFrame, time: str, value: str, max_points: int = 2000) -> pd.DataFrame:
    """At most ``max_points`` rows of one series: the least and the greatest value of each bin of time.

    The rows must be sorted by ``time``. The first and the last row are always among those kept, so a
    line through the result has the envelope and the span of the whole series. Rows with an
    unknown value are dropped. ``max_points`` must be at least 4.
    """
    return frame.iloc[kept_rows(frame[time], frame[value].to_numpy(float), max_points)].reset_index(drop=True)


def kept_rows(time: pd.Series, values: np.ndarray, max_points: int, bins: np.ndarray | None = None) -> np.ndarray:
    """Places of the rows that :func:`decimate` keeps. ``bins``: :func:`time_bins` of these times, where known."""
    known = np.flatnonzero(~np.isnan(values))
    if len(known) <= max_points:
        return known
    if len(known) < len(values):
        time, values, bins = time.iloc[known], values[known], None
    bins = time_bins(time, max_points) if bins is None else bins
    keep = {0, len(known) - 1}
    for low, high in pairwise(edges_of_codes(bins)):
        part = values[low:high]
        keep |= {low + int(part.argmin()), high - 1 - int(part[::-1].argmax())}
    return known[sorted(keep)]


def time_bins(time: pd.Series, max_points: int) -> np.ndarray:
    """Number of the bin that each timestamp falls in, where :func:`decimate` keeps at most ``max_points`` rows."""
    timestamps = time.to_numpy("datetime64[us]").astype(np.int64)
    n_bins = (max_points - 2) // 2
    span = max(int(timestamps[-1] - timestamps[0]), 1)
    return np.minimum(((timestamps - timestamps[0]) * (n_bins / span)).astype(np.int64), n_bins - 1)
