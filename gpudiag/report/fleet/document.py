"""A fleet as one typed document, schema ``gpudiag.fleet/1``: fields are the keys of the JSON, in its order.

A run is one row, whose names are those of the columns of the Parquet table. Unknown is None.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from statistics import median
from typing import Literal

from gpudiag.plain_data import NAN_IS_NULL, TIME, meaning
from gpudiag.report.document import Level, Use
from gpudiag.report.fleet.changes import Changes

Touched = Literal["pruned trials", "failed trials", "runs", ""]
"""What a cause of unknown cost is about: these trials, all of the runs that had it, or only the record."""
RowStatus = Literal["diagnosed", "not diagnosed", "counted already", "accounted", "continued", "shared", "unallocated"]
COUNTED: tuple[RowStatus, ...] = ("diagnosed", "accounted", "continued", "shared", "unallocated")
"""Rows whose GPU time is added up. ``accounted``: of telemetry of a cluster, by a scheduler's job or a session, without
checks; ``continued``: what a job of several hosts had on each further one, no run of its own. ``shared`` is GPU time of
jobs of which nothing says which GPU each had, ``unallocated`` that of no job: these are no runs."""
RUNS: tuple[RowStatus, ...] = ("diagnosed", "accounted")
"""Rows that count as a run."""
OF_RUNS: tuple[RowStatus, ...] = (*RUNS, "continued")
"""Rows with GPU time of a run."""
TIMED = ("week", "month")
"""What a fleet is divided by in the order of time: a run belongs where it began."""
SHORT = 0.01
"""Weeks and days with less than this share of the median one's observed time, as where half a sampling period lies
before midnight, are no point of a course."""
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
class FailedTrials:
    """Failed trials of one kind in a run."""

    kind: str
    n_trials: int
    gpu_s: float | None


@dataclass(frozen=True)
class Recording:
    """A GPU that a run recorded, from its first to its last sample."""

    gpu: str = field(metadata=meaning("uuid; '' where the telemetry states none"))
    start: str
    end: str
    parts: tuple[str, ...] = field(
        default=(), metadata=meaning("digests of ten minutes of samples, of a GPU without uuid")
    )


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
    state: str = field(default="", metadata=meaning("how the scheduler says that the job ended"))
    gpu_model: str = ""
    driver: str = field(default="", metadata=meaning("driver versions that the telemetry states"))
    commit: str = field(default="", metadata=meaning("of run.toml, else the one that the trials state"))
    image: str = field(default="", metadata=meaning("container image, of run.toml"))
    framework: str = field(default="", metadata=meaning("framework and version, of run.toml"))
    n_gpus: int | None = field(default=None, metadata=meaning("a board that another one replaced is not counted again"))
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
    unobserved_gpu_s: float | None = field(default=None, metadata=meaning("no telemetry, or none of utilization"))
    left_out_gpu_h: float | None = field(
        default=None, metadata=meaning("GPU time that counts nowhere: beside a recording that shares a part of it")
    )
    util_pct: float | None = field(default=None, metadata=meaning("mean utilization of the observed time"))
    completed_gpu_s: float | None = field(default=None, metadata=meaning("GPU time of completed trials"))
    pruned_gpu_s: float | None = field(default=None, metadata=meaning("GPU time of pruned trials"))
    failed_gpu_s: float | None = field(default=None, metadata=meaning("GPU time of failed trials"))
    n_trials: int | None = None
    n_completed: int | None = None
    n_pruned: int | None = None
    n_failed: int | None = None
    energy_kwh: float | None = field(
        default=None, metadata=meaning("energy of that GPU time, where power or energy was recorded")
    )
    cost: float | None = None
    currency: str = ""
    price_per_gpu_h: float | None = field(default=None, metadata=meaning("of run.toml, else that of the whole fleet"))
    level: Level = "unknown"
    use: Use = "unknown"
    headline: str = ""
    top_cause: str = field(default="", metadata=meaning("rule of the costliest finding that is no symptom"))
    recoverable_gpu_h: float | None = field(
        default=None, metadata=meaning("what the costliest finding lost; findings overlap and are not added")
    )
    causes: tuple[Cause, ...] = ()
    failures: tuple[FailedTrials, ...] = field(default=(), metadata=meaning("failed trials by kind"))
    recommendations: tuple[str, ...] = ()
    options: tuple[str, ...] = field(
        default=(), metadata=meaning("of gpudiag report, for this run alone of those in its source")
    )
    inputs: str = field(default="", metadata=meaning("digest of the content of all inputs"))
    telemetry: tuple[str, ...] = field(default=(), metadata=meaning("digests of the telemetry"))
    recordings: tuple[Recording, ...] = field(default=(), metadata=meaning("which GPUs were recorded when"))
    trials: tuple[str, ...] = field(default=(), metadata=meaning("digests of the trials, eight at a time"))

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
    energy_kwh: float = field(metadata=meaning("of the GPU time, where power or energy was recorded"))
    n_trials: int
    n_failed: int
    recoverable_gpu_h: float
    cost: Mapping[str, float] = field(metadata=meaning("money by currency, of the runs that state a price"))
    n_priced: int

    @property
    def observed_gpu_s(self) -> float:
        """GPU time with telemetry."""
        return math.fsum(seconds for cell, seconds in self.cells.items() if cell != "unobserved")

    @property
    def idle_gpu_s(self) -> float:
        """Time in which the GPUs did next to nothing."""
        return math.fsum(self.cells[cell] for cell in IDLE)


def short_weeks(weeks: Iterable[Total]) -> frozenset[str]:
    """The names of those with next to no observed time; a week without any telemetry is none of them."""
    seen = {one.name: one.observed_gpu_s for one in weeks if one.observed_gpu_s > 0}
    return frozenset(name for name, own in seen.items() if own < SHORT * median(seen.values()))


def no_run(row: RunRow) -> str:
    """What GPU time is called that is of no single job; '' for a run."""
    return row.status if row.status in ("shared", "unallocated") else ""


@dataclass(frozen=True)
class CauseTotal:
    """A cause over the fleet. ``n_runs`` had it, in ``n_top`` it was the costliest at a known cost; ``lost_gpu_h`` is
    what it lost in these, which adds up over causes; ``n_unpriced`` runs had it at an unknown cost.
    """

    rule: str
    title: str
    n_runs: int
    n_top: int
    lost_gpu_h: float
    n_unpriced: int
    worst_run: str
    offenders: tuple[tuple[str, int], ...]
    touched: Touched = field(default="", metadata=meaning("what ``touched_gpu_h`` is the GPU time of"))
    touched_gpu_h: float | None = field(
        default=None,
        metadata=meaning("GPU time that it is about, in runs where its cost is unknown: no estimate of a loss"),
    )
    severity: str = field(default="", metadata=meaning("the worst over the runs"))
    lost_cost: Mapping[str, float] = field(
        default_factory=dict, metadata=meaning("the same as money by currency, of the runs whose price is known")
    )


@dataclass(frozen=True)
class FailureTotal:
    """Failed trials of one kind over the fleet. ``gpu_s`` is of the runs of which the GPU time of failed trials is
    known, None where it is of none; ``groups`` are the three parts of the fleet with most of these trials.
    """

    kind: str
    n_trials: int
    n_runs: int
    gpu_s: float | None
    groups: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class UnusedGpu:
    """A GPU that never worked: no sample reaches 10 % utilization. Or hardly: ``worked_s`` is the time of 10 % or
    more.
    """

    host: str
    gpu: str
    uuid: str
    model: str
    observed_s: float
    worked_s: float = 0.0


@dataclass(frozen=True)
class HeatMap:
    """Mean utilization by GPU and time. ``n_together``: most GPUs that make one row; ``start``: left borders of the
    columns, each ``width_h`` wide; ``mean_pct``: of the observed time, None where nothing was observed.
    """

    gpus: tuple[str, ...]
    n_together: int
    start: tuple[str, ...]
    width_h: float
    mean_pct: tuple[tuple[float | None, ...], ...]


@dataclass(frozen=True)
class ClusterDocument:
    """Telemetry of a whole cluster. ``by_jobs``: it was cut by the jobs of a scheduler; else into sessions."""

    n_hosts: int
    n_gpus: int
    n_without_samples: int
    observed_gpu_s: float
    start: str
    end: str
    by_jobs: bool
    never_used: tuple[UnusedGpu, ...]
    heat: HeatMap | None
    notes: tuple[str, ...] = ()
    hardly_used: tuple[UnusedGpu, ...] = field(default=(), metadata=meaning("worked less than 0.1 % of observed time"))
    n_hosts_without_samples: int = field(default=0, metadata=meaning("further hosts, without any sample"))
    n_hosts_left_out: int = field(default=0, metadata=meaning("hosts of which nothing says whether 1 is 1 % or 100 %"))

    @property
    def n_observed(self) -> int:
        """GPUs with samples."""
        return self.n_gpus - self.n_without_samples


@dataclass(frozen=True)
class FleetHeadline:
    """How well the GPUs were used, as a level and in one sentence; and three sentences: how much GPU time that was,
    what cost most, what is next.
    """

    level: str
    verdict: str
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
    changes: Changes
    causes: tuple[CauseTotal, ...]
    failures: tuple[FailureTotal, ...]
    runs: tuple[RunRow, ...]
    unread: tuple[str, ...] = field(default=(), metadata=meaning("folders that hold files and no run"))

    cluster: ClusterDocument | None = None

    @property
    def counted(self) -> list[RunRow]:
        """The rows that are added up."""
        return [row for row in self.runs if row.status in COUNTED]

    @property
    def checked(self) -> list[RunRow]:
        """The runs on which the checks were made."""
        return [row for row in self.runs if row.status == "diagnosed"]
