"""The document for a terminal: verdict, why, what next, then every check."""

from __future__ import annotations

import textwrap

from gpudiag.faults import ERROR, Fault, attempt
from gpudiag.report.answers import answer, recommended
from gpudiag.report.blocks import MARKS, NAMES
from gpudiag.report.bottleneck import QUESTION, bottleneck_sentence
from gpudiag.report.document import Document, VerdictEntry
from gpudiag.report.format import label, named, plural, quantity, safe
from gpudiag.report.kinds.recommendations import gain
from gpudiag.report.sections import QUESTIONS, unassessed
from gpudiag.report.suppressed import suppression_notes
from gpudiag.rules.engine import Status

_COLORS = {
    "critical": "1;31",
    "warning": "33",
    "note": "36",
    "clear": "32",
    "unknown": "35",
    "none": "2",
    "error": "1;31",
}
_LEVELS = {
    Status.CLEAR: "clear",
    Status.NOT_ASSESSED: "unknown",
    Status.NOT_APPLICABLE: "none",
    Status.SUPPRESSED: "none",
    Status.ERROR: "error",
}


def render(document: Document, width: int = 80, color: bool = False) -> str:
    """The whole diagnosis as lines of at most ``width`` characters, ANSI colours if asked for."""
    width = max(width, 40)
    lines = [headline(document, width, color), ""]
    for note in _assumptions(document):
        lines += [*_wrap(f"Assumed: {_plain(note)}", width, "  "), ""]
    for verdict in document.findings:
        lines += [*_finding(document, verdict, width, color), ""]
    for note in suppression_notes(document):
        lines += [*_wrap(_plain(note), width, "  "), ""]
    for one in document.errors:
        lines += [*_wrap(f"{MARKS['error']} {NAMES['error']}: {_plain(str(one))}", width, "    "), ""]
    lines += _table(document, width, color)
    return "\n".join(lines) + "\n"


def brief(document: Document, width: int = 80) -> str:
    """The headline and a line a finding: what fits a screen."""
    width = max(width, 40)
    lines = [headline(document, width)]
    for verdict in document.findings:
        cost = f" ({quantity(verdict.lost_gpu_h, 'GPU-h')})" if verdict.lost_gpu_h else ""
        said = f"{MARKS[verdict.severity.value]} {NAMES[verdict.severity.value]}: {safe(verdict.title)}{cost}"
        lines.append("  " + textwrap.shorten(said, width - 2, placeholder=" ..."))
    return "\n".join(lines)


def headline(document: Document, width: int = 80, color: bool = False) -> str:
    """The verdict, the three sentences, and after the first what limited the run."""
    head = document.headline
    verdict = [_paint(line, head.level, color) for line in _wrap(head.verdict, width, "  ")]
    lines = [safe(document.run.name), *verdict, ""]
    said = [*zip(QUESTIONS, head.sentences, strict=True)]
    limit = attempt("sentence on what limited the run", lambda: bottleneck_sentence(document))
    said.insert(1, (QUESTION, f"{ERROR}: {limit}" if isinstance(limit, Fault) else limit))
    for question, sentence in said:
        lines += _wrap(f"{question}: {_plain(sentence)}", width, "  ") if sentence else []
    return "\n".join(lines)


def _assumptions(document: Document) -> list[str]:
    """Notes on how an input was read where a number was assumed that nobody gave."""
    notes = [note for record in document.inputs for note in record.notes]
    return [safe(note) for note in dict.fromkeys(notes) if " assumed" in note]


def _finding(document: Document, verdict: VerdictEntry, width: int, color: bool) -> list[str]:
    """Title, summary, what to do and the limits; a symptom names its cause."""
    level = verdict.severity.value
    cost = f" ({quantity(verdict.lost_gpu_h, 'GPU-h')})" if verdict.lost_gpu_h else ""
    title = _wrap(f"{MARKS[level]} {NAMES[level]}: {safe(verdict.title)}{cost}", width, "    ")
    lines = [_paint(line, level, color) for line in title]
    lines += _wrap(_plain(verdict.summary), width, "    ", "    ")
    if cause := _title(document, verdict.caused_by):
        lines += _wrap(f"Explained by: {cause}", width, "    ", "    ")
    if todo := _todo(document, verdict):
        lines += _wrap(f"Do: {_plain(todo)}", width, "    ", "    ")
    limits = ", ".join(f"{label(name)} {named(name, value)}" for name, value in verdict.thresholds.items())
    return lines + _wrap(f"Rule {verdict.rule}" + (f"; limits: {limits}" if limits else ""), width, "    ", "    ")


def _todo(document: Document, verdict: VerdictEntry) -> str:
    """The remedy that answers it, its safety and gain, else the rule's advice; '' where its cause has said it."""
    one = recommended(document, verdict.rule)
    if one is None:
        return verdict.remedy
    if one == recommended(document, verdict.caused_by):
        return ""
    gains = gain(one.gain) if one.gain else "gain unknown"
    return f"{answer(document, verdict.rule)}: {one.safety}, {gains} (remedy {one.id})"


def _title(document: Document, rule: str | None) -> str:
    """The title of that finding; '' where it was not found."""
    found = (v for v in document.findings if v.rule == rule)
    return next((safe(verdict.title) for verdict in found), "")


def _table(document: Document, width: int, color: bool) -> list[str]:
    """One line a check; those that could not be assessed together, by the reason."""
    lines = ["All checks, by the fault looked for"]
    for verdict in document.verdicts:
        level = _LEVELS.get(verdict.status, verdict.severity.value)
        if level == "unknown":
            continue
        silenced = verdict.status is Status.SUPPRESSED
        mark = _paint(f"{MARKS[level]} {'suppressed' if silenced else NAMES[level]:<14}", level, color)
        title = textwrap.shorten(safe(verdict.title), max(width - 20, 20), placeholder=" ...")
        lines.append(f"  {mark}  {title}")
        if level == "error":
            lines += _wrap(_plain(verdict.reason), width, *[" " * 20] * 2)
        if silenced:
            lines += _wrap(_plain(f"{verdict.summary} Suppressed: {verdict.reason}"), width, *[" " * 20] * 2)
    for reason, verdicts in unassessed(document).items():
        mark = _paint(f"{MARKS['unknown']} {NAMES['unknown']:<14}", "unknown", color)
        lines.append(f"  {mark}  {plural(len(verdicts), 'check')}")
        remedies = dict.fromkeys(verdict.remedy for verdict in verdicts)
        titles = "; ".join(verdict.title for verdict in verdicts)
        for text in (" ".join((reason, *remedies)), titles):
            lines += _wrap(_plain(text), width, " " * 20, " " * 20)
    return lines


def _wrap(text: str, width: int, later: str, first: str = "") -> list[str]:
    return textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=later, break_long_words=False, break_on_hyphens=False
    )


def _plain(text: str) -> str:
    return safe(text).replace("`", "")


def _paint(text: str, level: str, color: bool) -> str:
    return f"\x1b[{_COLORS[level]}m{text}\x1b[0m" if color else text
