"""Pure functions from a run to small frozen profiles. One topic a file, the same names in rules/ and plots/.

``MEASURES`` holds one measure a topic, ``measure_<topic>`` of the file ``<topic>.py``, in the order of ``TOPICS``, and
``PROFILES`` by topic the class of what it gives. :func:`fact_named` finds the handle of a fact by its name in plans and
documents.
"""

from __future__ import annotations

import importlib
from typing import Any

from gpudiag.facts import Fact
from gpudiag.measures.base import Measure, Profile

TOPICS = (
    "sampling",
    "utilization",
    "memory",
    "power",
    "trials",
    "parallelism",
    "pruning",
    "clock",
    "attribution",
    "ledger",
    "costs",
    "jobs",
    "balance",
    "stalls",
    "idleness",
    "standstill",
    "shift",
    "feed",
    "bottleneck",
    "causes",
    "trial_waits",
    "loader",
    "steps",
    "mfu",
    "profiled",
    "collectives",
    "leak",
    "throttle",
    "events",
    "endings",
    "divergence",
    "silence",
    "failures",
    "failure_rates",
    "search",
    "agreement",
    "recorder",
    "inputs",
)

MEASURES: tuple[Measure, ...]
PROFILES: dict[str, type[Profile]]

__all__ = ["MEASURES", "PROFILES", "TOPICS", "Measure", "Profile", "fact_named", *(f"measure_{t}" for t in TOPICS)]


def __getattr__(name: str) -> Any:
    """Import measures when they are first asked for: all of them, or one as ``measure_<topic>``."""
    topic = name.removeprefix("measure_")
    if name != topic and topic in TOPICS:
        return getattr(importlib.import_module(f"gpudiag.measures.{topic}"), name)
    if name not in ("MEASURES", "PROFILES"):
        raise AttributeError(f"module 'gpudiag.measures' has no attribute '{name}'")
    modules = [importlib.import_module(f"gpudiag.measures.{topic}") for topic in TOPICS]
    globals()["MEASURES"] = tuple(getattr(m, f"measure_{t}") for t, m in zip(TOPICS, modules, strict=True))
    declared = (value for m in modules for value in vars(m).values() if isinstance(value, type))
    classes = {value.topic: value for value in declared if issubclass(value, Profile) and value.topic}
    globals()["PROFILES"] = {topic: classes[topic] for topic in TOPICS}
    return globals()[name]


def fact_named(key: str) -> Fact[Any] | None:
    """The fact of that key, ``utilization.mean_pct`` or ``utilization.gpu.0.mean_pct``; None if there is none."""
    profile = _profiles().get(key.partition(".")[0])
    return profile.fact_named(key.partition(".")[2]) if profile else None


def _profiles() -> dict[str, type[Profile]]:
    found: dict[str, type[Profile]] = __getattr__("PROFILES")
    return found
