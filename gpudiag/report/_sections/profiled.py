"""Profiled steps of a run's traces: what the GPUs did in them, rank by rank, and whether they stand for the run."""

from __future__ import annotations

from gpudiag.measures.profiled import ProfiledProfile, ProfiledRank
from gpudiag.plain_data import Scalar
from gpudiag.report._render.blocks import Block, Note, Number, TableBlock
from gpudiag.report.document import Document
from gpudiag.report.format import duration, plural, safe, share

STATES = {
    "compute_pct": "Computing",
    "communication_pct": "Communicating alone",
    "copy_pct": "Copying alone",
    "data_pct": "Idle: data",
    "launch_pct": "Idle: launching",
    "sync_pct": "Idle: blocked",
    "memory_pct": "Idle: memory",
    "other_pct": "Idle: other code",
}
"""By column: what the GPU did, or what the host did while the GPU was idle."""
LEAST_PCT = 0.5
MOST_RANKS = 16


def profiled(document: Document) -> list[Block]:
    """A sentence and a row a rank; nothing without a trace."""
    facts = document.values(ProfiledProfile)
    if not facts:
        return []
    rows = facts.by_row(ProfiledRank)
    shown = dict(list(rows.items())[:MOST_RANKS])
    states = [name for name in STATES if any(float(cells[name] or 0) >= LEAST_PCT for cells in rows.values())]
    step_s, n = facts.get(ProfiledProfile.profiled_step_s), facts[ProfiledProfile.n_profiled_steps]
    what = f"{plural(n, 'profiled step')} of {duration(step_s)}" if n else "The profiled time"
    said = f"{what}: the GPU was idle for {share(facts[ProfiledProfile.profiled_idle_pct])} of it."
    if facts[ProfiledProfile.stands_for_run]:
        said += " The steps of the whole run are like these."
    table = TableBlock(
        ("Rank", *(STATES[name] for name in states)),
        tuple((safe(rank), *(_share(cells[name]) for name in states)) for rank, cells in shown.items()),
        f"{plural(len(rows) - len(shown), 'more rank')}: --format json." if len(rows) > len(shown) else "",
    )
    return [Note(said), table]


def _share(value: Scalar) -> Number:
    return Number(share(value if isinstance(value, float | int) else None))
