"""Profiled steps of a run's traces: what the GPUs did in them, rank by rank, and whether they stand for the run."""

from __future__ import annotations

from gpudiag.measures.profiled import ProfiledProfile, ProfiledRank
from gpudiag.plain_data import Scalar
from gpudiag.plots._draw.profiled_states import STATES, shown_states
from gpudiag.report._render.blocks import Block, Figure, Note, Number, TableBlock
from gpudiag.report.document import Document
from gpudiag.report.format import duration, plural, safe, share

MOST_ROWS = 8
"""More ranks are seen better in a picture."""


def profiled(document: Document) -> list[Block]:
    """A sentence, and a row or a column of a map a rank; nothing without a trace."""
    facts = document.values(ProfiledProfile)
    if not facts:
        return []
    rows = facts.by_row(ProfiledRank)
    states = shown_states(rows.values())
    step_s, n = facts.get(ProfiledProfile.profiled_step_s), facts[ProfiledProfile.n_profiled_steps]
    what = f"{plural(n, 'profiled step')} of {duration(step_s)}" if n else "The profiled time"
    said = f"{what}: the GPU was idle for {share(facts[ProfiledProfile.profiled_idle_pct])} of it."
    if facts[ProfiledProfile.stands_for_run]:
        said += " The steps of the whole run are like these."
    if len(rows) > MOST_ROWS:
        return [Note(said), Figure("ranks")]
    table = TableBlock(
        ("Rank", *(STATES[name] for name in states)),
        tuple((safe(rank), *(_share(cells.get(name)) for name in states)) for rank, cells in rows.items()),
    )
    return [Note(said), table]


def _share(value: Scalar) -> Number:
    return Number(share(value if isinstance(value, float | int) else None))
