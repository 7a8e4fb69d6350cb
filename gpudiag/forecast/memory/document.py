"""A forecast of memory as its part of the document: fields are the keys of the JSON, in its order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from gpudiag.forecast.estimate import Estimate
from gpudiag.forecast.memory.constraint import Constraint
from gpudiag.plain_data import Scalar, meaning

CapacitySource = Literal["given", "seen", "unknown"]
"""How it is known what a restart takes."""


@dataclass(frozen=True)
class LevelEntry:
    """Memory, crashes and throughput with k trials at once on one GPU; see :class:`MemoryCapacity`."""

    k: int = field(metadata={"ge": 1})
    typical_mib: float | None
    typical_low_mib: float | None
    typical_high_mib: float | None
    p95_mib: float | None
    p95_low_mib: float | None
    p95_high_mib: float | None
    worst_mib: float | None
    worst_low_mib: float | None
    worst_high_mib: float | None
    margin_mib: float | None = field(metadata=meaning("usable less p95_mib"))
    margin_low_mib: float | None
    margin_high_mib: float | None
    hard_fit: bool | None = field(metadata=meaning("whether the k largest trials fit together"))
    sets_over_pct: float | None = field(metadata=meaning("sets of trials that exceed the memory if peaks coincide"))
    p_overflow_pct: float | None = field(metadata=meaning("estimate: ends of trials at which k at once exceed it"))
    p_low_pct: float | None
    p_high_pct: float | None = field(metadata=meaning("at most so many do"))
    seen_max_mib: float | None
    seen_h: float | None
    seen_n: float | None = field(metadata=meaning("independent ends of trials at this level"))
    oom_events: float | None
    oom_pct: float | None
    oom_low_pct: float | None
    oom_high_pct: float | None
    other_events: float | None
    other_pct: float | None
    other_low_pct: float | None
    other_high_pct: float | None
    p_fisher: float | None
    crash_pct: float | None
    crash_low_pct: float | None
    crash_high_pct: float | None
    crash_how: Literal["seen", "forecast", "unknown"]
    failed_pct: float | None = field(metadata=meaning("trials that fail, those that follow another failure included"))
    failed_low_pct: float | None
    failed_high_pct: float | None
    study_risk_pct: float | None
    study_low_pct: float | None
    study_high_pct: float | None
    rate_day: float | None
    rate_day_low: float | None
    rate_day_high: float | None
    net_day: float | None
    net_day_low: float | None
    net_day_high: float | None


@dataclass(frozen=True)
class CrashClassEntry:
    """Crashes of one class."""

    kind: str
    n_trials: int
    n_events: int
    event_pct: float | None
    low_pct: float | None
    high_pct: float | None
    before_pct: float | None
    full_pct: float | None
    p_memory: float | None


@dataclass(frozen=True)
class CrashLevelEntry:
    """Crashes with k trials at once on the GPU."""

    k: int
    n: int
    oom_events: int
    oom_pct: float | None
    oom_low_pct: float | None
    oom_high_pct: float | None
    other_events: int
    other_pct: float | None
    other_low_pct: float | None
    other_high_pct: float | None
    p_fisher: float | None


@dataclass(frozen=True)
class CrashesEntry:
    """Crashes by class and by number of trials at once."""

    n: int = field(metadata={"ge": 0} | meaning("independent ends of trials"))
    success_streak: int
    by_class: tuple[CrashClassEntry, ...]
    by_level: tuple[CrashLevelEntry, ...]


@dataclass(frozen=True)
class RestartEntry:
    """What a crash costs beside its own trial."""

    hours: Estimate
    how: CapacitySource
    whole: bool = field(metadata=meaning("all trials on the GPU stop with it"))


@dataclass(frozen=True)
class MemoryEntry:
    """How many trials fit into the memory of one GPU."""

    run: str
    gpu: str
    n_gpus: int
    total_mib: float | None
    reserved_mib: float | None
    usable_mib: float | None
    baseline_mib: float | None
    levels: tuple[LevelEntry, ...]
    combinations: tuple[Mapping[str, Scalar], ...] = field(
        metadata=meaning("parameters by name, then how many trials, and their memory")
    )
    constraints: tuple[Constraint, ...]
    crashes: CrashesEntry
    restart: RestartEntry
    n_trials: int
    hard_fit_k: float | None
    recommended_k: float | None
    because: str
    parameters: tuple[str, ...]
    error_pct: float | None = field(metadata=meaning("mean error of the peaks of single trials that is to be expected"))
    reason: str
