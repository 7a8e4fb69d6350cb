"""Pure functions from a run to small frozen profiles. One topic a file, the same names in rules/ and plots/.

``MEASURES`` holds one measure a topic, ``measure_<topic>`` of the file ``<topic>.py``, in the order of ``TOPICS``.
"""

from __future__ import annotations

import importlib
from typing import Any

from gpudiag.measures.base import Measure

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
    "balance",
    "stalls",
    "idleness",
    "shift",
    "feed",
    "bottleneck",
    "loader",
    "leak",
    "throttle",
    "events",
    "failures",
    "search",
    "agreement",
    "recorder",
    "inputs",
)

MEASURES: tuple[Measure, ...]


def __getattr__(name: str) -> Any:
    """Import the measures when they are first asked for."""
    if name != "MEASURES":
        raise AttributeError(f"module 'gpudiag.measures' has no attribute '{name}'")
    found = tuple(getattr(importlib.import_module(f"gpudiag.measures.{t}"), f"measure_{t}") for t in TOPICS)
    globals()[name] = found
    return found
