"""One column of the telemetry as a figure draws it: few points, every extreme, no line across a gap."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gpudiag.measures._gpu.gpu_rows import by_gpu
from gpudiag.measures._time.decimate import kept_rows, time_bins
from gpudiag.measures._time.microseconds import utc

MAX_POINTS = 2000


def series(samples: pd.DataFrame, value: str, mean: str) -> pd.DataFrame:
    """gpu, time, ``value``, ``mean``, weight_s of those rows of ``cells`` that a figure needs.

    At most MAX_POINTS rows a GPU, extremes kept; ``mean`` is the time-weighted mean of a row's bin.
    One more row, with an unknown value, stands in the middle of each gap.
    """
    gpus = by_gpu(samples)
    if all(len(part) <= MAX_POINTS for _, part in gpus):
        return _undecimated(samples, value, mean)
    parts = []
    for gpu, part in gpus:
        bins = time_bins(part["time"], MAX_POINTS)
        at = kept_rows(part["time"], part[value].to_numpy(float), MAX_POINTS, bins)
        rows = part[["gpu", "time", value, "weight_s"]].iloc[at].assign(**{mean: _bin_mean(part, value, at, bins)})
        parts.append(pd.concat([rows, _breaks(part, gpu)]).sort_values("time", kind="stable"))
    return pd.concat(parts, ignore_index=True)[["gpu", "time", value, mean, "weight_s"]]


def _undecimated(samples: pd.DataFrame, value: str, mean: str) -> pd.DataFrame:
    """The same of GPUs with few rows each, of which none is left out but those of unknown value: all GPUs at once."""
    rows = samples[["gpu", "time", value, "weight_s"]].assign(**{mean: samples[value].to_numpy(float)})
    end, start = samples["end_us"].to_numpy()[:-1], samples["start_us"].to_numpy()[1:]
    codes = pd.factorize(samples["gpu"])[0]
    at = np.flatnonzero((start > end) & (codes[1:] == codes[:-1]))
    breaks = pd.DataFrame({"gpu": samples["gpu"].iloc[at].array, "time": utc((end[at] + start[at]) // 2)})
    known = samples[value].notna().to_numpy()
    place = np.concatenate([2 * np.flatnonzero(known), 2 * at + 1])
    out = pd.concat([rows[known], breaks.assign(weight_s=0.0)]).iloc[np.argsort(place, kind="stable")]
    return out.reset_index(drop=True)[["gpu", "time", value, mean, "weight_s"]]


def _bin_mean(part: pd.DataFrame, value: str, at: np.ndarray, bins: np.ndarray) -> np.ndarray:
    """The mean of the bin of each of these rows."""
    values, weight = part[value].to_numpy(float), part["weight_s"].to_numpy()
    if len(part) <= MAX_POINTS:
        return values[at]
    total = np.bincount(bins, weights=weight)
    return (np.bincount(bins, weights=weight * values) / np.where(total > 0, total, np.nan))[bins[at]]


def _breaks(part: pd.DataFrame, gpu: str) -> pd.DataFrame:
    """One row for each gap between cells of one GPU."""
    end, start = part["end_us"].to_numpy()[:-1], part["start_us"].to_numpy()[1:]
    gap = start > end
    rows = pd.DataFrame({"time": utc((end[gap] + start[gap]) // 2), "weight_s": 0.0})
    return rows.assign(gpu=pd.Series(gpu, rows.index, dtype=part["gpu"].dtype))
