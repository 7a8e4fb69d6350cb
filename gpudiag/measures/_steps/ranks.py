"""The ranks of a training: how many do its steps together, and whether logs are those of one."""

from __future__ import annotations

import pandas as pd

from gpudiag.run import Run


def in_lock_step(ranks: pd.Series) -> bool:
    """Whether there is one training, which all GPUs do together, or one log for each of its ranks (one entry a log)."""
    return len(ranks) == 1 or (bool(ranks.notna().all()) and ranks.is_unique)


def world_size(run: Run) -> float:
    """Ranks of the training that was profiled, which does its steps on as many GPUs at once; NaN unknown."""
    return float(run.profiled.reindex(columns=["world_size"])["world_size"].astype(float).max())
