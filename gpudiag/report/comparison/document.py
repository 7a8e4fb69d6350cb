"""A comparison as one typed document, schema ``gpudiag.comparison/1``: fields are the keys of the JSON, in its order.

Times are ISO 8601 in UTC, unknown numbers are None, and the same runs give the same document.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from gpudiag.faults import Fault
from gpudiag.plain_data import TIME

ComparisonVerdict = Literal[
    "faster",
    "slower",
    "no evidence",
    "equivalent",
    "fails more",
    "fails less",
    "costs more",
    "costs less",
    "invalid",
]
CheckId = Literal[
    "same-unit",
    "same-workload",
    "not-a-subset",
    "parameters-applied",
    "telemetry-covers-job",
    "warm-up",
    "sample-size",
    "equal-success",
]

CheckStatus = Literal["pass", "fail", "unknown", "error"]


@dataclass(frozen=True)
class ComparisonHeadline:
    """The level, one line, and three sentences: what may be said, what else differs, what to do next."""

    level: str = "unknown"
    verdict: str = ""
    sentences: tuple[str, str, str] = ("", "", "")


@dataclass(frozen=True)
class InputEntry:
    """An input by its content."""

    path: str
    sha256: str


@dataclass(frozen=True)
class SideEntry:
    """One of the two runs."""

    name: str
    timezone: str
    n_items: int
    states: Mapping[str, int]
    start: str | None = field(metadata=TIME)
    end: str | None = field(metadata=TIME)
    wall_s: float | None
    gpus: tuple[str, ...]
    n_gpus: int
    inputs: tuple[InputEntry, ...]


@dataclass(frozen=True)
class GateCheckEntry:
    """A check of the gate; ``fault`` is what is wrong where it fails."""

    check: CheckId
    title: str
    status: CheckStatus
    evidence: str
    fault: str


@dataclass(frozen=True)
class ItemsEntry:
    """How many items the runs have, and have in common."""

    paired: bool
    n_baseline: int
    n_experiment: int
    n_shared: int
    n_succeeded_in_both: int
    jaccard: float | None


@dataclass(frozen=True)
class ConsistencyEntry:
    """A statement and whether the numbers allow it."""

    claim: str
    status: Literal["consistent", "inconsistent", "unknown"]
    text: str
    values: Mapping[str, float | None]


@dataclass(frozen=True)
class QuantityEntry:
    """Two values; ``ratio`` is experiment over baseline, ``low`` to ``high`` its 95 % interval.

    ``detectable``: the ratio above 1 that 4 of 5 pairs of this size would show as different, or its inverse.
    """

    name: str
    title: str
    unit: str
    kind: Literal["time", "speed", "price", "level", "rate", "total", "peak"]
    baseline: float | None
    experiment: float | None
    ratio: float | None
    low: float | None
    high: float | None
    p: float | None
    p_adjusted: float | None
    detectable: float | None
    n_baseline: float | None
    n_experiment: float | None
    method: str
    note: str
    verdict: Literal["faster", "slower", "higher", "lower", "no evidence", "equivalent", "invalid"]


@dataclass(frozen=True)
class ComparedCellEntry:
    """A cell of the ledger over all GPUs: GPU-hours, share of the run, GPU-seconds for one item that did not fail."""

    cell: str
    baseline_gpu_h: float
    experiment_gpu_h: float
    difference_gpu_h: float
    baseline_share_pct: float | None
    experiment_share_pct: float | None
    baseline_item_gpu_s: float | None
    experiment_item_gpu_s: float | None


@dataclass(frozen=True)
class DifferenceEntry:
    """One thing in which the runs were set up differently; null is not known."""

    group: Literal["settings", "dataloader", "params", "attributes", "hardware", "recording"]
    name: str
    baseline: bool | int | float | str | None
    experiment: bool | int | float | str | None


@dataclass(frozen=True)
class PlanOf:
    """The run that the plan was made for; ``note`` says what is odd about that."""

    run: str
    inputs: tuple[InputEntry, ...]
    remedies: tuple[str, ...]
    note: str


@dataclass(frozen=True)
class PlanOutcomeEntry:
    """A prediction, a check or the gain of the plan, and how it came out."""

    remedy: str
    kind: Literal["prediction", "check", "gain"]
    measure: str
    unit: str
    baseline: float | None
    low: float | None
    high: float | None
    op: str
    measured: float | None
    measured_low: float | None
    measured_high: float | None
    status: Literal["came true", "missed", "cannot tell"]
    reason: str


@dataclass(frozen=True)
class ComparisonDocument:
    """Comparison of an experiment with its baseline."""

    schema: Literal["gpudiag.comparison/1"]
    version: str
    verdict: ComparisonVerdict
    leader: str | None
    headline: ComparisonHeadline
    baseline: SideEntry
    experiment: SideEntry
    gate: tuple[GateCheckEntry, ...]
    reasons: tuple[str, ...]
    items: ItemsEntry
    consistency: tuple[ConsistencyEntry, ...]
    quantities: tuple[QuantityEntry, ...]
    ledger: tuple[ComparedCellEntry, ...]
    differences: tuple[DifferenceEntry, ...]
    plan_of: PlanOf | None
    plan: tuple[PlanOutcomeEntry, ...]
    errors: tuple[Fault, ...]
