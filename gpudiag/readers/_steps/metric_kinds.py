"""Kinds of lines on steps that metrics by step are read as, which measures know them by."""

from __future__ import annotations

EVENTS = "TensorBoard"
EPOCHS = f"{EVENTS}|epochs"
"""Of event files, a line a step or an epoch."""
CSV = "CSV"
LOGGED = "W&B"
