"""A rule: a function over one profile, which gives exactly one verdict per run.

    @rule(
        measure=measure_utilization, severity="critical", title="A GPU was never used", checks="Unused GPUs",
        remedy="...", says="{gpus} never rose above {max_util_pct} utilization in the {observed_s} observed.",
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
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gpudiag.errors import ConfigError, in_words, nearest
from gpudiag.rules._engine.elsewhere import known, named, sendable
from gpudiag.rules._engine.evidence import Evidence, Outcome
from gpudiag.rules._engine.references import without_references
from gpudiag.rules._engine.templates import Sentence, template
from gpudiag.rules._engine.verdict import Severity
from gpudiag.values import is_number

if TYPE_CHECKING:
    from gpudiag._run.tables import Whole
    from gpudiag.run import Run


@dataclass(frozen=True)
class Rule:
    """One check of one profile.

    ``title``: the headline of its finding. ``checks``: what it looks at, by which it is listed where nothing was found.
    ``says``: the sentence of its finding. ``explained_by``: rules whose finding would be the cause of this one's;
    ``remedy_by_cause``: what to do in place of ``remedy`` where one of these is. ``needs_all``: what it says
    nothing of where trials of these were selected away.
    """

    id: str
    title: str
    checks: str
    topic: str
    measure: Callable[[Run], Any]
    judge: Callable[..., Outcome]
    severity: Severity
    remedy: str
    says: Sentence = ""
    refuted_by: str = ""
    explained_by: tuple[str, ...] = ()
    needs_all: tuple[Whole, ...] = ()
    remedy_by_cause: Mapping[str, str] = field(default_factory=dict, hash=False)

    @cached_property
    def thresholds(self) -> dict[str, float]:
        """Defaults of the keyword-only parameters: the only place a threshold is written."""
        parameters = inspect.signature(self.judge).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}

    @property
    def why(self) -> str:
        """Why it matters and where its thresholds come from: the docstring without references to docs/methods.md."""
        return without_references(self.docstring)

    @property
    def docstring(self) -> str:
        """The docstring of its function."""
        return inspect.getdoc(self.judge) or ""

    def summary(self, evidence: Evidence, show_in: str = "UTC") -> str:
        """The sentence of a finding, in words, with times in that zone."""
        values = evidence.sentence_values()
        return evidence.summary or in_words(template(self.says, values), values, show_in)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        if known(self.judge) is self:  # the decorator put the rule where its function would stand
            return named, (self.judge.__module__, self.judge.__qualname__)
        parts = (getattr(self, one.name) for one in fields(self))
        return Rule, tuple(sendable(part) if callable(part) else part for part in parts)


def rule(
    *,
    measure: Callable[[Run], Any],
    severity: str,
    title: str,
    remedy: str,
    checks: str = "",
    says: Sentence = "",
    refuted_by: str = "",
    explained_by: tuple[str, ...] = (),
    needs_all: tuple[Whole, ...] = (),
    remedy_by_cause: Mapping[str, str] | None = None,
) -> Callable[[Callable[..., Outcome]], Rule]:
    """Make a function a Rule; its name, docstring and keyword-only defaults are used.

    Without ``checks`` the check is listed by the function's name, in words.
    """

    def make(judge: Callable[..., Outcome]) -> Rule:
        name = judge.__name__.replace("_", "-")
        topic = judge.__module__.rsplit(".", 1)[-1]
        return Rule(
            id=name,
            title=title,
            checks=checks or name.replace("-", " ").capitalize(),
            topic=topic,
            measure=measure,
            judge=judge,
            severity=Severity(severity),
            remedy=remedy,
            says=says,
            refuted_by=refuted_by,
            explained_by=explained_by,
            needs_all=needs_all,
            remedy_by_cause=remedy_by_cause or {},
        )

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
    if not (is_number(value) and math.isfinite(value) and 0 <= value <= high):
        limits = "between 0 and 100" if high == 100.0 else "a finite number of at least 0"
        raise ConfigError(f"threshold '{r.id}.{name}' must be {limits}, but got {value!r}.")
