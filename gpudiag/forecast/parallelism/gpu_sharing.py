"""U(k): how busy a GPU is with k trials in training, as measured, and beyond what was measured by two laws."""

from __future__ import annotations

import numpy as np

from gpudiag.forecast.parallelism.colocation import BUSY_LAWS, DEFAULT_LAW, LawName, busy_of_equal
from gpudiag.forecast.parallelism.levels import Levels

MEASURED_S = 120.0
"""A level seen for that long speaks for itself (METHODS 10); with less it leans on the law, second for second."""
SHARES = np.linspace(0.01, 1.0, 100)
FULL = 0.97
"""A busy share from here on no longer tells how much each trial would use."""
LAWS: tuple[LawName, ...] = tuple(BUSY_LAWS)


def busy_by_level(levels: Levels, law: LawName, top: int) -> np.ndarray:
    """Busy share with 0, 1 ... ``top`` trials in training, shape (n, top + 1); each of the n logs by itself.

    Least squares, drawn to the law that fits the log best by the weight of two minutes. Above the last level that was
    seen, the law goes on from the value measured there.
    """
    share = SHARES[_deviation(levels, law).argmin(axis=1)]
    number = np.arange(top + 1)
    form = np.stack([busy_of_equal(law, share, int(k)) for k in number], axis=1)
    solved = _solved(levels, np.stack([busy_of_equal(law, share, k) for k in range(levels.moment.shape[1])], axis=1))
    out = form.copy()
    width = min(solved.shape[1], top + 1)
    out[:, :width] = solved[:, :width]
    last = np.minimum(_last_measured(levels.seen_s), top)
    rows = np.arange(len(share))
    ratio = form / np.maximum(form[rows, last], 1e-9)[:, None]
    out = np.where(number[None, :] > last[:, None], out[rows, last][:, None] * ratio, out)
    out[:, 0] = 0.0
    out[:, 1:] = np.minimum(np.maximum.accumulate(out[:, 1:], axis=1), 1.0)
    return np.maximum(out, np.where(number > 0, 1e-3, 0.0))


def best_law(levels: Levels) -> LawName:
    """The law that fits the first log best; the default where two levels do not tell the laws apart."""
    if len(telling_levels(levels)) < 2:
        return DEFAULT_LAW
    return min(LAWS, key=lambda law: (_deviation(levels, law)[0].min(), law != DEFAULT_LAW))


def telling_levels(levels: Levels) -> np.ndarray:
    """The numbers of trials at which the busy share of the first log still tells how much one trial uses."""
    seen = levels.seen_s[0]
    busy = np.divide(levels.moment[0], seen, out=np.ones(len(seen)), where=seen > 0)
    return np.flatnonzero((seen >= MEASURED_S) & (busy < FULL) & (np.arange(len(seen)) > 0))


def _solved(levels: Levels, form: np.ndarray) -> np.ndarray:
    """Busy share by level from the normal equations, with the law ``form`` as two minutes of evidence a level."""
    ridge = MEASURED_S * np.eye(form.shape[1])
    solution = np.linalg.solve(levels.gram + ridge, (levels.moment + MEASURED_S * form)[:, :, None])
    return np.asarray(np.clip(solution[:, :, 0], 0.0, 1.0))


def _last_measured(seen_s: np.ndarray) -> np.ndarray:
    """The highest level seen for two minutes, by log; at least 1."""
    enough = (seen_s >= MEASURED_S) & (np.arange(seen_s.shape[1]) > 0)
    last = seen_s.shape[1] - 1 - enough[:, ::-1].argmax(axis=1)
    return np.maximum(np.where(enough.any(axis=1), last, 1), 1)


def _deviation(levels: Levels, law: LawName) -> np.ndarray:
    """Squared deviation of utilization from the law, less a constant, by log and candidate share of one trial."""
    form = np.stack([busy_of_equal(law, SHARES, k) for k in range(levels.moment.shape[1])], axis=1)
    return np.asarray(np.einsum("cl,nlm,cm->nc", form, levels.gram, form, optimize=True) - 2 * levels.moment @ form.T)
