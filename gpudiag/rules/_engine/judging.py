"""Every rule asked of one run: a verdict each, and which finding is a symptom of which."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gpudiag.errors import NotGiven, NotMeasurable, in_words
from gpudiag.faults import Failed, Fault, attempt
from gpudiag.measures._gpu.tenants import tenants
from gpudiag.measures.base import ALL_STUDIES, need_all
from gpudiag.rules._engine.evidence import NotApplicable, Passed, gpu_names
from gpudiag.rules._engine.rule import Rule
from gpudiag.rules._engine.templates import Given, template
from gpudiag.rules._engine.verdict import Status, Verdict

if TYPE_CHECKING:
    from gpudiag.analysis import Analysis

MIN_COVERAGE_PCT = 80.0
"""Part of the data can prove a fault, never health: OK needs this coverage (jobstats' practice)."""
MIN_OBSERVED_S = 60.0
MIN_SAMPLES = 10
"""Nor can a glance: OK on telemetry needs this much of some GPU (defaults without a published source)."""
RECORD_COMMAND = "gpudiag record --host --processes -o gpu.csv -- COMMAND"
"""Records all that the checks read of a host beside its GPUs: the one recipe for missing telemetry of the CPU."""
LONGER = "Record for longer, ten minutes of work at least: gpudiag record -o gpu.csv -- COMMAND."
COMPLETE = "Record the whole run, without gaps or missing readings."
TOO_SHORT = "Nothing was found, but only {observed_s} were observed; {needed_s} is needed."
TOO_FEW = "Nothing was found in only {n_samples:sample}; {n_needed} are needed."
TOO_LITTLE = (
    "Nothing was found, but ",
    Given("known", "only {coverage_pct:exact}", "an unknown part"),
    " of the run was observed; {needed_pct} is needed to say that nothing is wrong.",
)
OF_USE = ("utilization", "idleness", "balance", "stalls", "shift")
"""Topics on how a GPU was used: of one that the job did not have they find no fault of it."""
BESIDE = ("gpu-idle-beside-busy", "gpu-imbalance", "gpu-straggler")
"""Rules that hold a GPU against others."""
MIN_EXPLAINED = 0.5
"""A cause explains at least this part of the GPU-hours that its symptom lost (a default without a published source)."""


def judge_all(
    rules: Iterable[Rule], analysis: Analysis, thresholds: Mapping[str, Mapping[str, float]]
) -> tuple[Verdict, ...]:
    """One verdict per rule, in the order of the rules; findings that explain each other are linked."""
    rules = tuple(rules)
    verdicts = [_judge(r, analysis, thresholds[r.id]) for r in rules]
    found = {v.rule: v for v in verdicts if v.status is Status.FOUND}
    return tuple(_linked(r, v, found) if v.rule in found else v for r, v in zip(rules, verdicts, strict=True))


def _linked(r: Rule, verdict: Verdict, found: Mapping[str, Verdict]) -> Verdict:
    """The finding with its cause, and with what is to be done where that is the cause."""
    cause = _cause(r, verdict, found)
    return replace(verdict, caused_by=cause, remedy=r.remedy_by_cause.get(cause or "", verdict.remedy))


def _cause(r: Rule, verdict: Verdict, found: Mapping[str, Verdict]) -> str | None:
    """The first rule of ``explained_by`` that fired on a GPU of this finding's, where both name GPUs, and that is
    large enough to explain it.
    """
    own = _gpus(verdict)
    for name in r.explained_by:
        if name not in found or name in verdict.not_caused_by or verdict.rule in found[name].not_cause_of:
            continue
        if not _large_enough(found[name], verdict):
            continue
        if not own or not _gpus(found[name]) or own & _gpus(found[name]):
            return name
    return None


def _large_enough(cause: Verdict, symptom: Verdict) -> bool:
    """Whether the cause lost, or may have held, half of the GPU-hours of the symptom; true where either is unknown."""
    sizes = [hours for hours in (cause.lost_gpu_h, cause.held_gpu_h) if hours is not None]
    if not sizes or symptom.lost_gpu_h is None:
        return True
    return max(sizes) >= MIN_EXPLAINED * symptom.lost_gpu_h


def _gpus(verdict: Verdict) -> set[str]:
    return set(gpu_names(verdict.where.get("gpu", "")))


def _judge(r: Rule, analysis: Analysis, thresholds: Mapping[str, float]) -> Verdict:
    blank = Verdict(r.id, r.title, Status.OK, r.severity, checks=r.checks, remedy=r.remedy, thresholds=dict(thresholds))
    made = attempt(f"rule {r.id}", lambda: _concluded(r, analysis, thresholds, blank), r.judge.__module__)
    return _error(blank, made) if isinstance(made, Fault) else made


def _error(blank: Verdict, fault: Fault) -> Verdict:
    return replace(blank, status=Status.ERROR, reason=fault.reason, remedy=fault.remedy, fault=fault)


def _concluded(r: Rule, analysis: Analysis, thresholds: Mapping[str, float], blank: Verdict) -> Verdict:
    show_in = analysis.run.info.timezone
    try:
        need_all(analysis.run, *r.needs_all)
        profile = analysis[r.measure]
        concluded = r.judge(profile, **thresholds)
    except Failed as failed:
        return _error(blank, failed.fault)
    except NotGiven as absent:
        return replace(blank, status=Status.NOT_APPLICABLE, reason=absent.shown(show_in)[0])
    except NotMeasurable as missing:
        reason, remedy = missing.shown(show_in)
        return replace(blank, status=Status.NOT_ASSESSED, reason=reason, remedy=remedy)
    except NotApplicable as why:
        return replace(blank, status=Status.NOT_APPLICABLE, reason=why.shown(show_in))
    passed, evidence = (concluded, None) if isinstance(concluded, Passed) else (None, concluded)
    if evidence is not None and r.topic in OF_USE:
        own = tenants(analysis.run)
        if own.keep_apart(gpu_names(evidence.where.get("gpu", "")), beside=r.id in BESIDE):
            return replace(blank, status=Status.NOT_ASSESSED, reason=str(own.why), remedy=str(own.remedy))
    short = _too_short(profile, analysis) if evidence is None or evidence.absence else ""
    if evidence is not None and not short:
        return replace(
            blank,
            status=Status.FOUND,
            title=evidence.title or r.title,
            severity=evidence.severity or r.severity,
            summary=r.summary(evidence, show_in),
            remedy=evidence.remedy or r.remedy,
            evidence=dict(evidence.values),
            where=dict(evidence.where),
            lost_gpu_h=evidence.lost_gpu_h,
            margin=evidence.margin,
            held_gpu_h=evidence.held_gpu_h,
            lost_time_pct=evidence.lost_time_pct,
            not_caused_by=evidence.not_caused_by,
            not_cause_of=evidence.not_cause_of,
        )
    if short:
        return replace(blank, status=Status.NOT_ASSESSED, reason=short, remedy=LONGER)
    coverage = getattr(profile, "coverage_pct", 100.0)
    if not coverage >= MIN_COVERAGE_PCT:
        values = {"known": coverage == coverage, "coverage_pct": coverage, "needed_pct": MIN_COVERAGE_PCT}
        reason = in_words(template(TOO_LITTLE, values), values)
        remedy = ALL_STUDIES if analysis.run.info.others_us else COMPLETE
        return replace(blank, status=Status.NOT_ASSESSED, reason=reason, remedy=remedy)
    said = passed.summary(thresholds, show_in) if passed is not None else ""
    return replace(blank, summary=said)


def _too_short(profile: Any, analysis: Analysis) -> str:
    """Why a profile of the GPUs holds too little to say that nothing is wrong; empty where it holds enough."""
    from gpudiag.measures.sampling import measure_sampling

    sampling = analysis.get(measure_sampling) if hasattr(profile, "per_gpu") else None
    if sampling is None:
        return ""
    seconds, n = (float(sampling.per_gpu[name].max()) for name in ("observed_s", "n_samples"))
    if seconds < MIN_OBSERVED_S:
        return in_words(TOO_SHORT, {"observed_s": seconds, "needed_s": MIN_OBSERVED_S})
    if n < MIN_SAMPLES:
        return in_words(TOO_FEW, {"n_samples": n, "n_needed": MIN_SAMPLES})
    return ""
