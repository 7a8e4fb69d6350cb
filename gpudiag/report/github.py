"""A diagnosis as workflow commands of GitHub Actions: each finding is an annotation of the run.

Format and escapes: docs.github.com, "Workflow commands for GitHub Actions".
"""

from __future__ import annotations

from gpudiag.faults import Fault
from gpudiag.report._sections.suppressed import suppression_notes
from gpudiag.report.document import Document, VerdictEntry
from gpudiag.report.format import plural, safe
from gpudiag.rules._engine.verdict import Status

COMMANDS = {"critical": "error", "warning": "warning", "note": "notice"}


def github_annotations(document: Document) -> str:
    """One line a finding, after one with the verdict, and a warning for each fault of gpudiag itself; open checks are
    counted, ended suppressions said.
    """
    head, counts = document.headline, document.headline.counts
    lines = [_line("notice", f"gpudiag: {document.run.name}", head.verdict)]
    lines += [_finding(verdict) for verdict in document.findings]
    lines += [_failed(one) for one in document.errors]
    lines += [_line("notice", "gpudiag: suppression", note) for note in suppression_notes(document)]
    if counts.not_assessed:
        rules = ", ".join(v.rule for v in document.of_status(Status.NOT_ASSESSED))
        said = f"{plural(counts.not_assessed, 'check')} had not the data: {rules}"
        lines.append(_line("notice", "gpudiag: not assessed", said))
    return "\n".join(lines) + "\n"


def _finding(verdict: VerdictEntry) -> str:
    todo = f"\nWhat to do: {verdict.remedy}" if verdict.remedy else ""
    title = f"gpudiag {verdict.rule}: {verdict.title}"
    return _line(COMMANDS[verdict.severity.value], title, f"{verdict.summary or verdict.title}{todo}")


def _failed(one: Fault) -> str:
    return _line("warning", f"gpudiag ERROR: {one.part}", str(one))


def _line(command: str, title: str, message: str) -> str:
    """One command. A line break in a message is told as %0A, so that no text can begin a command of its own."""
    said = "\n".join(safe(line).replace("`", "") for line in message.split("\n"))
    return f"::{command} title={_property(safe(title))}::{_data(said)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
