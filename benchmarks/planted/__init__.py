"""Planted faults: one a rule, in the file of its topic, and healthy runs to hold them against."""

from __future__ import annotations

from planted import (
    collectives,
    course,
    failures,
    feed,
    hardware,
    memory,
    profiled,
    pruning,
    recording,
    standstill,
    steps,
    trials,
    utilization,
)  # fmt: skip
from planted.base import FAULTS, Edge, Fault

__all__ = ["FAULTS", "Edge", "Fault", "collectives", "course", "failures", "feed", "hardware", "memory", "profiled",
           "pruning", "recording", "standstill", "steps", "trials", "utilization"]  # fmt: skip
