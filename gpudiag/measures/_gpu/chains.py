"""Trials that took one another's place."""

from __future__ import annotations

import heapq

import numpy as np
import pandas as pd


def chains_of(start: np.ndarray, end: np.ndarray, ended: np.ndarray, workers: np.ndarray) -> np.ndarray:
    """A number from 0 by trial, the same for trials that followed one another in one place.

    By the worker where all are named. Else a trial follows another if that one's place was the only free one: of two
    free places nobody knows which it took. Trials that never ``ended`` give no place free.
    """
    if len(workers) and pd.notna(workers).all():
        return np.unique(workers.astype(str), return_inverse=True)[1]
    out = np.full(len(start), -1)
    running: list[tuple[int, int]] = []
    free: list[int] = []  # chains, -1 where it is not known which
    n_chains = 0
    for i in np.lexsort((end, start)).tolist():
        while running and running[0][0] <= start[i]:
            free.append(int(out[heapq.heappop(running)[1]]))
        if len(free) == 1 and free[0] >= 0:
            out[i] = free.pop()
        else:
            out[i], n_chains = n_chains, n_chains + 1
            free = [-1] * (len(free) - 1)
        if ended[i]:
            heapq.heappush(running, (int(end[i]), i))
    return out
