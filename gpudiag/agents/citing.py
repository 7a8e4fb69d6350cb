"""Results from documents: what a diagnosis says, quoted and never computed again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import TypeVar

from gpudiag.advice._engine.recommendation import Recommendation
from gpudiag.agents.results import (
    ChangeResult,
    CheckResult,
    ComparedQuantity,
    ComparisonResult,
    Criterion,
    DiagnosisResult,
    EstimateResult,
    Explanation,
    ForecastResult,
    FoundFinding,
    NotAssessed,
    PlanOutcome,
    RecommendationResult,
    ScenarioResult,
)
from gpudiag.forecast.document import ForecastDocument
from gpudiag.forecast.estimate import Estimate
from gpudiag.plain_data import clean, plain, plain_object
from gpudiag.report._sections.answers import recommended, to_do
from gpudiag.report._sections.unchecked import unassessed
from gpudiag.report.comparison.document import ComparisonDocument
from gpudiag.report.document import Document, VerdictEntry
from gpudiag.report.kinds.recommendations import gain_of
from gpudiag.rules._engine.rule import Rule
from gpudiag.rules._engine.verdict import Status

T = TypeVar("T")


def diagnosis(run: str, document: Document, *, whole: bool) -> DiagnosisResult:
    """The headline, the findings and what could not be assessed; with ``whole`` every check."""
    counts = plain_object(document.headline.counts)
    return DiagnosisResult(
        run=run,
        level=document.headline.level,
        headline=document.headline.sentences,
        counts={name: n for name, n in counts.items() if isinstance(n, int) and n},
        findings=tuple(_finding(document, one) for one in document.findings),
        not_assessed=tuple(
            NotAssessed(reason, " ".join(dict.fromkeys(one.remedy for one in several)), tuple(v.rule for v in several))
            for reason, several in unassessed(document).items()
        ),
        faults=tuple(str(fault) for fault in document.errors),
        checks=tuple(
            CheckResult(one.rule, one.name, one.status.value, one.summary or one.reason) for one in document.verdicts
        )
        if whole
        else (),
    )


def _finding(document: Document, found: VerdictEntry) -> FoundFinding:
    best = recommended(document, found.rule)
    return FoundFinding(
        id=found.rule,
        severity=found.severity.value,
        title=found.title,
        summary=found.summary,
        lost_gpu_h=found.lost_gpu_h,
        caused_by=found.caused_by,
        recommendation=best.id if best else None,
        advice=to_do(document, found),
    )


def check(rule: Rule) -> Explanation:
    """A check itself, whatever the run."""
    return Explanation(
        id=rule.id,
        kind="check",
        title=rule.checks,
        severity=rule.severity.value,
        summary=rule.title,
        thresholds=rule.thresholds,
        why=rule.why,
        refuted_by=rule.refuted_by,
        advice=rule.remedy,
    )


def verdict(run: str, document: Document, one: VerdictEntry) -> Explanation:
    """What a check concluded of the run."""
    best = recommended(document, one.rule)
    return Explanation(
        id=one.rule,
        kind="result",
        title=one.name,
        run=run,
        status=one.status.value,
        severity=one.severity.value if one.status is Status.FOUND else "",
        summary=one.summary,
        reason=one.reason,
        evidence={**one.where, **one.evidence},
        thresholds=one.thresholds,
        why=one.why,
        refuted_by=one.refuted_by,
        advice=one.remedy,
        recommendation=recommendation(best) if best else None,
    )


def recommended_for(run: str, one: Recommendation) -> Explanation:
    """A recommendation for the run."""
    return Explanation(
        id=one.id, kind="recommendation", title=one.title, run=run, summary=one.why, recommendation=recommendation(one)
    )


def recommendation(one: Recommendation) -> RecommendationResult:
    """A recommendation, its gain as its card says it."""
    return RecommendationResult(
        id=one.id,
        title=one.title,
        answers=one.rules,
        changes=tuple(_picked(ChangeResult, change) for change in one.changes),
        gain=gain_of(one),
        safety=one.safety,
        verify_first=one.verify_first,
        worked_if=tuple(_picked(Criterion, check) for check in one.verify),
        does_not_help_if=one.refute,
        undo=one.rollback,
        assumes=one.assumption,
    )


def comparison(baseline: str, experiment: str, document: ComparisonDocument) -> ComparisonResult:
    """A comparison and how the plan came out."""
    return ComparisonResult(
        baseline=baseline,
        experiment=experiment,
        verdict=document.verdict,
        headline=document.headline.sentences,
        reasons=tuple(one.fault for one in document.gate if one.check in document.reasons),
        quantities=tuple(_picked(ComparedQuantity, one) for one in document.quantities),
        plan=tuple(_picked(PlanOutcome, one) for one in document.plan),
    )


def forecast(run: str, document: ForecastDocument) -> ForecastResult:
    """What other numbers of trials at once would bring."""
    return ForecastResult(
        run=run,
        now=document.now.k,
        scenarios=tuple(
            ScenarioResult(
                k=one.k,
                gain=_estimate(one.gain),
                throughput_trials_h=_estimate(one.throughput_trials_h),
                p_overflow=_estimate(one.p_overflow),
                extrapolation=one.extrapolation,
                reason=one.reason,
            )
            for one in document.parallel
        ),
        backtest_passed=document.backtest.passed if document.backtest and document.backtest.tested else None,
        not_forecast=document.not_forecast,
    )


def _estimate(one: Estimate) -> EstimateResult:
    return EstimateResult(clean(one.value), clean(one.low), clean(one.high), one.unit)


def _picked(kind: Callable[..., T], one: object) -> T:
    """The fields of a result that the entry of a document has under the same names."""
    return kind(**{field.name: plain(getattr(one, field.name)) for field in fields(kind)})  # type: ignore[arg-type]
