"""Stretches of time that come in order and do not overlap."""

from __future__ import annotations

import numpy as np

SILENCE_S = 6 * 3600.0
"""A longer silence of all GPUs ends a session, where no trials say what belongs together (a default without a source:
longer than an outage that somebody mends, shorter than a night)."""


def held_within(
    start: np.ndarray, end: np.ndarray, left: np.ndarray, right: np.ndarray, worth: np.ndarray | None = None
) -> np.ndarray:
    """How much of the spans from ``left`` to ``right`` lies between each start and end, all on one scale of time.

    A span that is cut counts in proportion. ``worth``: what each whole span holds, its length where that is not given.
    """
    if not len(left):
        return np.zeros(len(start))
    each = right - left if worth is None else worth
    upto = np.cumsum(each)
    edges, held = np.column_stack([left, right]).ravel(), np.column_stack([upto - each, upto]).ravel()
    return np.asarray(np.interp(end, edges, held) - np.interp(start, edges, held))
