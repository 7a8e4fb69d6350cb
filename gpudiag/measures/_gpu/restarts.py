"""Whether a job ended where the memory of a GPU was freed, and was started again."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from gpudiag.measures._steps.courses import DOWN_S
from gpudiag.measures._time.microseconds import SECOND_US
from gpudiag.measures._trials.memory_falls import LEAST_MIB
from gpudiag.measures._waits.logged import LoggedInterval
from gpudiag.schema import IDLE_PCT

UNEXPLAINED = ("restart", "first_steps", "other")
"""Causes of a pause in a log that leave a restart possible."""


def was_restarted(
    time_us: np.ndarray,
    used_mib: np.ndarray,
    util_pct: np.ndarray,
    fall: tuple[int, int],
    told: Iterable[LoggedInterval],
) -> bool | None:
    """For the last sample before a fall and the first after it; None where that is open.

    A restart leaves less memory than a CUDA context takes, stands in the log, or leaves the GPU idle for 30 s. There is
    none where the log's steps go on, or the GPU is active again sooner (30 s as behind a failure in a log).
    """
    before, after = fall
    if used_mib[after] < LEAST_MIB:
        return True
    before += int(np.argmin(np.diff(used_mib[before : after + 1])))  # where most of it fell
    after = before + 1
    meanwhile = [one for one in told if one.start_us < time_us[after] and one.end_us > time_us[before]]
    if any(one.cause == "restart" for one in meanwhile):
        return True
    if any(_goes_on(one, int(time_us[before]), int(time_us[after])) for one in meanwhile):
        return False
    active = np.flatnonzero(util_pct >= IDLE_PCT)
    earlier = active[active <= before]
    # A sample of utilization may show the second before it.
    later = active[time_us[active] > time_us[after] + SECOND_US]
    low, high = int(earlier[-1]) if len(earlier) else -1, int(later[0]) if len(later) else len(time_us)
    between = time_us[low + 1 : high]
    if np.isfinite(util_pct[low + 1 : high]).all() and between[-1:].sum() - between[:1].sum() >= DOWN_S * SECOND_US:
        return True
    is_seen = len(earlier) and len(later) and time_us[high] - time_us[low] < DOWN_S * SECOND_US
    return False if is_seen else None


def _goes_on(one: LoggedInterval, before_us: int, after_us: int) -> bool:
    """Whether one process wrote the lines at both ends of an interval that holds a fall."""
    is_one = one.paused_s < DOWN_S or one.cause not in UNEXPLAINED
    return is_one and one.start_us <= before_us and after_us <= one.end_us
