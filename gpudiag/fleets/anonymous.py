"""Rows without names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from gpudiag.fleets.row import COUNTED_ALREADY, WITHOUT_GPU_TIME
from gpudiag.report.fleet.document import RunRow

HIDDEN = "hidden, since it may hold names"
KINDS = ("user", "project", "host", "run", "commit", "image")
REASONS = {
    "counted already": COUNTED_ALREADY.format("another run"),
    "diagnosed": WITHOUT_GPU_TIME.format("another run"),
}
"""Why a row of this state is not counted, or in part."""
Numbers = dict[str, dict[str, str]]
"""By kind and name: what stands for the name."""


def numbers_of(rows: Iterable[RunRow]) -> Numbers:
    """A number for each name, in their order."""
    rows = list(rows)
    held = {kind: sorted({getattr(row, kind) for row in rows} - {""}) for kind in KINDS}
    return {kind: {name: f"{kind} {at}" for at, name in enumerate(names, 1)} for kind, names in held.items()}


def anonymous_row(row: RunRow, numbers: Numbers) -> RunRow:
    """The row with numbers for names, and without paths and texts of the run."""
    hidden: dict[str, Any] = {kind: numbers[kind].get(getattr(row, kind), "") for kind in KINDS}
    reason = row.reason and REASONS.get(row.status, HIDDEN)
    hidden |= {"source": "", "options": (), "reason": reason, "headline": ""}
    return replace(row, inputs="", telemetry=(), recordings=(), trials=(), **hidden)
