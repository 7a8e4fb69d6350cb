"""The order of findings: what cost most first, symptoms after their cause."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from gpudiag.rules._engine.verdict import Severity, Status, Verdict

LARGE_PCT = 10.0
"""Share of the workers' time from which on it goes before what nobody knows the cost of (a default without a published
source, as of repeats that are a warning)."""


def ranked_findings(verdicts: Iterable[Verdict]) -> tuple[Verdict, ...]:
    """The findings among verdicts: by GPU-hours lost, then severity, then a large share of the workers' time lost, then
    their order; mere notes last, and first what is critical though nobody can tell its cost. A symptom stands directly
    after its cause, and a cause where the worst of its symptoms would stand.
    """
    found = [verdict for verdict in verdicts if verdict.status is Status.FOUND]
    return _symptoms_after_causes(sorted(found, key=_urgency))


def _urgency(verdict: Verdict) -> tuple[bool, float, int, float]:
    unknown = math.inf if verdict.severity is Severity.CRITICAL else 0.0
    gpu_h, time_pct = _known(verdict.lost_gpu_h, unknown), _known(verdict.lost_time_pct, 0.0)
    large_pct = time_pct if time_pct >= LARGE_PCT else 0.0
    return verdict.severity is Severity.NOTE, -gpu_h, verdict.severity.rank, -large_pct


def _known(cost: float | None, unknown: float) -> float:
    return cost if cost is not None and math.isfinite(cost) else unknown


def _symptoms_after_causes(found: Sequence[Verdict]) -> tuple[Verdict, ...]:
    by_rule = {verdict.rule: verdict for verdict in found}
    placed: dict[str, Verdict] = {}

    def place(verdict: Verdict) -> None:
        placed[verdict.rule] = verdict
        for symptom in found:
            if symptom.caused_by == verdict.rule and symptom.rule not in placed:
                place(symptom)

    for verdict in found:
        root, seen = verdict, {verdict.rule}
        while root.caused_by in by_rule and root.caused_by not in seen:
            root = by_rule[root.caused_by]
            seen.add(root.rule)
        if root.rule not in placed:
            place(root)
    return tuple(placed.values())
