"""Laws of co-location: how fast jobs run beside each other on one GPU, from how busy each keeps it alone.

A job alone keeps the GPU busy for the share ``u`` of the time. Beside others it runs at a speed of 1 (as alone) or
less. None of the laws has a fitted number; ``docs/forecast.md`` compares them with 1,388 measured pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

Law = Callable[[np.ndarray], np.ndarray]
"""From the busy shares alone (..., k) in 0..1 to the total busy share or to the common speed (...)."""


def saturating_busy(alone: np.ndarray) -> np.ndarray:
    """min(1, sum of u): kernels never overlap, and jobs use what others leave."""
    return np.minimum(1.0, alone.sum(axis=-1))


def overlapping_busy(alone: np.ndarray) -> np.ndarray:
    """1 - product of (1 - u): jobs are busy independently of each other, and overlaps count once."""
    return np.asarray(1.0 - np.prod(1.0 - alone, axis=-1))


def saturating_speed(alone: np.ndarray) -> np.ndarray:
    """Processor sharing of min(1, sum of u): nobody is slowed down before the GPU is full."""
    return saturating_busy(alone) / alone.sum(axis=-1)


def overlapping_speed(alone: np.ndarray) -> np.ndarray:
    """Processor sharing of 1 - product of (1 - u): the work of one job is busy time, whoever is beside it."""
    return overlapping_busy(alone) / alone.sum(axis=-1)


def queueing_speed(alone: np.ndarray) -> np.ndarray:
    """Mean value analysis of one server and a delay: a job finds the others as they are without it.

    For jobs of equal u, X(k)/k from the recursion R = u (1 + Q); of a pair the speed is 1/(1 + u1 u2).
    """
    share = np.sqrt(np.prod(alone, axis=-1)) if alone.shape[-1] == 2 else alone.mean(axis=-1)
    queue = np.zeros_like(share)
    speed = np.ones_like(share)
    for k in range(1, alone.shape[-1] + 1):
        response = share * (1.0 + queue)
        speed = 1.0 / (1.0 - share + response)
        queue = k * speed * response
    return np.asarray(speed)


def sliced_speed(alone: np.ndarray) -> np.ndarray:
    """Equal time slices whether used or not: 1/k."""
    return np.full(alone.shape[:-1], 1.0 / alone.shape[-1])


def undisturbed_speed(alone: np.ndarray) -> np.ndarray:
    """No job disturbs another: what 'linear in the number of workers' assumes."""
    return np.ones(alone.shape[:-1])


LawName = Literal["saturating", "overlapping"]
BUSY_LAWS: dict[LawName, Law] = {"saturating": saturating_busy, "overlapping": overlapping_busy}
"""Total busy share, by the name of the law."""

SPEED_LAWS: dict[str, Law] = {
    "saturating": saturating_speed,
    "overlapping": overlapping_speed,
    "queueing": queueing_speed,
    "sliced": sliced_speed,
    "undisturbed": undisturbed_speed,
}
"""Mean speed of the jobs, by the name of the law."""

DEFAULT_LAW: LawName = "saturating"
"""Of these the nearest to the speeds of 1,388 measured pairs (docs/forecast.md)."""


def busy_of_equal(law: LawName, share: np.ndarray, k: int) -> np.ndarray:
    """Busy share of ``k`` jobs of equal share, by the law's formula for any k >= 0; ``share`` of any shape."""
    return np.minimum(1.0, k * share) if law == "saturating" else np.asarray(1.0 - (1.0 - share) ** k)
