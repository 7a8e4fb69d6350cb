"""When memory of a GPU was freed, by the end of a trial that is known or by something other."""

from __future__ import annotations

import numpy as np

from gpudiag.measures._time.microseconds import SECOND_US, median_of_steps

SLACK_US = 10 * SECOND_US
"""A process frees its memory up to this long before or after the end that the storage holds."""
LEAST_MIB = 300.0
"""Smaller than what a CUDA context takes: no process ended."""
LEAST_ENDS = 5
SHOWN = 0.8
"""Share of the known ends that a fall must go with, before one without an end says anything."""


def unexplained_falls(time_us: np.ndarray, used_mib: np.ndarray, end_us: np.ndarray, most: int) -> np.ndarray:
    """Times (µs) at which as much memory fell as at an end, with no known end near.

    Nothing where fewer than SHOWN of the known ends show a fall, or where more than ``most`` falls are without an end:
    there memory falls for other reasons too.
    """
    none = np.zeros(0, np.int64)
    if len(end_us) < LEAST_ENDS or len(time_us) < 2:
        return none
    left, right, size = falls_of(time_us, used_mib)
    slack, ends = _slack_us(time_us), np.sort(end_us)
    first = np.searchsorted(right, ends - slack, "left")
    last = np.searchsorted(left, ends + slack, "right")
    at_end = np.array([size[a:b].max(initial=0.0) for a, b in zip(first, last, strict=True)])
    seen = at_end[at_end >= LEAST_MIB]
    if len(seen) < SHOWN * len(ends):
        return none
    near = np.searchsorted(ends, left - slack) < np.searchsorted(ends, right + slack, "right")
    found = ~near & (size >= max(LEAST_MIB, float(np.quantile(seen, 0.1)) / 2))
    times: np.ndarray = (left[found] + right[found]) // 2
    return times if len(times) <= most else none


def falls_at_ends(
    time_us: np.ndarray, used_mib: np.ndarray, end_us: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The falls at the end of a trial: last sample before each, MiB, and the position of the end that is nearest; then
    True for each end at which memory falls, also where several trials end at once.
    """
    if not len(end_us) or len(time_us) < 2:
        return np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64), np.zeros(len(end_us), bool)
    left, right, size = falls_of(time_us, used_mib)
    large = size >= LEAST_MIB
    left, right, size = left[large], right[large], size[large]
    order = np.argsort(end_us, kind="stable")
    ends = end_us[order]
    nearest = np.searchsorted((ends[1:] + ends[:-1]) // 2, (left + right) // 2)
    slack = _slack_us(time_us)
    own = (ends[nearest] >= left - slack) & (ends[nearest] <= right + slack)
    freed = np.searchsorted(right, end_us - slack) < np.searchsorted(left, end_us + slack, "right")
    return left[own], size[own], order[nearest[own]], freed


def _slack_us(time_us: np.ndarray) -> int:
    return SLACK_US + 2 * int(median_of_steps(np.diff(time_us)))


def falls_of(time_us: np.ndarray, used_mib: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Last sample before and first after each fall, and MiB; samples that fall one after another are one fall."""
    step = np.diff(used_mib)
    down = np.concatenate([[False], step < 0, [False]])
    begin, end = np.flatnonzero(down[1:] & ~down[:-1]), np.flatnonzero(down[:-1] & ~down[1:])
    return time_us[begin], time_us[end], used_mib[begin] - used_mib[end]
