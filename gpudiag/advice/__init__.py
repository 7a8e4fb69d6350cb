"""From verdicts to a plan: remedies, each a function from the situation of a run to a proposal. One topic a file.

``REMEDIES`` holds every remedy of ``TOPICS`` in written order.
"""

from __future__ import annotations

from gpudiag.advice import (
    collectives,
    compute,
    devices,
    hardware,
    input,
    memory,
    parallelism,
    profiled,
    pruning,
    recording,
    search,
    startup,
    steps,
    trials,
)
from gpudiag.advice._engine.remedy import Remedy

TOPICS = (
    devices,
    input,
    compute,
    profiled,
    collectives,
    steps,
    parallelism,
    startup,
    memory,
    trials,
    search,
    pruning,
    hardware,
    recording,
)

REMEDIES: tuple[Remedy, ...] = tuple(r for topic in TOPICS for r in vars(topic).values() if isinstance(r, Remedy))
