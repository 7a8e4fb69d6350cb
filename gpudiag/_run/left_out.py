"""What trials that were selected away leave in part: whoever needs all of these can say nothing of the rest."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gpudiag._run.tables import RunTables, Whole

if TYPE_CHECKING:
    import pandas as pd


def left_in_part(run: RunTables, keep: pd.Series) -> tuple[Whole, ...]:
    """What is not whole any more without some of the trials, whatever they were chosen by.

    A trial without an end may have run until now, and one without a start from the first on.
    """
    import numpy as np

    start, end = (run.trials[name].to_numpy("datetime64[us]") for name in ("start", "end"))
    known = ~(np.isnat(start) & np.isnat(end))
    begin = np.where(np.isnat(start), np.iinfo(np.int64).min, start.astype(np.int64))
    until = np.where(np.isnat(end), np.iinfo(np.int64).max, end.astype(np.int64))
    kept, gone = keep.to_numpy(bool) & known, ~keep.to_numpy(bool) & known
    low, high = _span_us(run)
    seen = ((begin[gone] < high) & (until[gone] > low)).any()
    if not kept.any() or not gone.any():
        return ("gpus",) if seen else ()
    order = np.argsort(begin[kept])
    first, last = begin[kept][order], np.maximum.accumulate(until[kept][order])
    within = (begin[gone] < last[-1]) & (until[gone] > first[0])
    before = np.searchsorted(first, until[gone], side="left")  # kept trials that began by its end
    beside = (before > 0) & (last[np.maximum(before - 1, 0)] > begin[gone])
    parts: tuple[tuple[Whole, bool], ...] = (("gpus", seen), ("workers", within.any()), ("sharing", beside.any()))
    return tuple(part for part, missing in parts if missing)


def _span_us(run: RunTables) -> tuple[float, float]:
    """First and last time at which trials may have met what was recorded of the GPUs."""
    import numpy as np

    clock = run.info.clock
    times = [table["time"].dropna().to_numpy("datetime64[us]").astype(np.int64) for table in (run.gpu, run.processes)]
    recorded = np.concatenate(times)
    if not len(recorded):
        return math.inf, -math.inf
    doubt_us = 1e6 * (clock.doubt_s if clock.joined else math.inf)
    return float(recorded.min()) - doubt_us, float(recorded.max()) + doubt_us


def workers_in_part(run: RunTables, keep: pd.Series) -> tuple[Whole, ...]:
    """Whether a worker may have run trials of both kinds in turn: those kept and those that are gone.

    Where no names tell the workers, there were as many of them as trials ran at once: if fewer in all than the kept and
    those that are gone show by themselves, some ran both.
    """
    from gpudiag._run.worker_names import are_workers, worker_names

    trials, names = run.trials, worker_names(run)
    if "workers" not in left_in_part(run, keep):
        return ()
    if are_workers(names.to_numpy(object)):
        return () if set(names[keep]).isdisjoint(names[~keep]) else ("workers",)
    timed = trials["start"].notna() & (trials["end"] > trials["start"])
    at_once = [_most_at_once(trials[timed & those]) for those in (keep, ~keep)]
    return ("workers",) if _most_at_once(trials[timed]) < sum(at_once) else ()


def _most_at_once(trials: pd.DataFrame) -> int:
    """The most trials that ran at once. The last tenth of each is left out, in which its worker may have the next."""
    import numpy as np

    start, end = (trials[name].to_numpy("datetime64[us]").astype(np.int64) for name in ("start", "end"))
    ended = np.sort(end - (end - start) // 10)
    start = np.sort(start)
    return int((np.arange(1, len(start) + 1) - np.searchsorted(ended, start, "right")).max(initial=0))
