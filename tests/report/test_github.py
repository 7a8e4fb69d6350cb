"""Annotations of GitHub Actions within its limits, and the job summary."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from gpudiag.diagnosis import Diagnosis
from gpudiag.faults import Fault
from gpudiag.report.document import Document, VerdictEntry
from gpudiag.report.github import github_annotations
from gpudiag.report.job_summary import CUT, MOST_BYTES, job_summary
from gpudiag.rules._engine.verdict import Severity, Status

SAMPLE = Path(__file__).resolve().parent.parent.parent / "data" / "samples" / "tiny-batch-laptop"
COMMAND = re.compile(r"::(error|warning|notice) title=([^:,]*)::(.*)")
"""As the runner reads a line: a property ends at a comma or at ``::``, and none of its text holds either."""


def commands(text: str) -> list[tuple[str, str, str]]:
    """Kind, title and message of every line, unescaped as the runner does it; a line that is no command fails."""
    found = []
    for line in text.splitlines():
        kind, title, message = COMMAND.fullmatch(line).groups()  # type: ignore[union-attr]
        for code, char in (("%3A", ":"), ("%2C", ","), ("%0D", "\r"), ("%0A", "\n"), ("%25", "%")):
            title, message = title.replace(code, char), message.replace(code, char)
        found.append((kind, title, message))
    return found


def with_findings(document: Document, **numbers: int) -> Document:
    """The document with so many findings of each severity, told apart by number."""
    like = document.findings[0]
    made = [
        replace(like, rule=f"{level}-{n}", title=f"Title {n}", severity=Severity(level))
        for level, number in numbers.items()
        for n in range(number)
    ]
    return replace(document, verdicts=(*made, *document.of_status(Status.OK)))


@pytest.mark.slow
def test_each_finding_is_an_annotation_of_its_severity(toy: Diagnosis) -> None:
    found = commands(github_annotations(toy.document))
    assert found[0][:2] == ("notice", "gpudiag: toy")
    assert found[0][2].startswith(f"{toy.document.headline.verdict}\nDo next: Mend it with glue.")
    assert (
        "error",
        "gpudiag toy-broken: The toy is broken",
        "7 cracks were seen.\nWhat to do: Mend it with glue.",
    ) in found
    assert [kind for kind, title, _ in found if title.startswith("gpudiag toy")] == ["error", "notice"]


@pytest.mark.parametrize(("number", "shown"), [(9, 9), (10, 10), (11, 9), (40, 9)])
def test_of_each_kind_ten_at_most_and_the_rest_is_counted(toy: Diagnosis, number: int, shown: int) -> None:
    found = commands(github_annotations(with_findings(toy.document, critical=number, warning=number)))
    for kind, level in (("error", "critical"), ("warning", "warning")):
        own = [(title, message) for one, title, message in found if one == kind]
        assert len(own) == min(number, 10)
        assert [title for title, _ in own[:shown]] == [f"gpudiag {level}-{n}: Title {n}" for n in range(shown)]
        if number > shown:
            title, message = own[-1]
            assert title == f"gpudiag: {number - shown} more {kind}s"
            assert message.startswith(", ".join(f"{level}-{n}" for n in range(shown, number)) + ". ")


def test_notices_count_together_and_the_verdict_and_what_is_open_come_first(toy: Diagnosis) -> None:
    document = with_findings(toy.document, note=12)
    open_ = replace(document.findings[0], rule="io-wait", status=Status.NOT_ASSESSED)
    counts = replace(document.headline.counts, not_assessed=1)
    document = replace(
        document,
        verdicts=(*document.verdicts, open_),
        headline=replace(document.headline, counts=counts),
    )
    notices = [title for kind, title, _ in commands(github_annotations(document)) if kind == "notice"]
    assert len(notices) == 10
    assert notices[:3] == ["gpudiag: toy", "gpudiag: not assessed", "gpudiag note-0: Title 0"]
    assert notices[-1] == "gpudiag: 5 more notices"


def test_a_fault_that_is_only_counted_is_named(toy: Diagnosis) -> None:
    document = replace(with_findings(toy.document, warning=10), errors=(Fault("measure power", "KeyError", "a.py:1"),))
    last = [message for kind, _, message in commands(github_annotations(document)) if kind == "warning"][-1]
    assert last.startswith("warning-9, ERROR of measure power. ")


def test_values_of_the_run_are_escaped(toy: Diagnosis) -> None:
    hostile = "100 % a,b:c\n::error title=x::y\r##[error]z"
    verdict: VerdictEntry = replace(toy.document.findings[0], title=hostile, summary=hostile)
    text = github_annotations(replace(toy.document, verdicts=(verdict,)))
    (found,) = [one for one in commands(text) if one[0] == "error"]
    assert "100 % a,b:c" in found[1] and "100 % a,b:c\n::error title=x::y" in found[2]
    assert len(text.splitlines()) == 2 and not re.search(r"##\w*\[", text)


def sections(*lengths: int) -> str:
    return "# Run\n\nhead\n\n" + "".join(f"## Section {n}\n\n{'x' * length}\n\n" for n, length in enumerate(lengths))


def test_a_summary_that_fits_is_whole() -> None:
    text = sections(10, 10)
    assert job_summary(text, len(text)) == text


def test_a_long_summary_ends_where_a_section_ends_and_says_so() -> None:
    whole = sections(300, 300, 300)
    cut = job_summary(whole, 300 + len(CUT) + 60)
    assert cut == whole[: whole.index("## Section 1")] + CUT
    assert job_summary(whole, 500) == whole[: whole.index("## Section 1")] + CUT
    assert job_summary(whole, len(CUT) + 5) == CUT
    assert job_summary(whole, len(CUT) - 1) == job_summary(whole, -7) == ""


def test_bytes_count_and_not_characters() -> None:
    whole = "# Run\n\n## A\n\n" + "é" * 600_000
    assert len(whole) < MOST_BYTES < len(whole.encode())
    assert job_summary(whole, MOST_BYTES) == "# Run\n\n" + CUT


def test_it_is_cut_within_no_fold_and_no_code() -> None:
    before = "# Run\n\n"
    inner = "## inner\n\n<details>\nb\n</details>\n\n```sh\n## a comment\n</details>\n```\n"
    within = f"<details>\n<summary>A</summary>\n\n{inner}\n</details>\n"
    code = "\n````text\n## no heading\n```\n### neither\n````\n"
    after = "\n## Last\n\n" + "x" * 500
    for room in range(len(before + within + code) + 1):
        assert job_summary(before + within + code + after, room + len(CUT)) in (CUT, before + CUT)
    room = len(before + within + code) + 1
    assert job_summary(before + within + code + after, room + len(CUT)) == before + within + code + "\n" + CUT


@pytest.fixture
def step(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    path = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    return path


@pytest.mark.slow
def test_the_summary_is_appended_and_other_formats_write_none(gpudiag, step: Path) -> None:
    step.write_text("of another step, without an end of line", encoding="utf-8")
    assert gpudiag("diagnose", SAMPLE, "--format", "junit")[0] == 0
    assert step.read_text(encoding="utf-8") == "of another step, without an end of line"
    code, out, _ = gpudiag("diagnose", SAMPLE, "--format", "github", "--fail-on", "note")
    _, report, _ = gpudiag("diagnose", SAMPLE, "--format", "md")
    assert code == 1 and commands(out)
    assert step.read_text(encoding="utf-8") == "of another step, without an end of line\n\n" + report


@pytest.mark.slow
def test_what_others_wrote_counts_for_the_limit(gpudiag, step: Path) -> None:
    there = "x" * (MOST_BYTES - 400)
    step.write_text(there)
    gpudiag("diagnose", SAMPLE, "--format", "github")
    held = step.read_text(encoding="utf-8")
    assert held.startswith(there + "\n\n") and held.endswith(CUT) and step.stat().st_size <= MOST_BYTES
    step.write_text("x" * MOST_BYTES)
    assert gpudiag("diagnose", SAMPLE, "--format", "github")[0] == 0 and step.stat().st_size == MOST_BYTES


@pytest.mark.slow
def test_a_summary_that_cannot_be_written_is_one_sentence(gpudiag, step: Path) -> None:
    step.mkdir()
    code, out, err = gpudiag("diagnose", SAMPLE, "--format", "github")
    assert code == 2 and commands(out) and err.count("\n") == 1 and "GITHUB_STEP_SUMMARY" in err


@pytest.mark.slow
def test_without_the_variable_nothing_is_written(gpudiag, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    assert gpudiag("diagnose", SAMPLE, "--format", "github")[0] == 0 and list(tmp_path.iterdir()) == []
