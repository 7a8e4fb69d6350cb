"""Even bins of time with round widths."""

from __future__ import annotations

import numpy as np

from gpudiag.measures._time.microseconds import SECOND_US
from gpudiag.spans import Window

MAX_BINS = 120
BIN_STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)


def bin_width_s(windows: list[Window]) -> int:
    """The smallest round width with which at most MAX_BINS bins cover all windows."""
    span_s = (windows[-1][1] - windows[0][0]) / SECOND_US
    days = BIN_STEPS_S[-1] * max(1, -(-int(span_s) // (MAX_BINS * BIN_STEPS_S[-1])))
    return next((step for step in BIN_STEPS_S if span_s <= step * MAX_BINS), days)


def bin_cuts(windows: list[Window]) -> np.ndarray:
    """Borders of the bins, from the start of the first window."""
    low, high = windows[0][0], windows[-1][1]
    return np.arange(low, high, bin_width_s(windows) * SECOND_US, dtype=np.int64)
