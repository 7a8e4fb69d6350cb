"""How often GPUs were lost: many a line tells of one loss, and a GPU that gave readings in between was lost again."""

from __future__ import annotations

from itertools import pairwise

import pandas as pd

from gpudiag.measures._gpu.event_gpus import period_of, readings
from gpudiag.run import Run


def count_losses(lost: pd.DataFrame, run: Run) -> tuple[int, int]:
    """GPUs that were lost, and their losses, at least, by the events that tell of them. What names no GPU may be the
    same loss as what names one.
    """
    if lost.empty:
        return 0, 0
    named = lost[lost["gpu"].notna()]
    if named.empty:
        return 1, 1
    told = readings(run) if len(run.gpu) and named["gpu"].duplicated().any() else {}
    groups = list(named.groupby("gpu"))
    return len(groups), len(groups) + sum(_returns(own["time"], told.get(str(gpu))) for gpu, own in groups)


def _returns(time: pd.Series, told_s: object) -> int:
    """How often readings lie between two events of one GPU; the last sample before a loss may come after its line."""
    known = time.dropna().sort_values()
    if told_s is None or len(known) < 2:
        return 0
    seconds = (known - pd.Timestamp(0, tz="UTC")).dt.total_seconds().to_numpy(float)
    told = pd.Series(told_s, dtype=float)
    late_s = 2 * period_of(told.to_numpy())
    return sum(bool(((told > one + late_s) & (told < other)).any()) for one, other in pairwise(seconds))
