"""Which samples show that a GPU works: what start-ups and ends of trials are read off."""

from __future__ import annotations

import numpy as np

from gpudiag.schema import IDLE_PCT, UNUSED_PCT

REALLY = 2 * IDLE_PCT
"""A GPU that reaches this in a hundredth of the time in which it is in use works above IDLE_PCT."""


def at_work(util_pct: np.ndarray) -> np.ndarray:
    """True for each sample above IDLE_PCT; where the GPU never really is, above half of what it does instead.

    A trial that works at 4 to 9 % has begun when it does so, and ends when it stops; its time is still that of an idle
    GPU (``stalled``). What a desktop shows between trials that load the GPU is no work.
    """
    used = util_pct[util_pct > UNUSED_PCT]
    if not len(used) or np.quantile(used, 0.99) >= REALLY:
        return util_pct > IDLE_PCT
    return util_pct > min(IDLE_PCT, max(UNUSED_PCT, float(np.median(used)) / 2))
