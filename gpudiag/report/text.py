"""What a terminal shows of a diagnosis: verdict, why, what next, then every check."""

from __future__ import annotations

from dataclasses import replace

from gpudiag.report._render.blocks import Block, Chip, FindingBlock, Heading, Masthead, Note, TableBlock
from gpudiag.report._sections.answers import answer, recommended
from gpudiag.report._sections.suppressed import suppression_notes
from gpudiag.report.document import Document, VerdictEntry
from gpudiag.report.format import plural
from gpudiag.report.kinds.recommendations import gain
from gpudiag.report.sections import card, cards, status, unassessed, verdict
from gpudiag.rules._engine.verdict import Status


def whole(document: Document) -> list[Block]:
    """The whole diagnosis."""
    return [
        *headline(document),
        *(Note(f"Assumed: {note}") for note in _assumptions(document)),
        *cards(document, _finding),
        *map(Note, suppression_notes(document)),
        *(Note(str(one), "error") for one in document.errors),
        Heading("All checks, by the fault looked for"),
        _checks(document),
    ]


def brief(document: Document) -> list[Block]:
    """The headline and a line a finding: what fits a screen."""
    found = [card(document, verdict) for verdict in document.findings]
    rows = tuple((Chip(one.level), f"{one.title} ({one.cost})" if one.cost else one.title) for one in found)
    return [*headline(document), TableBlock(("", ""), rows)]


def headline(document: Document) -> list[Block]:
    """The verdict and its sentences."""
    return [Masthead(document.run.name, ()), *verdict(document)]


def _assumptions(document: Document) -> list[str]:
    """Notes on how an input was read where a number was assumed that nobody gave."""
    notes = [note for record in document.inputs for note in record.notes]
    return [note for note in dict.fromkeys(notes) if " assumed" in note]


def _finding(document: Document, found: VerdictEntry) -> FindingBlock:
    """Its card without the evidence, which the summary names, and with what to do in short."""
    return replace(card(document, found), facts=(), advice=_todo(document, found))


def _todo(document: Document, found: VerdictEntry) -> str:
    """The remedy that answers it, its safety and gain, else the rule's advice; '' where its cause has said it."""
    one = recommended(document, found.rule)
    if one is None:
        return found.remedy
    if one == recommended(document, found.caused_by):
        return ""
    gains = gain(one.gain) if one.gain else "gain unknown"
    return f"{answer(document, found.rule)}: {one.safety}, {gains} (remedy {one.id})"


def _checks(document: Document) -> TableBlock:
    """One line a check; those that could not be assessed together, by the reason."""
    rows = []
    for found in document.verdicts:
        silenced = f"{found.summary} Suppressed: {found.reason}" if found.status is Status.SUPPRESSED else ""
        why = found.reason if found.status is Status.ERROR else silenced
        if found.status is not Status.NOT_ASSESSED:
            rows.append((status(found), found.title, why, ""))
    for reason, several in unassessed(document).items():
        remedies = dict.fromkeys(one.remedy for one in several)
        titles = "; ".join(one.title for one in several)
        rows.append((Chip("unknown"), plural(len(several), "check"), " ".join((reason, *remedies)), titles))
    return TableBlock(("", "", "", ""), tuple(rows))
