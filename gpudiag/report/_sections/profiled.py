"""Profiled steps of a run's traces: what the GPUs did in them, rank by rank, and whether they stand for the run."""

from __future__ import annotations

from gpudiag.measures.causes import CausesProfile
from gpudiag.measures.profiled import ProfiledProfile, ProfiledRank
from gpudiag.plain_data import Scalar
from gpudiag.plots._draw.profiled_states import STATES, shown_states
from gpudiag.report._render.blocks import Block, Figure, Note, Number, TableBlock
from gpudiag.report.document import Document, TopicValues
from gpudiag.report.format import duration, plural, safe, share

UNLIKE = {
    "few_steps": "Its trace holds too few steps, or not what the host did, to stand for the run.",
    "other_time": "Its trace was taken at another time than the telemetry.",
    "no_step_times": "No log says how long its steps took, so that the profiled ones may not be like the others.",
    "other_steps": "The profiled steps took longer or shorter than those in the log, and do not stand for them.",
    "other_work": "The kernels of the profiled steps took longer or shorter than in the run, and do not stand for it.",
}
"""By what the profile says of the trace: why the profiled steps are not taken for the others."""
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
    fit = document.values(CausesProfile).get(CausesProfile.trace_fit)
    if facts[ProfiledProfile.stands_for_run]:
        said += " The steps of the whole run are like these."
    elif fit in UNLIKE:
        said += f" {UNLIKE[fit]}"
    said += _of_ranks(facts)
    if len(rows) > MOST_ROWS:
        return [Note(said), Figure("ranks")]
    table = TableBlock(
        ("Rank", *(STATES[name] for name in states)),
        tuple((safe(rank), *(_share(cells.get(name)) for name in states)) for rank, cells in rows.items()),
    )
    return [Note(said), table]


def _of_ranks(facts: TopicValues) -> str:
    """That traces name no rank, or the same one several times."""
    n, ranks = facts.get(ProfiledProfile.n_traces), facts.get(ProfiledProfile.n_ranks)
    if n is None or n < 2:
        return ""
    if ranks is None:
        return f" Not all of the {plural(n, 'trace')} say of which rank they are: no late one is looked for."
    return "" if ranks >= n else f" The {plural(n, 'trace')} are of {plural(ranks, 'rank')}: some count twice."


def _share(value: Scalar) -> Number:
    return Number(share(value if isinstance(value, float | int) else None))
