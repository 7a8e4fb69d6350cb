"""How many trials fit into a GPU's memory, as far as this run shows it."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd

from gpudiag.forecast.memory.seen import SETTLE_US
from gpudiag.measures._time.microseconds import microseconds
from gpudiag.measures.base import Profile, profile_of
from gpudiag.measures.costs import CostsProfile
from gpudiag.measures.memory import MemoryProfile
from gpudiag.measures.parallelism import ParallelismProfile
from gpudiag.report.format import memory as memory_of

MIN_LEVEL_S = 600.0
FULL_PCT = 90.0
"""The limit of memory-near-limit."""
RESERVE = 0.98
"""Share of the total that trials may use: the driver and fragmentation take the rest (METHODS 6)."""


def memory_by_level(profiles: Mapping[str, Profile]) -> pd.DataFrame:
    """Index level (trials at once): max_mib, max_used_pct, time_s: the most memory seen while so many ran.

    Empty without memory and trials, and with several GPUs, where the level of one GPU is not known.
    """
    nothing = pd.DataFrame({"max_mib": [], "max_used_pct": [], "time_s": []})
    memory, parallelism = profile_of(profiles, MemoryProfile), profile_of(profiles, ParallelismProfile)
    if memory is None or parallelism is None or len(memory.per_gpu) != 1:
        return nothing
    series = memory.series.dropna(subset=["mem_used_mib"])
    changes, at = microseconds(parallelism.concurrency["time"]), microseconds(series["time"])
    last = np.searchsorted(changes, at, "right") - 1
    settled = (last >= 0) & (at - changes[np.maximum(last, 0)] >= SETTLE_US)
    level = parallelism.concurrency["n_all"].to_numpy()[np.maximum(last, 0)]
    most = series["mem_used_mib"][settled].groupby(level[settled]).max()
    time = parallelism.levels.set_index("level")["time_s"]
    out = pd.DataFrame({"max_mib": most, "time_s": time.reindex(most.index)}).rename_axis("level")
    out["max_used_pct"] = 100 * out["max_mib"] / float(memory.per_gpu["total_mib"].iloc[0])
    return out[out.index >= 1]


def safe_level(profiles: Mapping[str, Profile]) -> int | None:
    """The largest number of trials at once at which, as at all lower ones, memory stayed below 90 %; None unknown."""
    levels = memory_by_level(profiles)
    levels = levels[levels["time_s"] >= MIN_LEVEL_S]
    good = [int(k) for k in levels.index if (levels.loc[:k, "max_used_pct"] < FULL_PCT).all()]
    return max(good, default=None)


def hard_fit(profiles: Mapping[str, Profile], k: int) -> tuple[bool | None, str]:
    """Whether the k largest trials fit at once (METHODS 6), and what that rests on; None where nobody can tell."""
    costs, memory = profile_of(profiles, CostsProfile), profile_of(profiles, MemoryProfile)
    if costs is None or memory is None or memory.per_gpu["total_mib"].isna().any():
        return None, "Memory of the trials was not recorded."
    peaks = costs.trials["process_mem_mib"].fillna(costs.trials["peak_mem_mib"])
    room = RESERVE * float(memory.per_gpu["total_mib"].min()) - float(memory.per_gpu["min_mib"].max())
    if peaks.isna().any():
        known = int(peaks.notna().sum())
        return None, f"The memory of single trials is known for {known} of {len(peaks)} only; record it by process."
    need = float(peaks.nlargest(k).sum())
    fits = "fit" if need <= room else "do not fit"
    return need <= room, f"The {k} largest trials together need {memory_of(need)} of {memory_of(room)}: they {fits}."


def growth_of_memory(profiles: Mapping[str, Profile], factor: float) -> float:
    """Upper bound of the fullest GPU's use in percent if all memory above its baseline grows by ``factor``."""
    memory = profile_of(profiles, MemoryProfile)
    if memory is None:
        return math.nan
    row = memory.per_gpu.loc[memory.per_gpu["max_used_pct"].idxmax()] if memory.max_used_pct >= 0 else None
    if row is None:
        return math.nan
    return float(100 * (row["min_mib"] + factor * (row["max_mib"] - row["min_mib"])) / row["total_mib"])
