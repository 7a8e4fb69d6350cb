"""Which samples show that a GPU works: what start-ups and ends of trials are read off."""

from __future__ import annotations

import numpy as np

from gpudiag.schema import IDLE_PCT, UNUSED_PCT

RARELY = 0.25
"""A GPU that is in use and above IDLE_PCT for a smaller part of that time works below it."""


def at_work(util_pct: np.ndarray) -> np.ndarray:
    """True for each sample above IDLE_PCT; where the GPU hardly ever is, above half of what it does instead.

    A trial that works at 4 to 9 % has begun when it does so, and ends when it stops; its time is still that of an idle
    GPU (``stalled``).
    """
    active, used = util_pct > IDLE_PCT, util_pct > UNUSED_PCT
    if not used.any() or active.sum() >= RARELY * used.sum():
        return active
    return util_pct > max(UNUSED_PCT, float(np.median(util_pct[used])) / 2)
