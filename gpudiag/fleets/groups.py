"""What a fleet can be divided by."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gpudiag.errors import ConfigError, nearest
from gpudiag.fleets.weeks import week_of
from gpudiag.report.fleet.document import RunRow, no_run

UNKNOWN = "unknown"
GROUPS: dict[str, Callable[[RunRow], str]] = {
    "user": lambda row: row.user or no_run(row),
    "project": lambda row: row.project or no_run(row),
    "host": lambda row: row.host,
    "gpu-model": lambda row: row.gpu_model,
    "week": lambda row: week_of(row.start),
    "month": lambda row: (row.start or "")[:7],
}


def grouped(rows: Iterable[RunRow], group: str) -> dict[str, list[RunRow]]:
    """The rows by the name of their part of the fleet. Raises ConfigError for what a fleet cannot be divided by."""
    if group not in GROUPS:
        raise ConfigError(f"a fleet cannot be divided by {group!r}; {nearest(group, GROUPS)}")
    held: dict[str, list[RunRow]] = {}
    for row in rows:
        held.setdefault(GROUPS[group](row) or UNKNOWN, []).append(row)
    return held
