"""How many trials fit into a GPU's memory, as far as this run shows it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from gpudiag.measures._time.microseconds import microseconds
from gpudiag.measures.base import Profile, profile_of
from gpudiag.measures.costs import CostsProfile
from gpudiag.measures.memory import MemoryProfile
from gpudiag.measures.parallelism import ParallelismProfile
from gpudiag.report.format import memory as memory_of
from gpudiag.report.format import number

if TYPE_CHECKING:
    from gpudiag.forecast.memory.capacity import MemoryCapacity

MIN_LEVEL_S = 600.0
FULL_PCT = 90.0
"""The limit of memory-near-limit."""
RESERVE = 0.98
"""Share of the total that trials may use: the driver and fragmentation take the rest (METHODS 6)."""


def memory_by_level(profiles: Mapping[str, Profile]) -> pd.DataFrame:
    """Index level (trials at once): max_mib, max_used_pct, time_s: the most memory seen while so many ran.

    Empty without memory and trials, and with several GPUs, where the level of one GPU is not known.
    """
    from gpudiag.forecast.memory.seen import SETTLE_US  # forecasts are loaded where one is made

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


def held_levels(profiles: Mapping[str, Profile]) -> pd.DataFrame:
    """The rows of :func:`memory_by_level` that held for ten minutes or more: less says nothing of a number."""
    levels = memory_by_level(profiles)
    return levels[levels["time_s"] >= MIN_LEVEL_S]


def safe_level(profiles: Mapping[str, Profile]) -> int | None:
    """The largest number of trials at once at which, as at all lower ones, memory stayed below 90 %; None unknown."""
    levels = held_levels(profiles)
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


def net_rates(capacity: MemoryCapacity | None, present: int, k: int) -> str:
    """Good trials a day, crashes counted, at each known number from k to the present one, and what they decide; ''
    where one of these two is unknown.
    """
    known = _net(capacity)
    if not {present, k} <= set(known):
        return ""
    each = ", ".join(
        f"{f'{number(value)} ' if value == value else ''}({number(low)}–{number(high)}) with {n}"
        for n, (value, low, high) in sorted(known.items())
        if k <= n <= present
    )
    (_, low, high), others = known[k], [known[n] for n in known if k < n <= present]
    decided = "Which number has most is not shown."
    if all(high < other[1] for other in others):
        decided = "More at once would bring more of them, failures included."
    elif all(low > other[2] for other in others):
        decided = f"{k} at once brings most."
    elif known[k][0] < max(other[0] for other in others):
        decided += " Fewer at once is for a search whose large trials must not be lost; it is not faster."
    return f" Good trials a day: {each} at once. {decided}"


def net_gain(capacity: MemoryCapacity | None, present: int, k: int) -> tuple[float, float] | None:
    """What k at once bring in good trials per hour, as a multiple of the present number; None unknown. Both over all
    GPUs.
    """
    if capacity is not None and present == capacity.gains.now and k % capacity.n_gpus == 0:
        gain = capacity.gains.by_k.get(k // capacity.n_gpus)
        if gain is not None and gain.low <= gain.high:
            return gain.low, gain.high
    known = _net(capacity)
    if not {present, k} <= set(known):
        return None
    (_, low, high), (_, least, most) = known[k], known[present]
    return (low / most, high / least) if least > 0 else None


def _net(capacity: MemoryCapacity | None) -> dict[int, tuple[float, float, float]]:
    """Trials a day that end well by number at once over all GPUs, with their interval, where it is known."""
    if capacity is None:
        return {}
    table = capacity.table.reindex(columns=["k", "net_day", "net_day_low", "net_day_high"])
    rows = {capacity.n_gpus * int(k): (value, low, high) for k, value, low, high in table.itertuples(index=False)}
    return {k: ends for k, ends in rows.items() if ends[1] <= ends[2]}


def growth_of_memory(profiles: Mapping[str, Profile], factor: float) -> float:
    """Upper bound of the fullest GPU's use in percent if all memory above its baseline grows by ``factor``."""
    memory = profile_of(profiles, MemoryProfile)
    if memory is None:
        return math.nan
    row = memory.per_gpu.loc[memory.per_gpu["max_used_pct"].idxmax()] if memory.max_used_pct >= 0 else None
    if row is None:
        return math.nan
    return float(100 * (row["min_mib"] + factor * (row["max_mib"] - row["min_mib"])) / row["total_mib"])
