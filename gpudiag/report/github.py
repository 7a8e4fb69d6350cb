"""A diagnosis as workflow commands of GitHub Actions: each finding is an annotation of the run.

Format and escapes: docs.github.com, "Workflow commands for GitHub Actions"; limits of annotations: actions/toolkit,
docs/problem-matchers.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gpudiag.faults import Fault
from gpudiag.report._sections.answers import to_do
from gpudiag.report._sections.suppressed import suppression_notes
from gpudiag.report.document import Document, VerdictEntry
from gpudiag.report.format import plural, safe
from gpudiag.rules._engine.verdict import Status

COMMANDS = {"critical": "error", "warning": "warning", "note": "notice"}
MOST = 10
"""Annotations of one command that GitHub shows of a step; it drops the others without a word."""


@dataclass(frozen=True)
class Annotation:
    """One command; ``name`` is what it is listed by where it is only counted."""

    command: str
    title: str
    message: str
    name: str

    def __str__(self) -> str:
        """The line. A line break in a message is told as %0A, so that no text can begin a command of its own."""
        said = "\n".join(safe(line).replace("`", "") for line in self.message.split("\n"))
        return f"::{self.command} title={_property(safe(self.title))}::{_data(said)}"


def github_annotations(document: Document) -> str:
    """One line a finding, after one with the verdict, and a warning for each fault of gpudiag itself; open checks are
    counted, ended suppressions said. Of each command the first ten, which are the most important ones; where there are
    more, the tenth counts and names the others.
    """
    held = list(_annotations(document))
    shown = {one for command in COMMANDS.values() for one in _first(held, command)}
    rest = [_others(held, command) for command in COMMANDS.values()]
    return "".join(f"{one}\n" for one in [*(one for one in held if one in shown), *filter(None, rest)])


def _annotations(document: Document) -> Iterator[Annotation]:
    """All that there is to say, of each command the most important first."""
    head = document.headline
    said = "\n".join(filter(None, (head.verdict, head.sentences[-1] and f"Do next: {head.sentences[-1]}")))
    yield Annotation("notice", f"gpudiag: {document.run.name}", said, "verdict")
    if head.counts.not_assessed:
        rules = ", ".join(v.rule for v in document.of_status(Status.NOT_ASSESSED))
        said = f"{plural(head.counts.not_assessed, 'check')} had not the data: {rules}"
        yield Annotation("notice", "gpudiag: not assessed", said, "not assessed")
    yield from (_finding(one, to_do(document, one)) for one in document.findings)
    yield from map(_failed, document.errors)
    for note in suppression_notes(document):
        yield Annotation("notice", "gpudiag: suppression", note, "suppression")


def _finding(verdict: VerdictEntry, todo: str) -> Annotation:
    title = f"gpudiag {verdict.rule}: {verdict.title}"
    message = "\n".join(filter(None, (verdict.summary or verdict.title, todo and f"What to do: {todo}")))
    return Annotation(COMMANDS[verdict.severity.value], title, message, verdict.rule)


def _failed(one: Fault) -> Annotation:
    return Annotation("warning", f"gpudiag ERROR: {one.part}", str(one), f"ERROR of {one.part}")


def _of(held: list[Annotation], command: str) -> list[Annotation]:
    return [one for one in held if one.command == command]


def _first(held: list[Annotation], command: str) -> list[Annotation]:
    """Those that are shown: all of them, or so many that there is room to count the others."""
    own = _of(held, command)
    return own if len(own) <= MOST else own[: MOST - 1]


def _others(held: list[Annotation], command: str) -> Annotation | None:
    own = _of(held, command)
    left = own[len(_first(held, command)) :]
    if not left:
        return None
    names = ", ".join(one.name for one in left)
    said = f"{names}. GitHub shows {MOST} of a kind for each step; the job summary and the report have all."
    return Annotation(command, f"gpudiag: {plural(len(left), f'more {command}')}", said, "others")


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
