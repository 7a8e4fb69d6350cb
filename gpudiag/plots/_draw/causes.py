"""Causes of idle time: what they are called, and how they look."""

from __future__ import annotations

from gpudiag.plots._draw.palette import CELL_COLORS, CELL_HATCHES

LABELS = {
    "outside": "no trial at work",
    "startup": "start-up of trials",
    "tail": "end of trials",
    "restart": "down, and starting again",
    "first_steps": "slow first steps",
    "evaluation": "pauses with an evaluation",
    "checkpoint": "pauses with a checkpoint",
    "evaluation_checkpoint": "pauses with both",
    "pause": "other pauses between steps",
    "loader": "waiting for data",
    "copy": "copies to and from the GPU",
    "launch": "launching of kernels",
    "sync": "blocking calls",
    "memory": "taking and freeing memory",
    "setup": "setting CUDA up",
    "host": "other code of the host",
    "cpu_bound": "a busy core beside it",
    "io_wait": "I/O wait beside it",
    "launch_bound": "a busy core, little power",
    "small_work": "little work in a step",
    "unknown": "unknown",
}
"""In the order of a run."""
_LIKE = {
    "outside": "idle_no_trial", "startup": "startup_only", "tail": "tail_only", "restart": "startup_only",
    "unknown": "unobserved",
}  # fmt: skip
"""By cause: the cell of the ledger that it looks like; all others are stalls."""
WITHOUT_TRIALS = {"outside": "no work on the GPU"}
"""Before and after its work, in a long stretch between, or throughout where it was never used."""


def cause_label(cause: str, *, has_trials: bool = True) -> str:
    """What a cause is called; without trials nobody knows when work was meant to begin."""
    return LABELS[cause] if has_trials else WITHOUT_TRIALS.get(cause, LABELS[cause])


def cause_look(cause: str) -> tuple[str, str]:
    """Colour and hatch of a cause."""
    cell = _LIKE.get(cause, "stalled")
    return CELL_COLORS[cell], CELL_HATCHES[cell] if cause in _LIKE else ""
