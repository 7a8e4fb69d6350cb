"""One check of the gate and how it came out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpudiag.statement import NOTHING, Statement, joined

GateFinding = tuple[str, Statement]
"""A status and why."""
PASS, FAIL, UNKNOWN, ERROR = "pass", "fail", "unknown", "error"
TITLES = {
    "same-unit": "Same unit and definition",
    "same-workload": "Same workload",
    "not-a-subset": "Two whole runs, neither within nor beside the other",
    "parameters-applied": "Parameters applied, same hardware",
    "telemetry-covers-job": "Telemetry covers the job",
    "warm-up": "No warm-up or cache effect",
    "sample-size": "Enough independent units",
    "equal-success": "Same items succeeded",
}
"""The eight checks of METHODS 7, in its order."""
FAULTS = {
    "same-unit": "not the same unit of work",
    "same-workload": "different items",
    "not-a-subset": "one run is part of the other or of a larger one",
    "parameters-applied": "requested parameters not shown or not in effect, or other hardware",
    "telemetry-covers-job": "telemetry that does not belong to the job",
    "warm-up": "only one of them began cold",
    "sample-size": "too few items",
    "equal-success": "not the same items succeeded",
}
"""What is wrong where a check fails."""
DECISIVE = ("same-unit", "same-workload", "not-a-subset", "parameters-applied")
"""Without these nothing may be called faster or slower."""
TELLING = (
    "not-a-subset",
    "same-unit",
    "parameters-applied",
    "same-workload",
    "warm-up",
    "telemetry-covers-job",
    "equal-success",
    "sample-size",
)
"""Failed checks in the order in which they explain a surprising ratio (METHODS 7: 3, 1, 4, 6, then the others)."""


@dataclass(frozen=True)
class GateCheck:
    """``check`` is the id, ``status`` pass, fail, unknown or error, ``evidence`` why.

    error: the check itself failed, by a fault of gpudiag. ``cause``: what is wrong where it fails, if only one of the
    reasons in FAULTS applies.
    """

    check: str
    status: str
    evidence: Statement
    cause: str = ""

    @property
    def title(self) -> str:
        return TITLES[self.check]

    @property
    def fault(self) -> str:
        return self.cause or FAULTS[self.check]


def worst(check: str, findings: Sequence[GateFinding], otherwise: Statement = NOTHING) -> GateCheck:
    """One check from several findings: a fail beats unknown, which beats pass."""
    for status in (FAIL, UNKNOWN):
        decisive = [text for found, text in findings if found == status]
        if decisive:
            more = [text for found, text in findings if found != status] if status == FAIL else []
            return GateCheck(check, status, joined(*decisive, *more))
    passed = [text for _, text in findings]
    return GateCheck(check, PASS, joined(*passed) or otherwise)


def reasons(gate: Iterable[GateCheck]) -> tuple[GateCheck, ...]:
    """The failed checks, the one that explains most first."""
    return tuple(sorted((c for c in gate if c.status == FAIL), key=lambda c: TELLING.index(c.check)))


def decisive_fails(gate: Iterable[GateCheck]) -> list[str]:
    """The failed checks without which nothing may be called faster or slower."""
    return [check.check for check in gate if check.status == FAIL and check.check in DECISIVE]


def is_invalid(gate: Iterable[GateCheck]) -> bool:
    return bool(decisive_fails(gate))
