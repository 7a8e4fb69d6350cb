"""The order of findings: what cost most first, symptoms after their cause."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from gpudiag.rules._engine.verdict import Severity, Status, Verdict


def ranked_findings(verdicts: Iterable[Verdict]) -> tuple[Verdict, ...]:
    """The findings among verdicts: by GPU-hours lost, then severity, then hours of workers lost, then their order; mere
    notes last, and first what is critical though nobody can tell its cost. A symptom stands directly after its cause,
    and a cause where the worst of its symptoms would stand.
    """
    found = [verdict for verdict in verdicts if verdict.status is Status.FOUND]
    return _symptoms_after_causes(sorted(found, key=_urgency))


def _urgency(verdict: Verdict) -> tuple[bool, float, int, float]:
    unknown = math.inf if verdict.severity is Severity.CRITICAL else 0.0
    gpu_h, worker_h = _known(verdict.lost_gpu_h, unknown), _known(verdict.lost_worker_h, 0.0)
    return verdict.severity is Severity.NOTE, -gpu_h, verdict.severity.rank, -worker_h


def _known(hours: float | None, unknown: float) -> float:
    return hours if hours is not None and math.isfinite(hours) else unknown


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
