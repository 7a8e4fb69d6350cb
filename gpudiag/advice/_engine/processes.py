"""Processes of trials: whether one runs trial after trial, by the record of the GPU, and how workers are started."""

from __future__ import annotations

import re

from gpudiag.run import Run

LONGER = 1.1
"""A process that is seen for longer than the longest trial, by a tenth for its own beginning and end, is no
trial's."""
MOST = 0.5


def keeps_processes(run: Run) -> bool:
    """True where most of what is recorded of processes is of those that outlive every trial."""
    if not len(run.processes) or not {"start", "end"} <= set(run.trials):
        return False
    lasted_s = (run.trials["end"] - run.trials["start"]).dt.total_seconds().max()
    if not lasted_s > 0:
        return False
    seen = run.processes.groupby(["gpu", "pid"], observed=True)["time"].agg(["min", "max", "size"])
    outlive = (seen["max"] - seen["min"]).dt.total_seconds() > LONGER * lasted_s
    return bool(seen.loc[outlive, "size"].sum() > MOST * seen["size"].sum())


AT_ONCE = "trials at once"
"""What a change is called that starts another number of workers."""
AT_FIRST = "initial trials at once"
"""The same of a search that changed the number itself: what it began with is not what it has now."""


def started(command: str | None, k: int, note: str) -> str:
    """Shell lines that start k workers: by the command's own option where it has one for their number."""
    command = command or "python train.py"
    counted = re.sub(r"(--(?:parallel|workers|n-jobs|n_jobs)[ =])\d+", rf"\g<1>{k}", command)
    if counted != command or re.search(rf"--(?:parallel|workers|n-jobs|n_jobs)[ =]{k}\b", command):
        return f"{counted}  # {note}"
    return f"for i in $(seq {k}); do {command} & done; wait  # {note}"
