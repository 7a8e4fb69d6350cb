"""Which runs within a run were on one machine, where what they logged of its GPUs does not say it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import numpy as np

from gpudiag.readers.telemetry.mlflow import gpu_metric

Readings: TypeAlias = Mapping[str, np.ndarray]
"""Of one run, by the name of a metric: time and value in the first two columns, in the order of time."""
LEAST_READINGS = 3
"""In the time that two runs share; fewer tell nothing."""
APART = {
    "utilization_percentage": (20.0, 0.0),
    "memory_usage_percentage": (5.0, 0.0),
    "memory_usage_megabytes": (500.0, 0.1),
}
"""How far means of one GPU over the same time are apart at most: the larger of a value, and a share of the mean."""


def machines(runs: Iterable[Readings]) -> tuple[list[int], bool]:
    """A machine for each run, numbered from 0, and whether all that share a time with others could be told.

    Runs that read a GPU of the same index differently in the time that they share were on several machines. Of those
    that share no time, and of those whose readings agree, this cannot be told: they are taken for one machine.
    """
    known: list[list[Readings]] = []
    found, is_certain = [], True
    for run in runs:
        beside = [[same for one in held if (same := may_be_same(run, one)) is not None] for held in known]
        free = [at for at, verdicts in enumerate(beside) if all(verdicts)]
        at = max(free, key=lambda at: (bool(beside[at]), -at), default=len(known))
        if at == len(known):
            known.append([])
        elif beside[at]:
            is_certain = False
        known[at].append(run)
        found.append(at)
    return found, is_certain


def may_be_same(one: Readings, other: Readings) -> bool | None:
    """Whether two runs may have read the same GPUs; None where they share no time."""
    metrics = {name: gpu[1] for name in one.keys() & other.keys() if (gpu := gpu_metric(name)) and gpu[1] in APART}
    told = [_agree(metric, one[name], other[name]) for name, metric in metrics.items()]
    verdicts = [verdict for verdict in told if verdict is not None]
    return all(verdicts) if verdicts else None


def _agree(metric: str, one: np.ndarray, other: np.ndarray) -> bool | None:
    if not len(one) or not len(other):
        return None
    first, last = max(one[0, 0], other[0, 0]), min(one[-1, 0], other[-1, 0])
    if first > last:
        return None
    shared = [part[(part[:, 0] >= first) & (part[:, 0] <= last) & np.isfinite(part[:, 1]), 1] for part in (one, other)]
    fewest = min(len(part) for part in shared)
    if fewest < LEAST_READINGS:
        return True
    means = [float(np.mean(part)) for part in shared]
    edge = max(float(np.ptp(part)) for part in shared) / fewest  # one reading more or less in the shared time
    value, share = APART[metric]
    return abs(means[0] - means[1]) <= max(value, share * max(means)) + edge
