"""What trials that were selected away leave in part: whoever needs all of these can say nothing of the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpudiag._run.tables import Whole

if TYPE_CHECKING:
    import pandas as pd


def left_in_part(trials: pd.DataFrame, keep: pd.Series) -> tuple[Whole, ...]:
    """What is not whole any more without some of the trials, whatever they were chosen by.

    A trial without an end may have run until now, and one without a start from the first on.
    """
    import numpy as np

    start, end = (trials[name].to_numpy("datetime64[us]") for name in ("start", "end"))
    known = ~(np.isnat(start) & np.isnat(end))
    begin = np.where(np.isnat(start), np.iinfo(np.int64).min, start.astype(np.int64))
    until = np.where(np.isnat(end), np.iinfo(np.int64).max, end.astype(np.int64))
    kept, gone = keep.to_numpy(bool) & known, ~keep.to_numpy(bool) & known
    if not kept.any() or not gone.any():
        return ("gpus",) if gone.any() else ()
    order = np.argsort(begin[kept])
    first, last = begin[kept][order], np.maximum.accumulate(until[kept][order])
    within = (begin[gone] < last[-1]) & (until[gone] > first[0])
    before = np.searchsorted(first, until[gone], side="left")  # kept trials that began by its end
    beside = (before > 0) & (last[np.maximum(before - 1, 0)] > begin[gone])
    parts: tuple[tuple[Whole, bool], ...] = (("gpus", True), ("workers", within.any()), ("sharing", beside.any()))
    return tuple(part for part, missing in parts if missing)
