"""The window of time that a run was narrowed to by :meth:`gpudiag.run.Run.between`."""

from __future__ import annotations

import numpy as np

from gpudiag.run import Run

ALWAYS = (int(np.iinfo(np.int64).min), int(np.iinfo(np.int64).max))


def limits_us(run: Run) -> tuple[int, int]:
    """First and last microsecond (since 1970) that count; the ends of int64 where the run was not narrowed."""
    low, high = run.info.between
    return ALWAYS[0] if low is None else low.value // 1000, ALWAYS[1] if high is None else high.value // 1000
