"""The document for a terminal: verdict, why, what next, then every check."""

from __future__ import annotations

import textwrap

from gpudiag.faults import ERROR, Fault, attempt
from gpudiag.report._render.blocks import MARKS, NAMES
from gpudiag.report._render.terminal import marked, paint, wrap
from gpudiag.report._sections.answers import answer, recommended
from gpudiag.report._sections.bottleneck import QUESTION, bottleneck_sentence
from gpudiag.report._sections.suppressed import suppression_notes
from gpudiag.report.document import Document, VerdictEntry
from gpudiag.report.format import label, named, plural, quantity, safe
from gpudiag.report.kinds.recommendations import gain
from gpudiag.report.sections import QUESTIONS, unassessed
from gpudiag.rules._engine.verdict import Status

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
        lines += [*wrap(f"Assumed: {note}", width, "  "), ""]
    for verdict in document.findings:
        lines += [*_finding(document, verdict, width, color), ""]
    for note in suppression_notes(document):
        lines += [*wrap(note, width, "  "), ""]
    for one in document.errors:
        lines += [*wrap(f"{MARKS['error']} {NAMES['error']}: {one}", width, "    "), ""]
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
    verdict = [paint(line, head.level, color) for line in wrap(head.verdict, width, "  ")]
    lines = [safe(document.run.name), *verdict, ""]
    said = [*zip(QUESTIONS, head.sentences, strict=True)]
    limit = attempt("sentence on what limited the run", lambda: bottleneck_sentence(document))
    said.insert(1, (QUESTION, f"{ERROR}: {limit}" if isinstance(limit, Fault) else limit))
    for question, sentence in said:
        lines += wrap(f"{question}: {sentence}", width, "  ") if sentence else []
    return "\n".join(lines)


def _assumptions(document: Document) -> list[str]:
    """Notes on how an input was read where a number was assumed that nobody gave."""
    notes = [note for record in document.inputs for note in record.notes]
    return [safe(note) for note in dict.fromkeys(notes) if " assumed" in note]


def _finding(document: Document, verdict: VerdictEntry, width: int, color: bool) -> list[str]:
    """Title, summary, what to do and the limits; a symptom names its cause."""
    level = verdict.severity.value
    cost = f" ({quantity(verdict.lost_gpu_h, 'GPU-h')})" if verdict.lost_gpu_h else ""
    title = wrap(f"{MARKS[level]} {NAMES[level]}: {verdict.title}{cost}", width, "    ")
    lines = [paint(line, level, color) for line in title]
    lines += wrap(verdict.summary, width, "    ", "    ")
    if cause := _title(document, verdict.caused_by):
        lines += wrap(f"Explained by: {cause}", width, "    ", "    ")
    if todo := _todo(document, verdict):
        lines += wrap(f"Do: {todo}", width, "    ", "    ")
    limits = ", ".join(f"{label(name)} {named(name, value)}" for name, value in verdict.thresholds.items())
    return lines + wrap(f"Rule {verdict.rule}" + (f"; limits: {limits}" if limits else ""), width, "    ", "    ")


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
        mark = marked(level, f"{'suppressed' if silenced else NAMES[level]:<14}", color)
        title = textwrap.shorten(safe(verdict.title), max(width - 20, 20), placeholder=" ...")
        lines.append(f"  {mark}  {title}")
        if level == "error":
            lines += wrap(verdict.reason, width, *[" " * 20] * 2)
        if silenced:
            lines += wrap(f"{verdict.summary} Suppressed: {verdict.reason}", width, *[" " * 20] * 2)
    for reason, verdicts in unassessed(document).items():
        mark = marked("unknown", f"{NAMES['unknown']:<14}", color)
        lines.append(f"  {mark}  {plural(len(verdicts), 'check')}")
        remedies = dict.fromkeys(verdict.remedy for verdict in verdicts)
        titles = "; ".join(verdict.title for verdict in verdicts)
        for text in (" ".join((reason, *remedies)), titles):
            lines += wrap(text, width, " " * 20, " " * 20)
    return lines
