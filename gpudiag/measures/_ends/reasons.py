"""Why a scheduler ended a job, by the line that it wrote."""

from __future__ import annotations

from gpudiag.patterns import late

REASONS = {
    "time_limit": r"DUE TO TIME LIMIT|job killed: (?:walltime|cput)\b|TERM_(?:RUN|CPU|PROCESS)\w*LIMIT",
    "node_failure": r"(?i:\bnode (?:fail|down)|UNCORRECTABLE MEMORY)",
    "requeued": r"DUE TO JOB REQUEUE|TERM_REQUEUE",
    "preempted": r"DUE TO PREEMPT|TERM_(?:PREEMPT|BUCKET)|\bJob was evicted\b",
    "stuck": r"DUE TO JOB NOT ENDING WITH SIGNALS",
    "canceled": r"CANCELLED AT \S+\s*(?:\*|$)|TERM_(?:FORCE_)?(?:OWNER|ADMIN)|: Terminated\b",
}
"""Of Slurm, PBS, LSF and HTCondor. ``stuck``: its processes did not end when they were killed."""
OF_OTHERS = ("requeued", "preempted", "canceled")
"""No fault of the training nor of its limits: the scheduler made room, or somebody canceled it."""
_COMPILED = {name: late(pattern) for name, pattern in REASONS.items()}


def reason_of(line: str) -> str:
    """One of REASONS; empty for a reason that is none of them."""
    return next((name for name, pattern in _COMPILED.items() if pattern.search(line)), "")
