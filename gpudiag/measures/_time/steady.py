"""Where the steady work of a GPU begins: a start-up shows bursts, as where weights are loaded and code compiled."""

from __future__ import annotations

import numpy as np

BURSTS = 0.1
"""Share of a start-up in which the GPU works, at most."""
LITTLE = 0.05
"""Of the work behind it, at most: more is work of its own, and what follows a pause."""
STEADY = 0.5
"""Share of the time behind it in which the GPU works, at least."""
LONGER = 2.0
"""Times the longest wait behind it that a start-up lasts, or it may be the first of such waits."""
MIN_SAMPLES = 10
"""Of a start-up: fewer tell no share (defaults without a published source)."""


def first_work(at_work: np.ndarray, start_us: np.ndarray, end_us: np.ndarray, held: np.ndarray | None = None) -> int:
    """The sample of one GPU with which its steady work begins; without a start-up before that the first at work, and
    the number of samples where none is. ``held``: whether a process surely had the GPU; a start-up that is asked for it
    has one throughout.
    """
    active = np.flatnonzero(at_work)
    if not len(active):
        return len(at_work)
    first, last = int(active[0]), int(active[-1])
    opens = np.flatnonzero(np.diff(active) > 1)
    begins = active[opens + 1]  # the first samples at work behind an idle stretch
    if not len(begins):
        return first
    worked_us = np.append(0, np.cumsum(np.where(at_work, end_us - start_us, 0)))
    before, after = worked_us[begins] - worked_us[first], worked_us[last + 1] - worked_us[begins]
    length_us, left_us = start_us[begins] - start_us[first], end_us[last] - start_us[begins]
    waits_us = start_us[begins] - end_us[active[opens]]
    longest_later = np.append(np.maximum.accumulate(waits_us[::-1])[::-1][1:], 0)
    found = (before <= BURSTS * length_us) & (before <= LITTLE * after) & (after >= STEADY * left_us)
    found &= (begins - first >= MIN_SAMPLES) & (length_us >= LONGER * longest_later)
    if held is not None:
        found &= begins <= np.append(np.flatnonzero(~held[first:]) + first, len(at_work))[0]
    return int(begins[found][-1]) if found.any() else first
