"""The quantities that a history follows, out of a diagnosis.json."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Tracked:
    """A quantity that is followed, out of a diagnosis.json; ``higher_is_better`` says which side is worse."""

    name: str
    title: str
    unit: str
    higher_is_better: bool
    of: Callable[[Mapping[str, Any]], float | None]


def _fact(topic: str, name: str) -> Callable[[Mapping[str, Any]], float | None]:
    return lambda document: _number(document, topic, name)


def _number(document: Mapping[str, Any], topic: str, name: str) -> float | None:
    value = document["measures"].get(topic, {}).get(name, {}).get("value")
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _per_completed(topic: str, name: str) -> Callable[[Mapping[str, Any]], float | None]:
    """Over the completed trials, or over the run where it has none at all."""

    def of(document: Mapping[str, Any]) -> float | None:
        total, n = _number(document, topic, name), _number(document, "trials", "n")
        done = _number(document, "trials", "state.COMPLETE.n") if n else 1.0
        if total is None or done is None:
            return None
        return total / done if done else math.inf  # spent, and nothing came of it

    return of


def _utilization(document: Mapping[str, Any]) -> float | None:
    within = _number(document, "ledger", "mean_util_pct")
    return _number(document, "utilization", "mean_pct") if within is None else within


TRACKED = (
    Tracked("util_pct", "mean utilization", "%", True, _utilization),
    Tracked("gpu_s", "GPU time per result", "GPU-s", False, _per_completed("ledger", "total_gpu_s")),
    Tracked("median_s", "median completed trial", "s", False, _fact("trials", "state.COMPLETE.median_s")),
    Tracked("energy_kwh", "energy per result", "kWh", False, _per_completed("power", "energy_kwh")),
)
"""A result is a completed trial, or the run where there are no trials."""
