"""The section on the steps of a training, by its own log."""

from __future__ import annotations

from gpudiag.measures.loader import LoaderProfile
from gpudiag.measures.steps import StepsProfile
from gpudiag.report._render.blocks import Block, Figure, Note
from gpudiag.report.document import Document
from gpudiag.report.format import duration, plural, share


def steps(document: Document) -> list[Block]:
    """How long a step took, and what time passed outside of steps; nothing where no log says so."""
    facts = document.values(StepsProfile)
    if not facts:
        return []
    unit = str(facts[StepsProfile.unit])
    step_s, logged_s = facts[StepsProfile.step_s], facts[StepsProfile.logged_s]
    at_pace = share(facts[StepsProfile.productive_pct])
    said = f"One {unit} took {duration(step_s)} in the median. "
    said += f"{at_pace} of the {duration(logged_s)} in the log went into {unit}s at that pace."
    n, first_s = facts[StepsProfile.n_pauses], facts[StepsProfile.first_s]
    if n:
        said += f" {plural(n, 'pause')} took {duration(facts[StepsProfile.pauses_s])}."
    if first_s and logged_s and first_s > logged_s / 100:
        said += f" The first {unit}s took {duration(first_s)} longer than later ones."
    loader = document.values(LoaderProfile)
    waits = loader.get(LoaderProfile.of_step_pct) if loader else None
    if waits is not None:
        said += f" By the log {share(min(waits, 100))} of a step is spent waiting for data."
    return [Note(said), Figure("step_time")]
