"""Memory in use while a GPU is idle: held or not, and whether it is the work's own."""

from __future__ import annotations

import math

import numpy as np

BASELINE_PCT = 5.0
BASELINE_MIB = 300.0
"""Memory in use moves by so much at most where nothing takes any: the larger part, of the total."""
HELD_PCT = 10.0
HELD_MIB = 1024.0
"""Memory beyond what a desktop and a CUDA context take: the larger of a tenth of the total and 1 GiB."""
BESIDE = 3
"""Samples before and after an idle stretch that tell which memory the work had."""


def held_from_mib(total_mib: float) -> float:
    """Memory in use from which on it counts as held; the total may be NaN."""
    return max(HELD_MIB, HELD_PCT / 100 * float(np.nan_to_num(total_mib)))


def was_kept(used_mib: np.ndarray, first: int, last: int, total_mib: float) -> bool:
    """Whether memory held was the same before, in and after the samples ``first`` to ``last``: apart by 5 % of the
    total or 300 MiB at most, whichever is more, as memory at its baseline.
    """
    parts = used_mib[max(first - BESIDE, 0) : first], used_mib[first : last + 1], used_mib[last + 1 :][:BESIDE]
    if not all(np.isfinite(part).any() for part in parts):
        return False
    low, high = (float(of(np.concatenate(parts))) for of in (np.nanmin, np.nanmax))
    alike = max(BASELINE_MIB, BASELINE_PCT / 100 * float(np.nan_to_num(total_mib)))
    return low >= held_from_mib(total_mib) and high - low <= alike


def was_freed(used_mib: np.ndarray, first: int, last: int, total_mib: float) -> bool:
    """Whether memory that was held before these samples was not in them."""
    before_mib, mean_mib = mean_known(used_mib[max(first - BESIDE, 0) : first]), mean_known(used_mib[first : last + 1])
    return before_mib >= held_from_mib(total_mib) > mean_mib


def mean_known(values: np.ndarray) -> float:
    """Mean of what is known; NaN where nothing is."""
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else math.nan
