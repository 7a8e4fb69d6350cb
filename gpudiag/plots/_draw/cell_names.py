"""Cells of the GPU-time ledger: their names on a page, and their order in a picture."""

from __future__ import annotations

from gpudiag.measures._time.timeline import CELLS
from gpudiag.report.format import number, share
from gpudiag.schema import BUSY_PCT, IDLE_PCT

DRAWN = tuple(reversed(CELLS))
"""Cells in the order in which they are stacked: work first, what nobody knows last."""
LABELS = {
    "busy": f"busy (≥ {share(BUSY_PCT)})",
    "busy_low": f"low ({number(IDLE_PCT)} to {share(BUSY_PCT)})",
    "stalled": "stalled in a trial",
    "waiting": "idle, unclear why",
    "tail_only": "tail of trials only",
    "startup_only": "start-up only",
    "foreign": "foreign load",
    "idle_no_trial": "idle, no trial",
    "unobserved": "not observed",
}


def cell_label(name: str, *, has_trials: bool = True) -> str:
    """What a cell is called; without trials an idle GPU waits for nothing that anybody knows."""
    return LABELS[name] if has_trials or name != "idle_no_trial" else "idle"
