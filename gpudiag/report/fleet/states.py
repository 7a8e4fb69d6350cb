"""How the jobs of a scheduler ended, and the GPU time of those that did not complete."""

from __future__ import annotations

import math
from collections.abc import Iterable

from gpudiag.report.fleet.document import RunRow

NOT_LOST = ("COMPLETED", "RUNNING", "PENDING", "SUSPENDED", "REQUEUED", "RESIZING", "COMPLETING")
"""States of Slurm's sacct in which a job has done its work or still may."""


def rows_by_state(rows: Iterable[RunRow]) -> dict[str, list[RunRow]]:
    """The rows of jobs whose state is known."""
    held: dict[str, list[RunRow]] = {}
    for row in rows:
        if row.state:
            held.setdefault(row.state, []).append(row)
    return held


def incomplete_gpu_s(rows: Iterable[RunRow]) -> float:
    """The GPU time that jobs surely had and did not complete with."""
    return math.fsum(row.gpu_s or 0.0 for row in rows if row.state and row.state not in NOT_LOST)
