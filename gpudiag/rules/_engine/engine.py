"""The engine: a rule is a function over one profile; it gives exactly one verdict per run.

    @rule(
        measure=measure_utilization, severity="critical", title="A GPU was never used", remedy="...",
        says="{gpus} never rose above {max_util_pct} utilization in the {observed_s} observed.",
    )
    def gpu_unused(use: UtilizationProfile, *, max_util_pct: float = 1.0) -> Evidence | None:
        \"\"\"Why it matters. Source of the threshold.\"\"\"

The function name becomes the id (``gpu-unused``); its keyword-only defaults are its thresholds, so
run.toml, the command line, the report and the documentation cannot drift from the code. A rule
fires only on a true comparison, so NaN cannot fire it.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gpudiag.errors import ConfigError, NotMeasurable, in_words, nearest
from gpudiag.faults import REPORT, Failed, Fault, attempt
from gpudiag.rules._engine.templates import Given, Sentence, template
from gpudiag.shown import Shown
from gpudiag.units import unit_of

if TYPE_CHECKING:
    import pandas as pd

    from gpudiag.analysis import Analysis
    from gpudiag.run import Run

MIN_COVERAGE_PCT = 80.0
"""Part of the data can prove a fault, never health: CLEAR needs this coverage (jobstats' practice)."""
MIN_OBSERVED_S = 60.0
MIN_SAMPLES = 10
"""Nor can a glance: CLEAR on telemetry needs this much of some GPU (defaults without a published source)."""
TOO_SHORT = "Nothing was found, but only {observed_s} were observed; {needed_s} is needed."
TOO_FEW = "Nothing was found, but only {n_samples:sample} were observed; {n_needed} are needed."
TOO_LITTLE = (
    "Nothing was found, but ",
    Given("known", "only {coverage_pct:exact}", "an unknown part"),
    " of the run was observed; {needed_pct} is needed to say that nothing is wrong.",
)
MIN_EXPLAINED = 0.5
"""A cause explains at least this part of the GPU-hours that its symptom lost (a default without a published source)."""


class Status(str, Enum):
    """What a rule concluded."""

    FOUND = "FOUND"
    CLEAR = "CLEAR"
    NOT_ASSESSED = "NOT_ASSESSED"
    NOT_APPLICABLE = "NOT_APPLICABLE"
    SUPPRESSED = "SUPPRESSED"
    """Found, and known: an entry of gpudiag.toml says why it need not be told."""
    ERROR = "ERROR"
    """The check itself failed, by a fault of gpudiag: nothing is known."""


class Severity(str, Enum):
    """How much a finding matters, worst first."""

    CRITICAL = "critical"
    WARNING = "warning"
    NOTE = "note"

    @classmethod
    def _missing_(cls, value: object) -> Severity | None:
        return cls.NOTE if value == "info" else None  # its former name

    @property
    def rank(self) -> int:
        """0 for the worst."""
        return list(Severity).index(self)


@dataclass(frozen=True)
class Evidence:
    """What a firing rule returns.

    ``summary``: one sentence with its numbers, of a rule that has no sentence of its own (``says``). ``values``:
    numbers by name, unit in the name. ``where``: gpu, trial or time span by name. ``extra``: what only the sentence
    uses, in no other output; it goes before a value of the same name. ``lost_gpu_h``: GPU-hours this cost, None where
    it cannot be told. ``margin``: how far past the threshold, in the threshold's unit.
    ``severity`` overrides the rule's own where the case is milder or worse. ``held_gpu_h``: GPU-hours in which the
    fault was seen, which bound what it can explain where the loss is unknown.
    """

    summary: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    where: Mapping[str, Any] = field(default_factory=dict)
    lost_gpu_h: float | None = None
    margin: float | None = None
    severity: Severity | None = None
    held_gpu_h: float | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def sentence_values(self) -> dict[str, Any]:
        """What a sentence may name: values, places, ``gpus`` (each GPU of ``where``) and extras."""
        return {"gpus": _split(self.where.get("gpu", "")), **self.where, **self.values, **self.extra}


def worst_gpu(
    worst: object,
    found: pd.DataFrame,
    names: Iterable[str],
    *,
    margin: float | None,
    lost_gpu_h: float | None = None,
    severity: Severity | None = None,
    held_gpu_h: float | None = None,
    extra: Mapping[str, Any] | None = None,
) -> Evidence:
    """Evidence by the worst of the GPUs that were found, the rows of a table: its figures, the place of all.

    The sentence may name each column of that row, the worst as ``gpu`` and all as ``gpus``.
    """
    row = found.loc[worst]
    gpus = [str(name) for name in found.index]
    return Evidence(
        values={name: float(row[name]) for name in names},
        where={"gpu": ", ".join(gpus)},
        lost_gpu_h=lost_gpu_h,
        margin=margin,
        severity=severity,
        held_gpu_h=held_gpu_h,
        extra={**row, "gpu": str(worst), "several": len(gpus) > 1, **(extra or {})},
    )


def need_fast_samples(period_s: float, most_s: float) -> None:
    """Raise NotMeasurable where samples lie too far apart to see the waits of a GPU; an unknown period is no reason."""
    if period_s > most_s:
        raise NotMeasurable(
            "A sample every {period_s} cannot show waits of seconds or minutes; one every {most_s} or faster is "
            "needed.",
            "Sample every 1 to 5 s (nvidia-smi -l 1).",
            period_s=period_s,
            most_s=most_s,
        )


class NotApplicable(Exception):
    """Raised by a rule whose question does not arise for this run (one GPU cannot be imbalanced).

    With values by name the reason is a template over them.
    """

    def __init__(self, reason: str, /, **values: Any) -> None:
        super().__init__(reason)
        self.values = values

    def __str__(self) -> str:
        return in_words(self.args[0], self.values)


@dataclass(frozen=True, repr=False)
class Verdict(Shown):
    """What one rule concluded about one run. ``reason`` says why it is not FOUND or CLEAR; of a finding that
    is SUPPRESSED it is the reason given in gpudiag.toml.

    ``caused_by``: id of another finding of the same run of which this one is a symptom. ``fault``: of a verdict that
    is ERROR.
    """

    rule: str
    title: str
    status: Status
    severity: Severity
    summary: str = ""
    reason: str = ""
    remedy: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    thresholds: Mapping[str, float] = field(default_factory=dict)
    where: Mapping[str, Any] = field(default_factory=dict)
    lost_gpu_h: float | None = None
    margin: float | None = None
    held_gpu_h: float | None = None
    caused_by: str | None = None
    fault: Fault | None = None

    def to_frame(self) -> pd.DataFrame:
        """Place, evidence and thresholds: kind, name, value, unit."""
        import pandas as pd

        parts = (("where", self.where), ("evidence", self.evidence), ("threshold", self.thresholds))
        rows = [(kind, name, value, unit_of(name)) for kind, values in parts for name, value in values.items()]
        return pd.DataFrame(rows, columns=["kind", "name", "value", "unit"])


class Verdicts(Shown, tuple[Verdict, ...]):
    """Verdicts in their order: a tuple that shows itself as a table, and ``findings["gpu-unused"]`` by rule."""

    def __getitem__(self, key: Any) -> Any:
        """The verdict at a place or of a rule. Raises KeyError that names the rules there are."""
        if not isinstance(key, str):
            found = super().__getitem__(key)
            return Verdicts(found) if isinstance(key, slice) else found
        found = next((verdict for verdict in self if verdict.rule == key), None)
        if found is None:
            rules = [verdict.rule for verdict in self]
            raise KeyError(f"no verdict of a rule '{key}' here; {nearest(key, rules) if rules else 'there is none'}")
        return found

    def to_frame(self) -> pd.DataFrame:
        """A row a verdict: rule, status, severity, title, summary, reason, lost_gpu_h, margin, caused_by."""
        import pandas as pd

        columns = ["rule", "status", "severity", "title", "summary", "reason", "lost_gpu_h", "margin", "caused_by"]
        frame = pd.DataFrame([[_plain_value(getattr(v, name)) for name in columns] for v in self], columns=columns)
        return frame.astype({"lost_gpu_h": float, "margin": float})


def _plain_value(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value


@dataclass(frozen=True)
class Rule:
    """One question to one profile.

    ``says``: the sentence of its finding. ``explained_by``: rules whose finding would be the cause of this one's.
    """

    id: str
    title: str
    topic: str
    measure: Callable[[Run], Any]
    judge: Callable[..., Evidence | None]
    severity: Severity
    remedy: str
    says: Sentence = ""
    refuted_by: str = ""
    explained_by: tuple[str, ...] = ()

    @cached_property
    def thresholds(self) -> dict[str, float]:
        """Defaults of the keyword-only parameters: the only place a threshold is written."""
        parameters = inspect.signature(self.judge).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}

    @property
    def why(self) -> str:
        """The rule's docstring: why it matters and where its thresholds come from."""
        return inspect.getdoc(self.judge) or ""

    def summary(self, evidence: Evidence) -> str:
        """The sentence of a finding, in words."""
        values = evidence.sentence_values()
        return evidence.summary or in_words(template(self.says, values), values)


def rule(
    *,
    measure: Callable[[Run], Any],
    severity: str,
    title: str,
    remedy: str,
    says: Sentence = "",
    refuted_by: str = "",
    explained_by: tuple[str, ...] = (),
) -> Callable[[Callable[..., Evidence | None]], Rule]:
    """Make a function a Rule; its name, docstring and keyword-only defaults are used."""

    def make(judge: Callable[..., Evidence | None]) -> Rule:
        name = judge.__name__.replace("_", "-")
        topic = judge.__module__.rsplit(".", 1)[-1]
        return Rule(name, title, topic, measure, judge, Severity(severity), remedy, says, refuted_by, explained_by)

    return make


def check_thresholds(
    rules: Iterable[Rule],
    overrides: Mapping[str, Mapping[str, float]],
    base: Mapping[str, Mapping[str, float]] | None = None,
) -> dict[str, dict[str, float]]:
    """Effective thresholds by rule id: the rules' own, those of ``base``, which were checked before, and the overrides.

    Raises ConfigError before anything is measured.
    """
    by_id = {r.id: r for r in rules}
    for rule_id, values in overrides.items():
        if rule_id not in by_id:
            raise ConfigError(f"there is no rule '{rule_id}'; {nearest(rule_id, by_id)}")
        for name, value in values.items():
            _check_value(by_id[rule_id], name, value)
    below = base or {}
    return {r.id: {**r.thresholds, **below.get(r.id, {}), **overrides.get(r.id, {})} for r in by_id.values()}


def _check_value(r: Rule, name: str, value: float) -> None:
    if name not in r.thresholds:
        if not r.thresholds:
            raise ConfigError(f"rule '{r.id}' has no thresholds, but got {name}.")
        raise ConfigError(f"rule '{r.id}' has no threshold '{name}'; {nearest(name, r.thresholds)}")
    high = 100.0 if name.endswith("_pct") else float("inf")
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (number and math.isfinite(value) and 0 <= value <= high):
        limits = "between 0 and 100" if high == 100.0 else "a finite number of at least 0"
        raise ConfigError(f"threshold '{r.id}.{name}' must be {limits}, but got {value!r}.")


def judge_all(
    rules: Iterable[Rule], analysis: Analysis, thresholds: Mapping[str, Mapping[str, float]]
) -> tuple[Verdict, ...]:
    """One verdict per rule, in the order of the rules; findings that explain each other are linked."""
    rules = tuple(rules)
    verdicts = [_judge(r, analysis, thresholds[r.id]) for r in rules]
    found = {v.rule: v for v in verdicts if v.status is Status.FOUND}
    return tuple(
        replace(v, caused_by=_cause(r, v, found)) if v.rule in found else v
        for r, v in zip(rules, verdicts, strict=True)
    )


def _cause(r: Rule, verdict: Verdict, found: Mapping[str, Verdict]) -> str | None:
    """The first rule of ``explained_by`` that fired on a GPU of this finding's, where both name GPUs, and that is
    large enough to explain it.
    """
    own = _gpus(verdict)
    for name in r.explained_by:
        if name not in found or not _large_enough(found[name], verdict):
            continue
        if not own or not _gpus(found[name]) or own & _gpus(found[name]):
            return name
    return None


def _large_enough(cause: Verdict, symptom: Verdict) -> bool:
    """Whether the cause lost, or was seen in, half of the GPU-hours of the symptom; true where either is unknown."""
    size = cause.held_gpu_h if cause.lost_gpu_h is None else cause.lost_gpu_h
    if size is None or symptom.lost_gpu_h is None:
        return True
    return size >= MIN_EXPLAINED * symptom.lost_gpu_h


def worst_of(findings: Iterable[tuple[str, str, str | None]]) -> int | None:
    """The place of the finding to tell first, of (rule, severity, caused_by) in their order: the first that is more
    than a note, or else the first; of a symptom its cause. None without findings.
    """
    listed = tuple(findings)
    if not listed:
        return None
    places = {name: place for place, (name, _, _) in enumerate(listed)}
    first = next((place for place, (_, severity, _) in enumerate(listed) if severity != "note"), 0)
    seen = set()
    while (cause := listed[first][2]) in places and first not in seen:
        seen.add(first)
        first = places[cause]
    return first


def _gpus(verdict: Verdict) -> set[str]:
    return set(_split(verdict.where.get("gpu", "")))


def _split(gpus: object) -> list[str]:
    return [gpu for gpu in str(gpus).split(", ") if gpu]


def _judge(r: Rule, analysis: Analysis, thresholds: Mapping[str, float]) -> Verdict:
    blank = Verdict(r.id, r.title, Status.CLEAR, r.severity, remedy=r.remedy, thresholds=dict(thresholds))
    made = attempt(f"rule {r.id}", lambda: _concluded(r, analysis, thresholds, blank))
    return _error(blank, made, r) if isinstance(made, Fault) else made


def _error(blank: Verdict, fault: Fault, r: Rule) -> Verdict:
    module = r.judge.__module__
    remedy = (
        REPORT if module.startswith("gpudiag.") else f"The rule is of module {module}, not of gpudiag: mend it there."
    )
    return replace(blank, status=Status.ERROR, reason=fault.reason, remedy=remedy, fault=fault)


def _concluded(r: Rule, analysis: Analysis, thresholds: Mapping[str, float], blank: Verdict) -> Verdict:
    try:
        profile = analysis[r.measure]
        evidence = r.judge(profile, **thresholds)
    except Failed as failed:
        return _error(blank, failed.fault, r)
    except NotMeasurable as missing:
        return replace(blank, status=Status.NOT_ASSESSED, reason=missing.reason, remedy=missing.remedy)
    except NotApplicable as why:
        return replace(blank, status=Status.NOT_APPLICABLE, reason=str(why))
    if evidence is not None:
        return replace(
            blank,
            status=Status.FOUND,
            severity=evidence.severity or r.severity,
            summary=r.summary(evidence),
            evidence=dict(evidence.values),
            where=dict(evidence.where),
            lost_gpu_h=evidence.lost_gpu_h,
            margin=evidence.margin,
            held_gpu_h=evidence.held_gpu_h,
        )
    if short := _too_short(profile, analysis):
        return replace(blank, status=Status.NOT_ASSESSED, reason=short, remedy="Record for longer.")
    coverage = getattr(profile, "coverage_pct", 100.0)
    if not coverage >= MIN_COVERAGE_PCT:
        values = {"known": coverage == coverage, "coverage_pct": coverage, "needed_pct": MIN_COVERAGE_PCT}
        reason = in_words(template(TOO_LITTLE, values), values)
        return replace(blank, status=Status.NOT_ASSESSED, reason=reason, remedy="Record the whole run without gaps.")
    return blank


def _too_short(profile: Any, analysis: Analysis) -> str:
    """Why a profile of the GPUs holds too little to say that nothing is wrong; empty where it holds enough."""
    from gpudiag.measures.sampling import measure_sampling

    sampling = analysis.get(measure_sampling) if hasattr(profile, "per_gpu") else None
    if sampling is None:
        return ""
    seconds, n = sampling.per_gpu.reindex(columns=["observed_s", "n_samples"]).astype(float).max()
    if seconds < MIN_OBSERVED_S:
        return in_words(TOO_SHORT, {"observed_s": seconds, "needed_s": MIN_OBSERVED_S})
    if n < MIN_SAMPLES:
        return in_words(TOO_FEW, {"n_samples": n, "n_needed": MIN_SAMPLES})
    return ""
