"""What a terminal shows of a diagnosis: a screen of it, or all, down to every check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpudiag.report._render.blocks import (
    Block,
    Chip,
    FindingBlock,
    Heading,
    Masthead,
    Note,
    TableBlock,
    named_symptoms,
)
from gpudiag.report._sections.answers import recommended, to_do
from gpudiag.report._sections.headline import proved, within
from gpudiag.report._sections.origin import open_clock, refuted_gpu
from gpudiag.report._sections.suppressed import suppression_notes
from gpudiag.report._sections.unchecked import unassessed
from gpudiag.report.document import Document, VerdictEntry
from gpudiag.report.format import count, listed, plural
from gpudiag.report.kinds.recommendations import gain_of
from gpudiag.report.noun import noun, worded
from gpudiag.report.sections import card, cards, serious, status, verdict
from gpudiag.rules._engine.verdict import Status

MOST = 3
"""Findings that one screen of a terminal has room for."""


def whole(document: Document) -> list[Block]:
    """The whole diagnosis."""
    return _told(document, cards(document, finding), [Heading("All checks"), _checks(document)])


def screen(document: Document, rest_by: str = "add --all") -> list[Block]:
    """The headline, the worst findings with what to do, and how to see the rest: what fits a screen."""
    found = [one for one in cards(document, _short) if serious(one)][:MOST]
    shown = [_once(document, _with_symptoms(one)) for one in found]
    return _told(document, shown, [Note(f"{_counted(document, found)}: {rest_by}")])


def _told(document: Document, findings: Sequence[Block], rest: Sequence[Block]) -> list[Block]:
    blocks = [
        *headline(document),
        *(Note(f"Assumed: {note}") for note in _assumptions(document)),
        *refuted_gpu(document),
        *open_clock(document),
        *findings,
        *map(Note, suppression_notes(document)),
        *(Note(str(one), "error") for one in document.errors),
        *rest,
    ]
    return worded(blocks, noun(document))


def _short(document: Document, found: VerdictEntry) -> FindingBlock:
    """Its headline, the number that proves it, and what to do."""
    return replace(card(document, found), id="", facts=(), limits=(), advice=to_do(document, found), code="")


def _once(document: Document, one: FindingBlock) -> FindingBlock:
    """The finding without what to do where the headline has said that on the same screen."""
    said = document.headline.sentences[-1]
    return replace(one, advice="") if one.advice and said.startswith(one.advice.rstrip(".")) else one


def _counted(document: Document, shown: list[FindingBlock]) -> str:
    """How many findings are on the screen, explained by these, and left, unless all are seen; then how many checks
    there are.
    """
    n, explained = len(document.findings), sum(_n_told(one) - 1 for one in shown)
    in_headline = not shown and proved(document) is not None
    left = n - len(shown) - explained - in_headline
    seen = (
        (len(shown), "here"),
        (explained, "explained by it" if len(shown) == 1 else "explained by them"),
        (in_headline, "in the headline"),
    )
    absent = len(document.of_status(Status.NOT_APPLICABLE))
    apart = f" ({count(absent)} {'does' if absent == 1 else 'do'} not apply)" if absent else ""
    checks = f"{plural(len(document.verdicts), 'check')}{apart}"
    if not left:
        return checks
    if left == n:  # nothing that is more than a note would be left out
        return f"{plural(n, 'note')} and {checks}"
    parts = ", ".join(f"{count(int(some))} {where}" for some, where in seen if some)
    return f"{plural(n, 'finding')}: {parts}, {count(left)} more. {checks}"


def _n_told(one: FindingBlock) -> int:
    """The finding and those that it explains."""
    return 1 + sum(map(_n_told, one.symptoms))


def _with_symptoms(one: FindingBlock) -> FindingBlock:
    """The finding, those that it explains named in its sentence, with the severity of one that is graver."""
    if not one.symptoms:
        return one
    symptoms = listed(map(within, named_symptoms(one)))
    return replace(one, symptoms=(), summary=f"{one.summary} It explains: {symptoms}.")


def brief(document: Document) -> list[Block]:
    """The headline and a line a finding: what fits a screen."""
    found = [card(document, verdict) for verdict in document.findings]
    rows = tuple((Chip(one.level), f"{one.title} ({one.cost})" if one.cost else one.title) for one in found)
    return worded([*headline(document), TableBlock(("", ""), rows)], noun(document))


def headline(document: Document) -> list[Block]:
    """The verdict and its sentences."""
    return [Masthead(document.run.name, ()), *verdict(document)]


def _assumptions(document: Document) -> list[str]:
    """Notes on how inputs were read where something was assumed that nobody gave."""
    notes = [*document.run.notes, *(note for record in document.inputs for note in record.notes)]
    return [note for note in dict.fromkeys(notes) if " assumed" in note]


def finding(document: Document, found: VerdictEntry) -> FindingBlock:
    """Its card without the evidence, which the summary names, and with what to do in short."""
    return replace(card(document, found), facts=(), advice=_todo(document, found))


def _todo(document: Document, found: VerdictEntry) -> str:
    """The remedy that answers it, its safety and gain, else the rule's advice; '' where its cause has said it."""
    one = recommended(document, found.rule)
    if one is None:
        return found.remedy
    if one == recommended(document, found.caused_by):
        return ""
    change = f" ({one.text})" if one.text else ""
    return f"{one.title}{change}: {one.safety}, {gain_of(one)} (`{one.id}`)"


def _checks(document: Document) -> TableBlock:
    """One line a check; those that could not be assessed together, by the reason."""
    rows = []
    for found in document.verdicts:
        silenced = f"{found.summary} Suppressed: {found.reason}" if found.status is Status.SUPPRESSED else ""
        why = found.reason if found.status is Status.ERROR else silenced
        if found.status is not Status.NOT_ASSESSED:
            rows.append((status(found), found.name, why, ""))
    for reason, several in unassessed(document).items():
        remedies = dict.fromkeys(one.remedy for one in several)
        titles = "; ".join(one.name for one in several)
        rows.append((Chip("unknown"), plural(len(several), "check"), " ".join((reason, *remedies)), titles))
    return TableBlock(("", "", "", ""), tuple(rows))
