"""A pair to compare: the healthy study with one worker, and with two."""

from __future__ import annotations

from dataclasses import replace

from gpudiag.simulation.cases import healthy
from gpudiag.simulation.cases.case import Case
from gpudiag.simulation.simulator import simulate

NAME = "second-worker"
SEED = 6

STORY = """
The study of the case `healthy` on the same GPU twice: with one worker, and with two. All of it comes from the event
loop, nothing is scripted.
"""


def make() -> Case:
    """Simulate both runs from one seed."""
    runs = {}
    for sub, workers in (("baseline", 1), ("experiment", 2)):
        settings = healthy.SPEC.settings.model_copy(update={"parallel": workers})
        spec = replace(healthy.SPEC, name=f"{NAME} {sub}", study=NAME, workers=workers, settings=settings)
        runs[sub] = simulate(spec, seed=SEED)
    return Case(NAME, SEED, STORY, runs)
