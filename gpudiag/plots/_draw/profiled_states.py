"""What a GPU did in profiled steps: by column what people read, and which of them hold anything."""

from __future__ import annotations

from collections.abc import Collection, Mapping

STATES = {
    "compute_pct": "Computing",
    "communication_pct": "Communicating alone",
    "copy_pct": "Copying alone",
    "data_pct": "Idle: data",
    "launch_pct": "Idle: launching",
    "sync_pct": "Idle: blocked",
    "memory_pct": "Idle: memory",
    "other_pct": "Idle: other code",
    "queued_pct": "Idle: queued",
}
"""By column: what the GPU did, or what the host did while the GPU was idle; ``queued_pct`` is no wait for it."""
LEAST_PCT = 0.5


def shown_states(ranks: Collection[Mapping[str, object]]) -> list[str]:
    """Columns that hold half a percent or more on some rank."""

    def holds(value: object) -> bool:
        return isinstance(value, int | float) and value >= LEAST_PCT

    return [name for name in STATES if any(holds(cells.get(name)) for cells in ranks)]
