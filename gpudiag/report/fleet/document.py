"""A fleet as one typed document, schema ``gpudiag.fleet/1``: fields are the keys of the JSON, in its order.

A run is one row, whose names are those of the columns of the Parquet table. Unknown is None.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Literal

from gpudiag._run.tables import TIME
from gpudiag.plain_data import NAN_IS_NULL, meaning
from gpudiag.report.document import Level, Use

RowStatus = Literal["diagnosed", "not diagnosed", "counted already"]
IDLE = ("idle_no_trial", "startup_only", "tail_only", "waiting", "stalled")
"""Categories of the ledger in which a GPU did next to nothing."""
OF_OUTCOME = {"COMPLETE": "completed_gpu_s", "PRUNED": "pruned_gpu_s", "FAIL": "failed_gpu_s"}


@dataclass(frozen=True)
class Cause:
    """A finding of a run."""

    rule: str
    title: str
    severity: str
    lost_gpu_h: float | None
    caused_by: str | None


@dataclass(frozen=True)
class RunRow:
    """A run. What is unknown is None; GPU-seconds are those of the run's ledger, whose nine categories add up."""

    run: str = field(metadata=meaning("name within the fleet: the path below the one that was given"))
    source: str = field(metadata=meaning("what was read"))
    status: RowStatus
    reason: str = field(default="", metadata=meaning("why it was not diagnosed or not counted"))
    user: str = ""
    project: str = ""
    host: str = ""
    gpu_model: str = ""
    n_gpus: int | None = None
    start: str | None = field(default=None, metadata=TIME)
    end: str | None = field(default=None, metadata=TIME)
    gpu_s: float | None = field(default=None, metadata=meaning("GPU time accounted for, unobserved parts included"))
    busy_gpu_s: float | None = field(default=None, metadata=meaning("50 % utilization or more"))
    busy_low_gpu_s: float | None = field(default=None, metadata=meaning("between 10 and 50 %"))
    stalled_gpu_s: float | None = field(default=None, metadata=meaning("idle inside trials"))
    waiting_gpu_s: float | None = field(default=None, metadata=meaning("idle, unclear why"))
    startup_only_gpu_s: float | None = field(default=None, metadata=meaning("start-up of trials"))
    tail_only_gpu_s: float | None = field(default=None, metadata=meaning("end of trials"))
    idle_no_trial_gpu_s: float | None = field(default=None, metadata=meaning("idle without a trial"))
    foreign_gpu_s: float | None = field(default=None, metadata=meaning("busy without a trial"))
    unobserved_gpu_s: float | None = field(default=None, metadata=meaning("no telemetry"))
    util_pct: float | None = field(default=None, metadata=meaning("mean utilization of the observed time"))
    completed_gpu_s: float | None = field(default=None, metadata=meaning("GPU time of completed trials"))
    pruned_gpu_s: float | None = field(default=None, metadata=meaning("GPU time of pruned trials"))
    failed_gpu_s: float | None = field(default=None, metadata=meaning("GPU time of failed trials"))
    n_trials: int | None = None
    n_completed: int | None = None
    n_pruned: int | None = None
    n_failed: int | None = None
    energy_kwh: float | None = None
    cost: float | None = None
    currency: str = ""
    level: Level = "unknown"
    use: Use = "unknown"
    headline: str = ""
    top_cause: str = field(default="", metadata=meaning("rule of the costliest finding that is no symptom"))
    recoverable_gpu_h: float | None = field(
        default=None, metadata=meaning("what the costliest finding lost; findings overlap and are not added")
    )
    causes: tuple[Cause, ...] = ()
    recommendations: tuple[str, ...] = ()
    inputs: str = field(default="", metadata=meaning("digest of the content of all inputs"))
    telemetry: tuple[str, ...] = field(default=(), metadata=meaning("digests of the telemetry"))

    @property
    def idle_gpu_s(self) -> float | None:
        """Time in which the GPUs did next to nothing."""
        known = [value for cell in IDLE if (value := getattr(self, f"{cell}_gpu_s")) is not None]
        return sum(known) if known else None


CELLS = tuple(
    one.name.removesuffix("_gpu_s")
    for one in fields(RunRow)
    if one.name.endswith("_gpu_s") and one.name not in OF_OUTCOME.values()
)
"""The categories of the ledger."""


@dataclass(frozen=True)
class Total:
    """Runs added up. ``gpu_s`` is the sum of ``cells`` exactly (both by math.fsum), of the runs with telemetry;
    ``util_pct`` weighs each run by its observed time, NaN where nothing was observed.
    """

    name: str
    n_runs: int
    n_without_telemetry: int
    gpu_s: float
    cells: Mapping[str, float]
    util_pct: float = field(metadata=NAN_IS_NULL)
    failed_gpu_s: float
    pruned_gpu_s: float
    energy_kwh: float
    n_trials: int
    n_failed: int
    recoverable_gpu_h: float

    @property
    def idle_gpu_s(self) -> float:
        """Time in which the GPUs did next to nothing."""
        return math.fsum(self.cells[cell] for cell in IDLE)


@dataclass(frozen=True)
class CauseTotal:
    """A cause over the fleet. ``n_runs`` had it, of ``n_top`` it was the costliest; ``lost_gpu_h`` is what it lost
    where it was the costliest, which adds up over causes; ``n_unpriced`` runs had it at an unknown cost.
    """

    rule: str
    title: str
    n_runs: int
    n_top: int
    lost_gpu_h: float
    n_unpriced: int
    worst_run: str
    offenders: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class FleetHeadline:
    """Level of the worst that was found, and three sentences: the headline, the number that proves it, what is next."""

    level: str
    sentences: tuple[str, str, str]


@dataclass(frozen=True)
class FleetDocument:
    """Many runs added up."""

    schema: Literal["gpudiag.fleet/1"]
    version: str
    name: str
    by: str = field(metadata=meaning("what ``groups`` are"))
    headline: FleetHeadline
    total: Total
    groups: tuple[Total, ...]
    weeks: tuple[Total, ...]
    causes: tuple[CauseTotal, ...]
    runs: tuple[RunRow, ...]

    @property
    def counted(self) -> list[RunRow]:
        """The runs that are added up."""
        return [row for row in self.runs if row.status == "diagnosed"]
