"""What a trial's own process took of a GPU, where processes were recorded beside the GPUs."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gpudiag.measures._time.cells import sample_weights
from gpudiag.measures._time.window import TimedTrials
from gpudiag.run import Run


def own_process(run: Run, trials: TimedTrials) -> tuple[np.ndarray, np.ndarray]:
    """Greatest memory in MiB and SM time in GPU-seconds of each trial's process while it ran; NaN where unknown.

    The driver lists a process's SM share (``pmon``) only for ticks in which it did something, so each tick stands
    for the time between the ticks of its GPU and a missing share counts as none.
    """
    memory, busy_s = np.full((2, len(trials.rows)), np.nan)
    if "pid" not in run.trials or run.processes.empty or not run.info.clock.joined:
        return memory, busy_s
    own = run.trials.iloc[trials.rows.index][["pid", "start", "end"]].reset_index(drop=True).rename_axis("place")
    both = own[own["pid"].notna()].reset_index().merge(_weighted(run.processes), on="pid")
    during = both[(both["time"] >= both["start"]) & ~(both["time"] > both["end"])].groupby("place")
    for column, out, how in (("mem_used_mib", memory, "max"), ("busy_s", busy_s, "sum")):
        if column in both:
            found = during[column].max() if how == "max" else during[column].sum(min_count=1)
            out[found.index] = found
    return memory, busy_s


def _weighted(processes: pd.DataFrame) -> pd.DataFrame:
    """The rows with ``busy_s``, SM share x time of the tick, where the share was recorded."""
    if "sm_pct" not in processes:
        return processes
    ticks = processes[["gpu", "time"]].drop_duplicates().sort_values(["gpu", "time"], ignore_index=True)
    parts = [part.assign(weight_s=sample_weights(part["time"])) for _, part in ticks.groupby("gpu", sort=False)]
    rows = processes.merge(pd.concat(parts), on=["gpu", "time"])
    return rows.assign(busy_s=rows["sm_pct"] / 100 * rows["weight_s"])
