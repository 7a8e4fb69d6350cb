"""Planted faults of memory: nearly full, nearly empty, growing, left behind."""

from __future__ import annotations

import numpy as np

from gpudiag.run import Run
from planted.base import TOTAL_MIB, Edge, blocks, fault, log, run, ticks, trials


@fault(
    "memory-near-limit",
    edges={"high_pct": Edge({"used_pct": 89.9}, {"used_pct": 90.1})},
    bigger=({"used_pct": 95.0}, {"used_pct": 100.0}),
)
def full(*, used_pct: float = 92.0) -> Run:
    """Three samples are at ``used_pct`` of the memory, the others at 60 %."""
    at = ticks(1000.0)
    return run(log(at, mem_used_mib=np.where(at > at[-4], used_pct, 60.0) / 100 * TOTAL_MIB))


@fault(
    "memory-headroom",
    edges={"low_pct": Edge({"used_pct": 50.1}, {"used_pct": 49.9})},
    bigger=({"used_pct": 30.0}, {"used_pct": 2.0}),
)
def empty(*, used_pct: float = 40.0) -> Run:
    """Memory in use rises to ``used_pct`` and no further."""
    at = ticks(1000.0)
    return run(log(at, mem_used_mib=blocks(len(at), 0.9, used_pct, 1.5) / 100 * TOTAL_MIB))


@fault(
    "memory-leak",
    edges={
        "min_slope_pct": Edge({"hours": 9.0, "rise_pct": 8.0}, {"hours": 9.0, "rise_pct": 11.0}),
        "max_p_pct": Edge({"noise_pct": 12.0}, {"noise_pct": 6.0}),
        "min_rise_pct": Edge({"rise_pct": 5.0}, {"rise_pct": 6.2}),
        "min_fills": Edge({"rise_pct": 55.0, "restarts": 1}, {"rise_pct": 55.0, "restarts": 2}),
    },
    bigger=({"rise_pct": 20.0}, {"rise_pct": 40.0}, {"rise_pct": 55.0, "restarts": 4}),
)
def leak(*, rise_pct: float = 10.0, hours: float = 2.0, noise_pct: float = 0.5, restarts: int = 0) -> Run:
    """Memory in use rises in ``hours`` hours from 40 % by another ``rise_pct`` of the total, anew after each of
    ``restarts``, each of which leaves the GPU idle for a minute.
    """
    at = ticks((restarts + 1) * hours * 3600, 20.0)
    level = 40.0 + rise_pct * (at % (hours * 3600)) / (hours * 3600)
    # never below the level
    noise = np.abs(noise_pct * np.repeat(np.random.default_rng(1).standard_normal(20), -(-len(at) // 20))[: len(at)])
    starts = (at > hours * 3600) & (at % (hours * 3600) < 60.0)
    used = (level + noise).clip(0, 100) / 100 * TOTAL_MIB
    return run(log(at, mem_used_mib=used, util_pct=np.where(starts, 0.0, 95.0)))


@fault(
    "memory-residual",
    edges={"max_residual_mib": Edge({"left_mib": 299.0}, {"left_mib": 300.0})},
    bigger=({"left_mib": 2000.0}, {"left_mib": 20000.0}),
)
def residual(*, left_mib: float = 800.0) -> Run:
    """After the only trial ``left_mib`` more memory is in use than before it."""
    at = ticks(720.0)
    used = np.where(at < 60.0, 350.0, np.where(at < 660.0, 15000.0, 350.0 + left_mib))
    util = np.where((at < 60.0) | (at >= 660.0), 0.0, 95.0)
    return run(log(at, mem_used_mib=used, util_pct=util), trials=trials([("COMPLETE", 60.0, 660.0)]))
