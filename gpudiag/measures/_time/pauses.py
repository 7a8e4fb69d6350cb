"""Stretches in which no trial ran: somebody launched the rest later, and no worker waited meanwhile."""

from __future__ import annotations

import numpy as np

from gpudiag.measures._time.concurrency import busy_stretches
from gpudiag.measures._time.microseconds import SECOND_US
from gpudiag.spans import PAUSE_S


def pauses(start_us: np.ndarray, end_us: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """From when to when no trial of any worker ran, for PAUSE_S or more, in order."""
    began, ended = busy_stretches(start_us, end_us)
    left, right = ended[:-1], began[1:]
    long = right - left >= PAUSE_S * SECOND_US
    return left[long], right[long]


def holds_pause(from_us: np.ndarray, to_us: np.ndarray, all_pauses: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """True for each stretch within which a whole pause lies."""
    left, right = all_pauses
    if not len(left):
        return np.zeros(len(from_us), bool)
    at = np.searchsorted(left, from_us)
    return np.append(right, np.iinfo(np.int64).max)[at] <= to_us
