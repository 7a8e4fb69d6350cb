"""The ranks of a training: how many do its steps together, and whether logs are those of one."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from gpudiag.measures._steps.log_files import known_or_none
from gpudiag.run import Run

Log = tuple[str, float | None, float | None]
"""A file, and the rank and the trial of it, where its lines name them."""


def by_log(told: Sequence[pd.DataFrame]) -> dict[Log, list[pd.DataFrame]]:
    """The courses of trainings by the log that tells of them: those of one log came one after the other."""
    out: dict[Log, list[pd.DataFrame]] = {}
    for part in told:
        first = part.iloc[0]
        log = str(first["path"]), known_or_none(first["rank"]), known_or_none(first["trial"])
        out.setdefault(log, []).append(part)
    return out


def in_lock_step(told: Sequence[pd.DataFrame]) -> bool:
    """Whether courses are those of one log, which tells of all GPUs together, or of one log for each rank."""
    ranks = [rank for _, rank, _ in by_log(told)]
    return len(ranks) == 1 or (None not in ranks and len(set(ranks)) == len(ranks))


def one_of_each(told: Sequence[pd.DataFrame]) -> list[pd.DataFrame]:
    """The courses but for those of further ranks that do the same steps: what passed for them passed once."""
    logs = by_log(told)
    if len(logs) < 2 or not in_lock_step(told):
        return list(told)
    return max(logs.values(), key=lambda parts: sum(float(part["n"].sum()) for part in parts))


def longest_waits(waits: pd.DataFrame) -> pd.DataFrame:
    """Of intervals that state a wait for data: of ranks that do the same steps together those of the one that waited
    longest, since the others wait for it in the next collective.
    """
    logs = [part for _, part in waits.groupby(["path", "rank", "trial"], sort=False, dropna=False)]
    if len(logs) < 2 or not in_lock_step(logs):
        return waits
    return waits.sort_values("loader_s", kind="stable").drop_duplicates(["attempt", "done", "n"], keep="last")


def world_size(run: Run) -> float:
    """Ranks of the training that was profiled, which does its steps on as many GPUs at once; NaN unknown."""
    return float(run.profiled.reindex(columns=["world_size"])["world_size"].astype(float).max())
