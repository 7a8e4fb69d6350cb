"""What the tools answer, typed: each number is quoted from a document of gpudiag under the name that it has there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpudiag.plain_data import Json, Scalar, meaning


@dataclass(frozen=True)
class ListedRun:
    """A run that may be diagnosed."""

    run: str = field(metadata=meaning("path by which the other tools take it"))
    changed: str = field(metadata=meaning("when a file of it changed last, ISO 8601 in UTC"))
    headline: str = field(metadata=meaning("of its diagnosis, where it was diagnosed since; else empty"))


@dataclass(frozen=True)
class RunList:
    """The runs that may be diagnosed, the one that changed last first."""

    folders: tuple[str, ...] = field(metadata=meaning("folders that may be read"))
    runs: tuple[ListedRun, ...]
    left_out: int = field(metadata=meaning("runs that are there and not listed; name a folder to see fewer"))


@dataclass(frozen=True)
class FoundFinding:
    """A fault that was found. ``id`` is the check that found it: cite it."""

    id: str
    severity: str
    title: str
    summary: str
    lost_gpu_h: float | None
    caused_by: str | None = field(metadata=meaning("id of the finding of which this one is a symptom"))
    recommendation: str | None = field(metadata=meaning("id of the recommendation that answers it"))
    advice: str = field(metadata=meaning("what to do"))


@dataclass(frozen=True)
class NotAssessed:
    """Checks that the data cannot answer: neither passed nor failed."""

    reason: str
    remedy: str = field(metadata=meaning("the step that would let them be answered"))
    checks: tuple[str, ...]


@dataclass(frozen=True)
class CheckResult:
    """What one check concluded."""

    id: str
    name: str
    status: str
    summary: str


@dataclass(frozen=True)
class DiagnosisResult:
    """A diagnosis: the headline, the findings, and what could not be assessed."""

    run: str
    level: str
    headline: tuple[str, ...] = field(metadata=meaning("what is wrong, the number that proves it, what to do next"))
    counts: Mapping[str, int] = field(metadata=meaning("checks by severity where something was found, else by status"))
    findings: tuple[FoundFinding, ...] = field(metadata=meaning("the one that cost most first"))
    not_assessed: tuple[NotAssessed, ...]
    faults: tuple[str, ...] = field(metadata=meaning("parts that failed, and who mends them"))
    checks: tuple[CheckResult, ...] = field(default=(), metadata=meaning("every check, where the whole was asked for"))


@dataclass(frozen=True)
class ChangeResult:
    """One thing to change."""

    what: str
    present: Scalar
    proposed: Scalar
    code: str


@dataclass(frozen=True)
class Criterion:
    """A statement on a number of the next run's diagnosis, such as ledger.mean_util_pct >= 90 %."""

    measure: str
    op: str
    value: float
    unit: str


@dataclass(frozen=True)
class RecommendationResult:
    """What to change, what it brings, and how to tell that it worked."""

    id: str
    title: str
    answers: tuple[str, ...] = field(metadata=meaning("ids of the findings that it answers"))
    changes: tuple[ChangeResult, ...]
    gain: str
    safety: str
    verify_first: str = field(metadata=meaning("why it must be tested before it is applied; else empty"))
    worked_if: tuple[Criterion, ...]
    does_not_help_if: str
    undo: str
    assumes: str


@dataclass(frozen=True)
class Explanation:
    """A check, or what it concluded of a run; or a recommendation for a run."""

    id: str
    kind: str = field(metadata=meaning("check, result (of a check, for a run) or recommendation"))
    title: str
    run: str = ""
    status: str = ""
    severity: str = ""
    summary: str = ""
    reason: str = field(default="", metadata=meaning("why nothing could be said"))
    evidence: Mapping[str, Json] = field(default_factory=dict)
    thresholds: Mapping[str, float] = field(default_factory=dict)
    why: str = ""
    refuted_by: str = ""
    advice: str = ""
    recommendation: RecommendationResult | None = None


@dataclass(frozen=True)
class ComparedQuantity:
    """One quantity of both runs; ``ratio`` is experiment over baseline, ``low`` to ``high`` its 95 % interval."""

    name: str
    title: str
    unit: str
    baseline: float | None
    experiment: float | None
    ratio: float | None
    low: float | None
    high: float | None
    verdict: str
    note: str


@dataclass(frozen=True)
class PlanOutcome:
    """A prediction or a criterion of the plan, and how it came out."""

    remedy: str
    kind: str
    measure: str
    unit: str
    baseline: float | None
    low: float | None
    high: float | None
    op: str
    measured: float | None
    status: str
    reason: str


@dataclass(frozen=True)
class ComparisonResult:
    """Whether two runs may be compared, in what they differ, and whether the plan came true."""

    baseline: str
    experiment: str
    verdict: str = field(metadata=meaning("invalid: the runs may not be compared, for the reasons given"))
    headline: tuple[str, ...]
    reasons: tuple[str, ...] = field(metadata=meaning("what forbids the comparison"))
    quantities: tuple[ComparedQuantity, ...]
    plan: tuple[PlanOutcome, ...]


@dataclass(frozen=True)
class EstimateResult:
    """A forecast number with its interval; where ``value`` is null, bounds alone are known."""

    value: float | None
    low: float | None
    high: float | None
    unit: str


@dataclass(frozen=True)
class ScenarioResult:
    """What k trials at once would bring."""

    k: int
    gain: EstimateResult
    throughput_trials_h: EstimateResult
    p_overflow: EstimateResult
    extrapolation: bool
    reason: str


@dataclass(frozen=True)
class ForecastResult:
    """What other settings would bring."""

    run: str
    now: int = field(metadata=meaning("trials at once that most of the log had"))
    scenarios: tuple[ScenarioResult, ...]
    backtest_passed: bool | None = field(metadata=meaning("null where the model was not tested on the log itself"))
    not_forecast: Mapping[str, str] = field(metadata=meaning("why a part is missing, by part"))
