"""The GPU time that a finding of unknown cost is about, which is no estimate of that cost."""

from __future__ import annotations

from gpudiag.report.fleet.document import Cause, RunRow, Touched

PRUNED = ("pruning-rate-high", "pruned-before-possible", "pruned-late", "pruned-too-early")
FAILED = (
    "failure-rate-high",
    "failures-out-of-memory",
    "failures-device-assert",
    "failures-not-finite",
    "failures-host-killed",
    "failures-poisoned",
    "failures-after-full-memory",
    "failures-bimodal",
    "failures-by-number-at-once",
    "failures-share-parameter",
)
RECORD = (
    "clocks-apart",
    "clocks-differ",
    "power-implausible",
    "trials-abandoned",
    "stated-counts-differ",
    "sampling-coverage",
    "sampling-gaps",
    "sensor-stuck",
    "sampler-slows-down",
    "placeholder-columns",
    "identity-mixed",
    "input-unread",
)
"""Findings about what was recorded: they cost knowledge, no GPU time."""


def what_is_touched(rule: str) -> Touched:
    """The part of a run that a finding of this rule is about; '' where it is the record."""
    if rule in RECORD:
        return ""
    return "pruned trials" if rule in PRUNED else "failed trials" if rule in FAILED else "runs"


def touched_gpu_h(row: RunRow, cause: Cause) -> float | None:
    """GPU-hours of that part, where the finding is no symptom and its cost is unknown; None where nobody knows."""
    if cause.lost_gpu_h is not None or cause.caused_by is not None:
        return None
    held = {"pruned trials": row.pruned_gpu_s, "failed trials": row.failed_gpu_s, "runs": row.gpu_s}
    seconds = held.get(what_is_touched(cause.rule))
    return None if seconds is None else seconds / 3600
