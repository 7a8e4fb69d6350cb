"""Which part of a window the telemetry covers."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd

from gpudiag.measures._gpu.gpu_rows import slices
from gpudiag.measures._time.cells import seen_us
from gpudiag.measures._time.expected import expected_window
from gpudiag.measures._time.own_time import held_windows
from gpudiag.run import Run
from gpudiag.spans import Window, length_us


def coverage_pct(run: Run, samples: pd.DataFrame, window: Window | None = None) -> dict[str, float]:
    """Share of the window that each GPU's cells cover, of what of it lies in attempts that had the GPU; NaN for a
    window without length. By default the window is the one expected.
    """
    start, end = samples["start_us"].to_numpy(), samples["end_us"].to_numpy()
    whole = window or expected_window(run, samples)
    return {gpu: covered_pct(run, gpu, start[own], end[own], whole) for gpu, own in slices(samples)}


def covered_pct(run: Run, gpu: str, start_us: np.ndarray, end_us: np.ndarray, window: Window) -> float:
    """Share of the window that cells of one GPU cover; see :func:`coverage_pct`."""
    windows = held_windows(run, gpu, [window])
    seen = sum(seen_us(start_us, end_us, held) for held in windows)
    return 100 * seen / length_us(windows) if length_us(windows) > 0 else float("nan")


def least_pct(shares: Iterable[float]) -> float:
    """The least of what is known; NaN of a GPU that nobody had, where nothing is missing."""
    return min((share for share in shares if not math.isnan(share)), default=math.nan)
