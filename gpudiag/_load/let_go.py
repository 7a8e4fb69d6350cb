"""Whether a trial still held memory of its GPU when it was told to be over, and since when the GPU had been let go."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gpudiag._run.gpu_names import declared_gpus
from gpudiag.run import Run
from gpudiag.schema import IDLE_PCT
from gpudiag.spans import microseconds
from gpudiag.units import SECOND_US

HELD_MIB = 1024.0
"""Memory beyond what a desktop and a CUDA context take."""
KEPT = 0.5
"""Of the most that was in use: with less at the end the process has freed its own."""
LAST_US = 60 * SECOND_US
Sampled = tuple[np.ndarray, np.ndarray, np.ndarray]


def held_until(sampled: Mapping[str, Sampled], low_us: int, high_us: int) -> bool:
    """Whether a GPU that was active in a stretch held its memory up to the end of it: a process that hung lives."""
    return any(_held(own, low_us, high_us) for own in sampled.values())


def let_go_before(run: Run, rows: np.ndarray, least_s: float) -> list[bool]:
    """For each row of ``run.trials``, with start and end: whether the only GPU that it names, and that no other trial
    names meanwhile, was idle for ``least_s`` or more before its end, its memory freed.
    """
    named = {row: gpus[0] for row, gpus in declared_gpus(run).items() if len(gpus) == 1}
    sampled = sampled_gpus(run)
    start, end = (microseconds(run.trials[name]) for name in ("start", "end"))
    begun, open_end = run.trials["start"].notna().to_numpy(), run.trials["end"].isna().to_numpy()
    found = []
    for row in rows.tolist():
        mine = np.array([begun[one] and one != row and gpu == named.get(row) for one, gpu in named.items()], bool)
        others = np.array(list(named), np.int64)[mine]
        beside = (start[others] < end[row]) & (open_end[others] | (end[others] > start[row]))
        own = sampled.get(named.get(row, ""))
        if own is None or beside.any() or len(named) < len(begun):
            found.append(False)
            continue
        time, util, _ = own
        active = time[(time >= start[row]) & (time < end[row]) & (util >= IDLE_PCT)]
        idle_us = end[row] - active.max() if len(active) else 0
        found.append(bool(idle_us >= least_s * SECOND_US) and not _held(own, start[row], end[row]))
    return found


def sampled_gpus(run: Run) -> dict[str, Sampled]:
    """Times, utilization and memory of each GPU; none where one of them was not recorded, or clocks may differ."""
    if not run.info.clock.joined or not {"util_pct", "mem_used_mib"} <= set(run.gpu):
        return {}
    known = run.gpu.dropna(subset=["util_pct", "mem_used_mib"]).sort_values("time", kind="stable")
    return {
        str(gpu): (microseconds(own["time"]), own["util_pct"].to_numpy(float), own["mem_used_mib"].to_numpy(float))
        for gpu, own in known.groupby("gpu")
    }


def _held(own: Sampled, low_us: int, high_us: int) -> bool:
    """Whether the GPU was active in the stretch, and had most of its memory still in use in the last minute of it."""
    time, util, used = own
    within = (time >= low_us) & (time < high_us)
    last = within & (time >= high_us - LAST_US)
    if not (within & (util >= IDLE_PCT)).any() or not last.any():
        return False
    at_last = float(np.median(used[last]))
    return at_last >= max(HELD_MIB, KEPT * float(used[within].max()))
