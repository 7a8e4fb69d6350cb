"""A lone instant that is months from all the others of its log: a clock that was wrong, not a part of the run."""

from __future__ import annotations

import numpy as np

from gpudiag.readers._io.problems import ProblemLog

APART_US = 30 * 86_400 * 1_000_000
"""As far as recordings have to be apart to be two runs (a default without a published source)."""
FEW = 100
"""A log has at least so many instants for each stray one. With fewer, nobody knows which are the wrong ones."""
STRAY = "sample more than 30 days from all others"


def without_strays(timestamps: np.ndarray, lines: np.ndarray | None, log: ProblemLog) -> np.ndarray | None:
    """Which rows to keep, or None for all of them; those that go are counted in ``log``.

    Strays are instants that stand alone, with 30 days of silence on both sides. Two or more close to each other are a
    session, which somebody recorded, and stay.
    """
    if timestamps.max() - timestamps.min() <= np.timedelta64(APART_US, "us"):
        return None
    instants = np.unique(timestamps)
    silent = np.concatenate([[True], np.diff(instants) > np.timedelta64(APART_US, "us"), [True]])
    strays = instants[silent[1:] & silent[:-1]]
    if not len(strays) or len(instants) < FEW * len(strays):
        return None
    gone = np.isin(timestamps, strays)
    first = int(np.argmax(gone))
    line = None if lines is None else int(lines[gone].min())
    log.add(STRAY, int(gone.sum()), line=line, example=f"{timestamps[first]} UTC", lost=True)
    return np.asarray(~gone)
