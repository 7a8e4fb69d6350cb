"""gpudiag.toml: what it silences, for how long, for which runs; every mistake in it is one sentence."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest

from gpudiag.errors import ConfigError, InputNotFound
from gpudiag.rules._engine.suppression import Suppression, apply_suppressions, read_suppressions
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


def test_reading(tmp_path: Path) -> None:
    path = tmp_path / "gpudiag.toml"
    path.write_text('[[suppress]]\nrule = "gpu-unused"\nrun = "a*"\nuntil = 2027-01-31\nreason = " why "\n')
    assert read_suppressions(path, KNOWN) == (
        Suppression(rule="gpu-unused", reason="why", run="a*", until=date(2027, 1, 31)),
    )
    path.write_text("")
    assert read_suppressions(path, KNOWN) == ()


BAD = {
    '[[suppress]]\nrule = "gpu-unsed"\nreason = "x"\n': "suppresses rules that do not exist: 'gpu-unsed' "
    "(did you mean 'gpu-unused'?)",
    '[[suppress]]\nrule = "gpu-unused"\n': "'suppress.0.reason' is missing",
    '[[suppress]]\nrule = "gpu-unused"\nreason = "  "\n': "key 'suppress.0.reason'",
    '[[suppress]]\nrule = "gpu-unused"\nreason = "x"\nuntill = 2027-01-01\n': "did you mean 'until'?",
    '[[suppress]]\nrule = "gpu-unused"\nreason = "x"\nuntil = "soon"\n': "key 'suppress.0.until'",
    "[[supress]]\n": "did you mean 'suppress'?",
    "suppress = [\n": "is not valid TOML",
}


@pytest.mark.parametrize("text", BAD)
def test_mistakes_are_one_sentence(text: str, tmp_path: Path) -> None:
    path = tmp_path / "gpudiag.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=re.escape(BAD[text])) as caught:
        read_suppressions(path, KNOWN)
    assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value).split("(at")[0]


def test_every_unknown_rule_is_named_at_once(tmp_path: Path) -> None:
    path = tmp_path / "gpudiag.toml"
    path.write_text('[[suppress]]\nrule="one"\nreason="x"\n[[suppress]]\nrule="two"\nreason="x"\n')
    with pytest.raises(ConfigError, match=r"'one' .*; 'two' "):
        read_suppressions(path, KNOWN)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputNotFound, match="no such file"):
        read_suppressions(tmp_path / "gpudiag.toml", KNOWN)
