"""What each GPU of a training waited for: the time without a kernel, by what its host did meanwhile."""

from __future__ import annotations

import numpy as np

from gpudiag.simulation.trainings.world import RankHistory, Span

CAUSES = {
    "startup": "startup",
    "loader": "loader",
    "copy": "copy",
    "first_step": "first_steps",
    "launch": "launch",
    "sync": "launch",
    "host": "host",
    "evaluation": "evaluation",
    "checkpoint": "checkpoint",
    "down": "restart",
    "restart": "restart",
    "end": "outside",
}
"""By state of the host: the cause of idle time. What little is idle in a synchronization is the way to its launch."""


def merged(spans: list[Span]) -> tuple[np.ndarray, np.ndarray]:
    """Spans in order of time, those that touch as one."""
    if not spans:
        return np.empty(0), np.empty(0)
    start, end = np.array(spans).T
    opens = np.append(True, start[1:] > end[:-1] + 1e-12)
    return start[opens], end[np.append(np.flatnonzero(opens)[1:] - 1, len(end) - 1)]


def busy_until(start: np.ndarray, end: np.ndarray, when: np.ndarray) -> np.ndarray:
    """Seconds with a kernel from the beginning up to each time."""
    area = np.append(0.0, np.cumsum(end - start))
    at = np.searchsorted(start, when, "right")
    last = np.maximum(at - 1, 0)
    over = np.maximum(np.append(end, 0.0)[last] - when, 0.0) if len(end) else np.zeros(len(when))
    return np.where(at > 0, area[at] - over, 0.0)


def idle_by_cause(rank: RankHistory, start_s: float, end_s: float) -> dict[str, float]:
    """Seconds without a kernel from ``start_s`` to ``end_s``, by cause; all that lies outside of the host's spans is
    ``outside``.
    """
    begin, end, states = zip(*rank.host, strict=True)
    low, high = np.clip(np.array(begin), start_s, end_s), np.clip(np.array(end), start_s, end_s)
    kernels = merged(rank.kernels)
    idle = (high - low) - (busy_until(*kernels, high) - busy_until(*kernels, low))
    out = dict.fromkeys(dict.fromkeys(CAUSES.values()), 0.0)
    for state, seconds in zip(states, idle.tolist(), strict=True):
        out[CAUSES[state]] += seconds
    out["outside"] += (end_s - start_s) - float((high - low).sum())
    return out


def busy_s(rank: RankHistory, start_s: float, end_s: float) -> float:
    """Seconds with a kernel from ``start_s`` to ``end_s``."""
    before, after = busy_until(*merged(rank.kernels), np.array([start_s, end_s]))
    return float(after - before)
