"""What each finding of a run cost, so that findings of many runs can be ranked together."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from gpudiag.measures.base import profile_of
from gpudiag.measures.costs import CostsProfile
from gpudiag.measures.failures import FailuresProfile
from gpudiag.report.fleet.document import Cause, FailedTrials
from gpudiag.report.format import safe

if TYPE_CHECKING:
    from gpudiag.diagnosis import Diagnosis

KINDS = {
    "failures-out-of-memory": "oom",
    "failures-device-assert": "device_assert",
    "failures-not-finite": "nan",
    "failures-host-killed": "host_killed",
}
"""Findings on one kind of failed trials: what these held GPUs for bought nothing."""


def priced(diagnosis: Diagnosis) -> tuple[Cause, ...]:
    """The findings in their order with what they cost at least, None where nobody knows.

    A finding costs what its rule says; on a kind of failures, the GPU time of these trials. A cause of which nobody
    knows the cost costs at least what the costliest of its symptoms does; a known one is not raised to theirs, since a
    symptom may have other causes as well.
    """
    failed = _failed_gpu_h(diagnosis)
    out = [
        Cause(one.rule, safe(one.title), one.severity.value, failed.get(one.rule, one.lost_gpu_h), one.caused_by)
        for one in diagnosis.findings
    ]
    return tuple(
        replace(one, lost_gpu_h=_of_symptoms(one, out)) if one.caused_by is None and one.lost_gpu_h is None else one
        for one in out
    )


def costliest(causes: tuple[Cause, ...]) -> Cause | None:
    """The cause that cost most, no symptom; where no cost is known, the first."""
    roots = [one for one in causes if one.caused_by is None]
    known = [one for one in roots if one.lost_gpu_h]
    return max(known, key=lambda one: one.lost_gpu_h or 0.0) if known else next(iter(roots), None)


def _of_symptoms(cause: Cause, held: list[Cause]) -> float | None:
    """The greatest known cost of what follows from a cause, directly or not."""
    family = {cause.rule}
    while more := {one.rule for one in held if one.caused_by in family} - family:
        family |= more
    known = [one.lost_gpu_h for one in held if one.rule in family and one.lost_gpu_h is not None]
    return max(known, default=None)


def failed_trials(diagnosis: Diagnosis) -> tuple[FailedTrials, ...]:
    """Failed trials by kind, the most first; GPU time only where that of failed trials is known as a whole."""
    failures = profile_of(diagnosis.profiles, FailuresProfile)
    if failures is None:
        return ()
    costs = diagnosis.document.costs
    whole = any(one.outcome == "FAIL" and one.gpu_s is not None for one in costs.outcomes) if costs else False
    seconds = _failed_gpu_s(diagnosis) if whole else {}
    counts = failures.failures["kind"].value_counts()
    held = [FailedTrials(str(kind), int(n), seconds.get(str(kind))) for kind, n in counts.items()]
    return tuple(sorted(held, key=lambda one: (-one.n_trials, one.kind)))


def _failed_gpu_h(diagnosis: Diagnosis) -> dict[str, float]:
    """GPU-hours of the failed trials of each kind, by rule; without kinds of which the GPU time of none is known."""
    by_kind = _failed_gpu_s(diagnosis)
    return {rule: by_kind[kind] / 3600 for rule, kind in KINDS.items() if kind in by_kind}


def _failed_gpu_s(diagnosis: Diagnosis) -> dict[str, float]:
    """GPU-seconds of the failed trials by kind, as far as they are known."""
    failures = profile_of(diagnosis.profiles, FailuresProfile)
    costs = profile_of(diagnosis.profiles, CostsProfile)
    if failures is None or costs is None:
        return {}
    keys = ["study", "trial"]
    joined = failures.failures[[*keys, "kind"]].merge(costs.trials[[*keys, "gpu_s"]], on=keys).dropna(subset="gpu_s")
    return {str(kind): math.fsum(part["gpu_s"]) for kind, part in joined.groupby("kind")}
