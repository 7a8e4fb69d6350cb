"""What a recorder sees of the host while a simulated training runs."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gpudiag.simulation.trainings.spec import TrainingSpec
from gpudiag.simulation.trainings.truth import busy_until, merged
from gpudiag.simulation.trainings.world import RankHistory, Span, TrainingHistory

ASLEEP = ("loader", "down", "end")
"""States in which the main process of a rank does not compute; a synchronization spins."""


def host_samples(spec: TrainingSpec, history: TrainingHistory, ticks: np.ndarray) -> pd.DataFrame:
    """One row a tick, of the time since the one before: ``true_s`` and the columns of table ``host``."""
    before = np.append(ticks[0] - spec.telemetry.period_s, ticks[:-1])
    awake = [[(low, high) for low, high, state in rank.host if state not in ASLEEP] for rank in history.ranks]
    loads = [_load(spans, before, ticks) for spans in awake]
    fetching = [_load(worker, before, ticks) for rank in history.ranks for worker in rank.fetching]
    computing = fetching if spec.loader.waits_for == "cpu" else [0.1 * load for load in fetching]
    if spec.hot_neighbor:
        computing = [*computing, np.full(len(ticks), 0.98)]
    busy = np.array([*loads, *computing])
    waiting = np.sum(fetching, axis=0) if spec.loader.waits_for == "storage" else np.zeros(len(ticks))
    process = 100 * busy.max(axis=0)
    return pd.DataFrame(
        {
            "true_s": ticks,
            "host_cores": float(spec.cores),
            "cpu_pct": np.minimum(100 * busy.sum(axis=0) / spec.cores, 100).round(1),
            "cpu_max_core_pct": np.minimum(process, 100).round(1),
            "process_cpu_max_pct": process.round(1),
            "io_wait_pct": np.minimum(100 * waiting / spec.cores, 100).round(1),
        }
    )


def _load(spans: list[Span], before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Share of each stretch that lies in a span."""
    own = merged(sorted(spans))
    return (busy_until(*own, after) - busy_until(*own, before)) / (after - before)


def memory_course(rank: RankHistory, base_mib: float, mem_mib: float) -> list[tuple[float, float]]:
    """(time, MiB) at each change: a third while the process starts, all from its first kernel on, none while down."""
    out: list[tuple[float, float]] = []
    for begin, end, state in rank.host:
        if state in ("startup", "restart"):
            out += [((begin + end) / 2, base_mib + mem_mib / 3), (end, base_mib + mem_mib)]
        elif state in ("down", "end"):
            out.append((begin, float(base_mib)))
    return out
