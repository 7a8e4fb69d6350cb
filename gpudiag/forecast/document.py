"""A forecast as one typed document, schema ``gpudiag.forecast/1``: fields are the keys of the JSON, in its order.

Unknown numbers are null in the JSON, never 0 or -1, and names carry their unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from gpudiag.forecast.estimate import Estimate
from gpudiag.forecast.memory.constraint import Constraint
from gpudiag.forecast.parallelism.assignment import Policy
from gpudiag.forecast.parallelism.colocation import LawName
from gpudiag.forecast.parallelism.drift import Drift
from gpudiag.plain_data import Scalar

SCHEMA: Literal["gpudiag.forecast/1"] = "gpudiag.forecast/1"

COUNT: dict[str, Any] = {"ge": 0}
Known = Literal["given", "seen", "unknown"]
"""How it is known what a restart takes."""
Level = Literal["exact", "value", "bounds"]
"""How much of a replay the records tell; see :class:`~gpudiag.forecast.pruning.result.PrunerReplay`."""

AT_LEAST_ONE: dict[str, Any] = {"ge": 1}


def _meaning(text: str) -> dict[str, Any]:
    """What a field means, for the schema."""
    return {"description": text}


@dataclass(frozen=True)
class NowEntry:
    """What the log shows, and what a change is reckoned with."""

    k: int = field(metadata=AT_LEAST_ONE | _meaning("trials at once that most of the log had"))
    configured: float | None = field(metadata=_meaning("trials at once as stated"))
    throughput_trials_h: Estimate
    restart_min: float = field(metadata=COUNT)
    remaining_trials: float | None
    law: LawName | Literal[""] = field(metadata=_meaning("law of U(k) beyond what was measured"))


@dataclass(frozen=True)
class Bounds:
    """Trials per hour that hold without a model."""

    low: float | None
    high: float | None


@dataclass(frozen=True)
class ModelsEntry:
    """What each model says of the throughput."""

    queueing_trials_h: float | None
    bounds_trials_h: Bounds


@dataclass(frozen=True)
class ScenarioEntry:
    """What k trials at once would bring."""

    k: int = field(metadata=AT_LEAST_ONE)
    throughput_trials_h: Estimate
    complete_trials_h: Estimate
    gain: Estimate = field(metadata=_meaning("throughput over the present one"))
    util_pct: Estimate
    p_overflow: Estimate = field(
        metadata=_meaning("percent; chance at a moment that trials together exceed the memory, an upper estimate")
    )
    hours_left: Estimate
    break_even_trials: float | None = field(metadata=_meaning("remaining trials from which the restart pays"))
    models: ModelsEntry
    extrapolation: bool = field(metadata=_meaning("more trials at once than were observed"))
    bounds_only: bool
    reason: str


@dataclass(frozen=True)
class BacktestEntry:
    """Fitted on the first half of the log, what the model says of the second."""

    tested: bool
    passed: bool
    predicted_trials_h: Estimate
    measured_trials_h: float | None
    error_pct: float | None
    n_fit: int
    n_test: int
    widening: float
    reason: str


@dataclass(frozen=True)
class AssignmentEntry:
    """What a way to give trials to several GPUs brings."""

    k: int
    policy: Policy
    throughput_trials_h: float


@dataclass(frozen=True)
class StartupEntry:
    """What a shorter start-up would bring."""

    share_pct: float | None
    share_of_gpu_time_alone_pct: float | None
    typical_s: float | None
    n_seen: int
    most: float | None
    halved: Estimate
    removed: Estimate


@dataclass(frozen=True)
class BatchGain:
    """What a batch so many times as large brings."""

    factor: int
    gain: Estimate


@dataclass(frozen=True)
class BatchEntry:
    """What a larger batch could bring, and the experiment that tells."""

    gains: tuple[BatchGain, ...]
    design: str


@dataclass(frozen=True)
class LevelEntry:
    """Memory, crashes and throughput with k trials at once on one GPU; see :class:`MemoryCapacity`."""

    k: int = field(metadata=AT_LEAST_ONE)
    typical_mib: float | None
    typical_low_mib: float | None
    typical_high_mib: float | None
    p95_mib: float | None
    p95_low_mib: float | None
    p95_high_mib: float | None
    worst_mib: float | None
    worst_high_mib: float | None
    margin_mib: float | None = field(metadata=_meaning("usable less p95_mib"))
    margin_low_mib: float | None
    margin_high_mib: float | None
    hard_fit: bool | None = field(metadata=_meaning("whether the k largest trials fit together"))
    sets_over_pct: float | None
    p_overflow_pct: float | None
    p_low_pct: float | None
    p_high_pct: float | None
    seen_max_mib: float | None
    seen_h: float | None
    seen_n: float | None = field(metadata=_meaning("independent ends of trials at this level"))
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

    n: int = field(metadata=COUNT | _meaning("independent ends of trials"))
    success_streak: int
    by_class: tuple[CrashClassEntry, ...]
    by_level: tuple[CrashLevelEntry, ...]


@dataclass(frozen=True)
class RestartEntry:
    """What a crash costs beside its own trial."""

    hours: Estimate
    how: Known
    whole: bool = field(metadata=_meaning("all trials on the GPU stop with it"))


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
        metadata=_meaning("parameters by name, then how many trials, and their memory")
    )
    constraints: tuple[Constraint, ...]
    crashes: CrashesEntry
    restart: RestartEntry
    n_trials: int
    hard_fit_k: float | None
    recommended_k: float | None
    because: str
    parameters: tuple[str, ...]
    error_pct: float | None
    reason: str


@dataclass(frozen=True)
class RankEntry:
    """How well values at a step rank trials as later ones do; see :func:`rank_agreement`."""

    step: int
    n: int
    spearman: float | None
    spearman_low: float | None
    spearman_high: float | None
    n_pairs: int
    depth: float | None
    concordance: float | None
    concordance_low: float | None
    concordance_high: float | None
    reading: Literal["too early", "safe", "undecided", "too few trials"]


@dataclass(frozen=True)
class ReplayTestEntry:
    """The logging pruner asked again over its own log; see :class:`gpudiag.forecast.pruning.play.Backtest`."""

    pruner: str
    repeated: int
    prunes: int
    others: int
    reports: int


@dataclass(frozen=True)
class PrunerEntry:
    """What another pruner would have done with the recorded curves."""

    pruner: str
    level: Level
    reason: str
    n_trials: int
    n_left_out: int
    identified_pct: float | None
    logged_pruned_pct: float | None
    logged_steps: int
    best_trial: int | None
    best_killed: bool | None
    best_cut_step: int | None
    workers: int
    ordered: bool
    n_replays: int
    max_steps: int
    longest_complete: int
    studies: tuple[str, ...]
    pruned_pct: Estimate
    steps: Estimate
    saved_steps: Estimate
    saved_slot_h: Estimate
    saved_gpu_h: Estimate
    regret: Estimate
    backtests: tuple[ReplayTestEntry, ...]
    rank: tuple[RankEntry, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class ForecastDocument:
    """Forecast for one run by gpudiag: what other settings would bring."""

    schema: Literal["gpudiag.forecast/1"]
    version: str = field(metadata=_meaning("version of gpudiag"))
    run: str = field(metadata=_meaning("name of the run"))
    now: NowEntry
    parallel: tuple[ScenarioEntry, ...]
    backtest: BacktestEntry | None
    drift: Drift
    assignment: tuple[AssignmentEntry, ...]
    startup: StartupEntry
    batch: BatchEntry
    memory: MemoryEntry | None = field(metadata=_meaning("memory capacity, null where it was not measurable"))
    pruner: PrunerEntry | None = field(
        metadata=_meaning("replay of another pruner, null where none was asked for or nothing can be replayed")
    )
    not_forecast: Mapping[str, str] = field(metadata=_meaning("why a part is missing, by part"))
