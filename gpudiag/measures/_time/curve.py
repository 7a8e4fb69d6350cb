"""How much a curve rises within each of many spans."""

from __future__ import annotations

import numpy as np


def rise(start: np.ndarray, end: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """For spans in order of their starts, the rise from each start to each end of the curve through (x, y), which is
    level before its first and after its last point. Where the next span begins at an end, it is looked up once.
    """
    at_start = np.interp(start, x, y)
    at_end = np.append(at_start[1:], np.nan)
    alone = np.flatnonzero(np.append(start[1:] != end[:-1], True)[: len(end)])
    at_end[alone] = np.interp(end[alone], x, y)
    return np.asarray(at_end[: len(end)] - at_start)
