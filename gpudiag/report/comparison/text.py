"""What a terminal shows of a comparison."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from gpudiag.report._render.blocks import Block, Chip, Heading, Masthead, Note, Number, TableBlock, TableCell
from gpudiag.report.comparison.document import ComparisonDocument
from gpudiag.report.comparison.headline import OUTCOME_LEVELS, both
from gpudiag.report.comparison.sections import (
    NO_PREDICTION,
    consistency,
    differences,
    gate,
    ledger,
    outcome_row,
    said,
    verdict,
)
from gpudiag.report.comparison.summary import short_ratio
from gpudiag.report.format import plural

QUANTITIES = "Quantities: baseline, experiment, ratio (95 % interval)"
MORE = "Each check, all quantities, GPU time and settings: --all."


def text(document: ComparisonDocument) -> list[Block]:
    """The comparison: the verdict first, then what has data."""
    return _titled(
        document,
        {
            "The gate": _gate(document),
            QUANTITIES: _quantities(document),
            "Statements against the numbers": _statements(document),
            "GPU time": ledger(document) if document.ledger else [],
            "How they were set up": differences(document) if document.differences else [],
            "The plan": _plan(document),
        },
    )


def screen(document: ComparisonDocument) -> list[Block]:
    """The verdict, the ratios where they are a result, and the plan; and the option that shows the rest."""
    is_open = document.verdict == "no evidence"
    telling = tuple(
        q for q in document.quantities if q.verdict != "no evidence" or (is_open and q.kind in ("time", "speed"))
    )
    shown = _quantities(replace(document, quantities=telling)) if document.verdict != "invalid" else []
    passed = sum(check.status == "pass" for check in document.gate)
    told = Note(f"{passed} of {plural(len(document.gate), 'check')} of the gate passed. {MORE}")
    return [*_titled(document, {QUANTITIES: shown, "The plan": _plan(document)}), told]


def _titled(document: ComparisonDocument, parts: Mapping[str, list[Block]]) -> list[Block]:
    """Which runs, the verdict, and each part that has data under its title."""
    blocks = [Masthead(f"{document.experiment.name} against {document.baseline.name}", ()), *verdict(document)]
    for title, shown in parts.items():
        blocks += [Heading(title), *shown] if shown else []
    return blocks


def _gate(document: ComparisonDocument) -> list[Block]:
    """The gate; evidence that the headline has named is not said again."""
    told = document.headline.sentences[0]
    once = [replace(c, evidence="As said above.") if c.evidence in told else c for c in document.gate]
    return gate(replace(document, gate=tuple(once)))


def _statements(document: ComparisonDocument) -> list[Block]:
    """The statements that the headline has not named."""
    told = document.headline.sentences[1]
    left = tuple(one for one in document.consistency if one.text not in told)
    return consistency(replace(document, consistency=left)) if left else []


def _quantities(document: ComparisonDocument) -> list[Block]:
    """A row a quantity, without greatest readings that are not comparable; what is noted of several stands once."""
    shown = [q for q in document.quantities if not (q.kind == "peak" and q.verdict == "invalid")]
    notes = [re.split(r"(?<=\.) (?=[A-Z])", q.note) for q in shown]
    counted = Counter(one for some in notes for one in some if one)
    rows = tuple(
        (said(q), q.title, f"{both(q, ' → ')}, {short_ratio(q)}", " ".join(one for one in some if counted[one] == 1))
        for q, some in zip(shown, notes, strict=True)
    )
    common = [Note(f"Of {n} of these: {one}") for one, n in counted.items() if n > 1]
    return [TableBlock(("", "", "", ""), rows), *common] if rows else []


def _plan(document: ComparisonDocument) -> list[Block]:
    notes: list[Block] = [Note(document.plan_of.note)] if document.plan_of and document.plan_of.note else []
    rows = []
    for one in document.plan:
        row = outcome_row(one)
        asked = "to check" if one.kind == "check" else "predicted"
        words = f"{one.remedy}, {one.measure}: {asked} {_of(row[4])}, measured {_of(row[5])}. {one.reason}"
        rows.append((Chip(OUTCOME_LEVELS[one.status], one.status), words))
    if document.plan_of is not None and not rows:
        notes.append(Note(NO_PREDICTION))
    return [*notes, TableBlock(("", ""), tuple(rows))] if rows else notes


def _of(cell: TableCell) -> str:
    return cell.text if isinstance(cell, Number) else str(cell)
