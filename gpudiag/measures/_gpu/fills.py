"""Stretches in which the memory of a GPU filled up before much of it was freed at once."""

from __future__ import annotations

import numpy as np

from gpudiag.measures._trials.memory_falls import falls_of

FULL = 0.9
"""Of the total: nearly full (METHODS 6)."""
FREED = 0.2
"""Of the total, freed at once: a process ended, as a caching allocator keeps what it has (a default without a published
source)."""


def fills(used_mib: np.ndarray, total_mib: float) -> list[slice]:
    """The samples of each stretch at whose end memory was nearly full and then fell, from the fall before it on."""
    if len(used_mib) < 2:
        return []
    last, first, size = falls_of(np.arange(len(used_mib)), used_mib)
    large = size >= FREED * total_mib
    begin = [0, *first[large].tolist()]
    ends = last[large].tolist()
    return [slice(low, end + 1) for low, end in zip(begin, ends, strict=False) if used_mib[end] >= FULL * total_mib]
