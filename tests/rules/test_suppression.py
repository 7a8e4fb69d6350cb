"""What gpudiag.toml silences, for how long, and for which runs."""

from __future__ import annotations

from datetime import date

import pytest

from gpudiag.rules._engine.suppression import Suppression, apply_suppressions
from gpudiag.rules._engine.verdict import Severity, Status, Verdict

KNOWN = ("gpu-unused", "memory-leak")
TODAY = date(2026, 6, 15)
FOUND = Verdict("gpu-unused", "A GPU was never used", Status.FOUND, Severity.CRITICAL, summary="GPU 1 was idle.")
OK = Verdict("memory-leak", "Memory grows", Status.OK, Severity.WARNING)


def entry(rule: str = "gpu-unused", run: str = "*", until: date | None = None) -> Suppression:
    return Suppression(rule=rule, reason="spare board", run=run, until=until)


@pytest.mark.parametrize(
    ("given", "status", "state"),
    [
        (entry(), Status.SUPPRESSED, "applied"),
        (entry(until=TODAY), Status.SUPPRESSED, "applied"),
        (entry(until=date(2026, 6, 14)), Status.FOUND, "expired"),
        (entry(run="night*"), Status.SUPPRESSED, "applied"),
        (entry("memory-leak"), Status.FOUND, "unused"),
    ],
)
def test_what_holds_is_suppressed_with_its_reason(given: Suppression, status: Status, state: str) -> None:
    (verdict, other), (applied,) = apply_suppressions((FOUND, OK), (given,), "nightly", TODAY)
    assert (verdict.status, applied.state) == (status, state)
    assert other == OK
    assert ("spare board" in verdict.reason) == (status is Status.SUPPRESSED)
    assert verdict.summary == FOUND.summary


def test_an_entry_for_another_run_is_not_about_this_one() -> None:
    verdicts, applied = apply_suppressions((FOUND,), (entry(run="day*"),), "nightly", TODAY)
    assert verdicts == (FOUND,) and applied == ()


def test_an_entry_that_ended_gives_way_to_one_that_holds() -> None:
    (verdict,), applied = apply_suppressions((FOUND,), (entry(until=date(2026, 1, 1)), entry()), "x", TODAY)
    assert verdict.status is Status.SUPPRESSED
    assert [one.state for one in applied] == ["expired", "applied"]
