"""Kinds of lines on steps that metrics by step are read as, which measures know them by."""

from __future__ import annotations

EVENTS = "TensorBoard"
"""Of event files."""
CSV = "CSV"
LOGGED = "W&B"
MLFLOW = "MLflow"


def of_epochs(kind: str) -> str:
    """The kind of lines that tell of an epoch each."""
    return f"{kind}|epochs"
