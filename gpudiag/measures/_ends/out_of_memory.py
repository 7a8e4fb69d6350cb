"""The training that ran out of GPU memory: from its first step to its end."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from gpudiag.errors import NotMeasurable
from gpudiag.measures._gpu.fills import FULL, Fill
from gpudiag.measures._steps.logs import training_logs
from gpudiag.measures._time.microseconds import microseconds
from gpudiag.measures.endings import FAILED, measure_endings
from gpudiag.run import Run

FIRST = 0.1
"""Of its time: how much a training takes before anything can have grown (a default without a published source)."""


class OutOfMemory(NamedTuple):
    """A training that failed so, from ``begun_us`` to ``ended_us``; None unknown."""

    begun_us: int | None
    ended_us: int | None

    def samples(self, time_us: np.ndarray, restarts: list[Fill], least: int) -> slice:
        """Its samples, from the last restart on behind which there are at least so many."""
        low = 0 if self.begun_us is None else int(np.searchsorted(time_us, self.begun_us))
        high = len(time_us) if self.ended_us is None else int(np.searchsorted(time_us, self.ended_us, "right"))
        begins = [low, *(fill.freed for fill in restarts if low < fill.freed <= high - least)]
        return slice(begins[-1], high)


def out_of_memory(run: Run) -> OutOfMemory | None:
    """The gravest end of a training, where it is of that kind and nothing says that the training went on."""
    try:
        ends = measure_endings(run)
    except NotMeasurable:
        return None
    if ends.has_trials or ends.failed.empty:
        return None
    first = ends.failed.iloc[0]
    if first["outcome"] != FAILED or first["kind"] != "oom":
        return None
    lines = training_logs(run).lines
    times = lines.loc[lines["log"] == first["training"], "time"] if len(lines) else run.steps["time"]
    return OutOfMemory(_us(times.min()), _us(times.max() if pd.isna(first["time"]) else first["time"]))


def growth_filled(used_mib: np.ndarray, rise_mib: float, total_mib: float) -> bool:
    """Whether what was in use at most at the start would be nearly all with the growth since."""
    start = used_mib[: max(int(FIRST * len(used_mib)), 1)]
    return len(used_mib) > 0 and bool(start.max() + rise_mib >= FULL * total_mib)


def _us(time: pd.Timestamp) -> int | None:
    return None if pd.isna(time) else int(microseconds(pd.Series([time]))[0])
