"""A forecast as one typed document, schema ``gpudiag.forecast/2``: fields are the keys of the JSON, in its order.

Unknown numbers are null in the JSON, never 0 or -1, and names carry their unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from gpudiag.forecast.estimate import Estimate
from gpudiag.forecast.memory.document import MemoryEntry
from gpudiag.forecast.parallelism.assignment import Policy
from gpudiag.forecast.parallelism.colocation import LawName
from gpudiag.forecast.parallelism.drift import Drift
from gpudiag.forecast.pruning.document import PrunerEntry
from gpudiag.plain_data import JsonObject, meaning

SCHEMA: Literal["gpudiag.forecast/2"] = "gpudiag.forecast/2"

COUNT: JsonObject = {"ge": 0}

AT_LEAST_ONE: JsonObject = {"ge": 1}


@dataclass(frozen=True)
class NowEntry:
    """What the log shows, and what a change is reckoned with."""

    k: int = field(metadata=AT_LEAST_ONE | meaning("trials at once that most of the log had"))
    configured: float | None = field(metadata=meaning("trials at once as stated"))
    throughput_trials_h: Estimate
    restart_min: float = field(metadata=COUNT)
    remaining_trials: float | None
    law: LawName | Literal[""] = field(metadata=meaning("law of U(k) beyond what was measured"))


@dataclass(frozen=True)
class ThroughputBounds:
    """Trials per hour that hold without a model."""

    low: float | None
    high: float | None


@dataclass(frozen=True)
class ModelsEntry:
    """What each model says of the throughput."""

    queueing_trials_h: float | None
    bounds_trials_h: ThroughputBounds


@dataclass(frozen=True)
class ScenarioEntry:
    """What k trials at once would bring."""

    k: int = field(metadata=AT_LEAST_ONE)
    placed: Mapping[str, int] = field(
        metadata=meaning("trials at once by GPU, empty where the GPUs of the trials are unknown")
    )
    throughput_trials_h: Estimate
    complete_trials_h: Estimate
    gain: Estimate = field(metadata=meaning("throughput over the present one"))
    util_pct: Estimate
    p_overflow: Estimate = field(
        metadata=meaning("percent of ends of trials at which they exceed the memory: an estimate, at most its high end")
    )
    hours_left: Estimate
    break_even_trials: float | None = field(metadata=meaning("remaining trials from which the restart pays"))
    models: ModelsEntry
    extrapolation: bool = field(metadata=meaning("more trials at once than were observed"))
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
class ForecastDocument:
    """Forecast for one run by gpudiag: what other settings would bring."""

    schema: Literal["gpudiag.forecast/2"]
    version: str = field(metadata=meaning("version of gpudiag"))
    run: str = field(metadata=meaning("name of the run"))
    now: NowEntry
    parallel: tuple[ScenarioEntry, ...]
    backtest: BacktestEntry | None
    drift: Drift
    assignment: tuple[AssignmentEntry, ...]
    spread: ScenarioEntry | None = field(
        metadata=meaning("the present trials at once spread evenly over the GPUs, null where they are")
    )
    startup: StartupEntry
    batch: BatchEntry
    memory: MemoryEntry | None = field(metadata=meaning("memory capacity, null where it was not measurable"))
    pruner: PrunerEntry | None = field(
        metadata=meaning("replay of another pruner, null where none was asked for or nothing can be replayed")
    )
    not_forecast: Mapping[str, str] = field(metadata=meaning("why a part is missing, by part"))
