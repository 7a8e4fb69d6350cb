"""Stretches in which the memory of a GPU filled up before much of it was freed at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpudiag.measures._trials.memory_falls import falls_of

FULL = 0.9
"""Of the total: nearly full (METHODS 6)."""
FREED = 0.2
"""Of the total, freed at once (a default without a published source)."""


class Fill(NamedTuple):
    """The samples from one fall to the next, before which memory was nearly full; ``freed``: the first after it."""

    samples: slice
    freed: int


def fills(used_mib: np.ndarray, total_mib: float) -> list[Fill]:
    """Each stretch at whose end memory was nearly full and then fell, in order."""
    if len(used_mib) < 2:
        return []
    last, first, size = falls_of(np.arange(len(used_mib)), used_mib)
    large = size >= FREED * total_mib
    freed, ends = first[large].tolist(), last[large].tolist()
    both = zip([0, *freed], ends, freed, strict=False)
    return [Fill(slice(low, end + 1), after) for low, end, after in both if used_mib[end] >= FULL * total_mib]
