"""What memory was seen in use by number of trials on a GPU: a fact, whatever single trials took."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gpudiag.forecast.memory.overflow import Room
from gpudiag.measures._gpu.boards import gpu_boards
from gpudiag.measures._time.concurrency import count_at
from gpudiag.measures._time.gpu_samples import samples_by_gpu
from gpudiag.measures._time.microseconds import SECOND_US
from gpudiag.measures._time.window import maybe_by_gpu, places_by_gpu, timed_trials
from gpudiag.measures.attribution import measure_attribution
from gpudiag.memo import memoized
from gpudiag.run import Run

SETTLE_US = 20 * SECOND_US
"""A reading counts for a number of trials once that has held so long (METHODS 6: a trial that ended
frees late, its successor allocates after 7-8 s)."""


@memoized
def seen_by_level(run: Run) -> pd.DataFrame:
    """Index k (trials on one GPU): seen_max_mib (greatest reading of any GPU), seen_h (GPU-hours of readings).

    Readings count where no trial of unknown GPU may run beside those that are known.
    """
    nothing = pd.DataFrame({"seen_max_mib": [], "seen_h": []}, index=pd.Index([], name="k"), dtype=float)
    timed = timed_trials(run)
    if not run.info.clock.exact or timed.rows.empty or run.gpu.empty:
        return nothing
    samples = samples_by_gpu(run, "mem_used_mib")
    parts = []
    where = measure_attribution(run)
    maybe = maybe_by_gpu(timed, where)
    for gpu, places in places_by_gpu(timed, where, list(samples)).items():
        part = samples.get(gpu)  # a log may name a GPU that nobody sampled
        if part is None or not len(part.time_us) or not len(places):
            continue
        start, end = timed.start_us[places], timed.end_us[places]
        level = count_at(part.time_us, start, end)
        changes = np.sort(np.concatenate([start, end]))
        last = np.searchsorted(changes, part.time_us, "right") - 1
        held = (last >= 0) & (part.time_us - changes[np.maximum(last, 0)] >= SETTLE_US)
        hours = (part.end_us - part.start_us) / SECOND_US / 3600
        others = maybe[gpu][0] if gpu in maybe else places[:0]
        sure = count_at(part.time_us, timed.start_us[others], timed.end_us[others]) == 0
        seen = pd.DataFrame({"k": level, "used": np.where(held, part.value, np.nan), "seen_h": hours})
        parts.append(seen[sure])
    if not parts:
        return nothing
    grouped = pd.concat(parts).query("k >= 1").groupby("k")
    return pd.DataFrame({"seen_max_mib": grouped["used"].max(), "seen_h": grouped["seen_h"].sum()})


def tightest_room(run: Run, baseline_mib: dict[str, float]) -> tuple[str, Room]:
    """The GPU on which trials have least room, and its memory; NaN where total or baseline are unknown.

    What the driver reserves counts where it is logged apart: from driver 510 on memory.used leaves it out.
    """
    totals = gpu_boards(run)["total_mib"] if not run.gpu.empty else pd.Series(dtype=float)
    reserved = pd.Series(0.0, totals.index)
    if "mem_reserved_mib" in run.gpu:
        reserved = run.gpu.groupby("gpu")["mem_reserved_mib"].max().reindex(totals.index).fillna(0.0)
    rooms = {
        gpu: Room(float(totals[gpu]), float(level), float(reserved[gpu]))
        for gpu, level in baseline_mib.items()
        if gpu in totals.index
    }
    known = {gpu: room for gpu, room in rooms.items() if room.usable_mib - room.baseline_mib > 0}
    if not known:
        total = float(totals.min()) if len(totals) else float("nan")
        return "", Room(total, float("nan"), float(reserved.max()) if len(reserved) else 0.0)
    gpu = min(known, key=lambda name: known[name].usable_mib - known[name].baseline_mib)
    return gpu, known[gpu]
