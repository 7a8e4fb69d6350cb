"""A pair to compare: the healthy study with one worker, and with two."""

from __future__ import annotations

from dataclasses import replace

from gpudiag.simulation.cases import healthy
from gpudiag.simulation.cases.case import Case, later
from gpudiag.simulation.simulator import simulate

NAME = "second-worker"
SEED = 6

STORY = """
The study of the case `healthy` on the same GPU twice: with one worker, and with two. All of it comes from the event
loop, nothing is scripted.
"""


def make(seed: int | None = None) -> Case:
    """Simulate both runs from one seed; with another one they begin that many days later."""
    runs, drawn = {}, SEED if seed is None else seed
    for sub, workers in (("baseline", 1), ("experiment", 2)):
        settings = healthy.SPEC.settings.model_copy(update={"parallel": workers})
        spec = replace(healthy.SPEC, name=f"{NAME} {sub}", study=NAME, workers=workers, settings=settings)
        runs[sub] = simulate(later(spec, seed), seed=drawn)
    return Case(NAME, drawn, STORY, runs, seeded=seed is not None)
