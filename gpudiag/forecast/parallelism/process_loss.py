"""What every further process on a GPU costs the others: driver, context switches, caches, memory bandwidth."""

from __future__ import annotations

MOST_LOSS = 0.08
"""The share of its speed that a further process takes from each on its GPU: none to 8 %. Of 679 pairs measured on a
real GPU that needed less than 0.9 of it together, half ran at most 1.2 % slower than alone, 90 % at most 7.2 %, and
95 % at most 8.9 % (docs/forecast.md)."""


def slowed(now: float, wanted: float) -> float:
    """Speed of ``wanted`` workers on a GPU over that of ``now``, at the greatest loss: above 1 for fewer."""
    return float((1.0 - MOST_LOSS) ** (wanted - now))
