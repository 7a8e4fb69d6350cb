"""The quantities that a history follows, out of a diagnosis.json."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gpudiag.values import is_number

Reading = Callable[[Mapping[str, Any]], float | None]
"""A number out of a diagnosis.json; None where it is unknown."""


@dataclass(frozen=True)
class Tracked:
    """A quantity that is followed, out of a diagnosis.json; ``higher_is_better`` says which side is worse.
    ``per_result``: it grows with the work that a result takes.
    """

    name: str
    title: str
    unit: str
    higher_is_better: bool
    of: Reading
    per_result: bool = False


KNOWN_PCT = 90.0
"""Below this share of the GPU time, energy that is known is that of a part: METHODS 7, check 5."""


def _fact(topic: str, name: str) -> Reading:
    return lambda document: _number(document, topic, name)


def _number(document: Mapping[str, Any], topic: str, name: str) -> float | None:
    value = document["measures"].get(topic, {}).get(name, {}).get("value")
    return float(value) if is_number(value) else None


def _per_completed(total_of: Reading) -> Reading:
    """Over the completed trials, or over the run where it has none at all."""

    def of(document: Mapping[str, Any]) -> float | None:
        total, n = total_of(document), _number(document, "trials", "n")
        done = _number(document, "trials", "state.COMPLETE.n") if n else _finished(document)
        if total is None or done is None:
            return None
        return total / done if done else math.inf  # spent, and nothing came of it

    return of


def _finished(document: Mapping[str, Any]) -> float | None:
    """1 for a run without trials, whose training is the result: 0 where it failed, None where it was cut, or some of
    several failed.
    """
    n_logs, n_recorded, failed, of_recorded, *cut = (
        _number(document, "endings", f"n_{name}") or 0.0
        for name in ("logs", "recorded", "failed", "failed_recorded", "stopped", "short", "outside", "unended")
    )
    if 0 < n_logs <= failed - of_recorded or 0 < n_recorded <= of_recorded:
        return 0.0
    return None if failed + sum(cut) else 1.0


def _energy_kwh(document: Mapping[str, Any]) -> float | None:
    """Energy of the time that is counted as GPU time: of the trials where their clock is known, else of the record."""
    of_trials = _number(document, "costs", "total_gpu_h") is not None
    topic, known = ("costs", "energy_coverage_pct") if of_trials else ("power", "coverage_pct")
    known_pct = _number(document, topic, known)
    return None if known_pct is not None and known_pct < KNOWN_PCT else _number(document, topic, "energy_kwh")


def _utilization(document: Mapping[str, Any]) -> float | None:
    within = _number(document, "ledger", "mean_util_pct")
    return _number(document, "utilization", "mean_pct") if within is None else within


def failures_of(document: Mapping[str, Any]) -> tuple[int, int] | None:
    """Trials that failed and trials that ended; None where no trial ended."""
    n = [_number(document, "trials", f"state.{state}.n") or 0.0 for state in ("FAIL", "COMPLETE", "PRUNED")]
    return (int(n[0]), int(sum(n))) if sum(n) else None


def steps_of(document: Mapping[str, Any]) -> float | None:
    """Steps of the training of a run without trials, those done again aside; None where no log tells of any."""
    n, again = (_number(document, "steps", name) for name in ("n_steps", "n_repeated"))
    return n - (again or 0.0) if n and not _number(document, "trials", "n") else None


FAILED = Tracked("fail_pct", "share of failed trials", "%", False, _fact("trials", "fail_pct"))
TRACKED = (
    Tracked("util_pct", "mean utilization", "%", True, _utilization),
    Tracked("gpu_s", "GPU time per result", "GPU-s", False, _per_completed(_fact("ledger", "total_gpu_s")), True),
    Tracked("median_s", "median completed trial", "s", False, _fact("trials", "state.COMPLETE.median_s")),
    Tracked("energy_kwh", "energy per result", "kWh", False, _per_completed(_energy_kwh), True),
    FAILED,
)
"""A result is a completed trial, or the run where there are no trials and its training did not die."""
