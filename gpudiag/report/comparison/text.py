"""What a terminal shows of a comparison, and of the calibration of plans."""

from __future__ import annotations

from typing import Any

from gpudiag.report._render.blocks import Block, Chip, Heading, Masthead, Note, Number, TableBlock, TableCell
from gpudiag.report.comparison.document import ComparisonDocument
from gpudiag.report.comparison.headline import OUTCOME_LEVELS, both
from gpudiag.report.comparison.sections import consistency, differences, gate, ledger, outcome_row, said, verdict
from gpudiag.report.comparison.summary import short_ratio
from gpudiag.report.format import interval, plural, share


def text(document: ComparisonDocument) -> list[Block]:
    """The comparison: the verdict first, then what has data."""
    blocks: list[Block] = [Masthead(f"{document.experiment.name} against {document.baseline.name}", ())]
    blocks += verdict(document)
    for title, shown in (
        ("The gate", gate(document)),
        ("Quantities: baseline, experiment, ratio (95 % interval)", _quantities(document)),
        ("Statements against the numbers", consistency(document) if document.consistency else []),
        ("GPU time", ledger(document) if document.ledger else []),
        ("How they were set up", differences(document) if document.differences else []),
        ("The plan", _plan(document)),
    ):
        blocks += [Heading(title), *shown] if shown else []
    return blocks


def _quantities(document: ComparisonDocument) -> list[Block]:
    rows = tuple((said(q), q.title, f"{both(q, ' → ')}, {short_ratio(q)}", q.note) for q in document.quantities)
    return [TableBlock(("", "", "", ""), rows)] if rows else []


def _plan(document: ComparisonDocument) -> list[Block]:
    notes = [Note(document.plan_of.note)] if document.plan_of and document.plan_of.note else []
    rows = []
    for one in document.plan:
        row = outcome_row(one)
        asked = "to check" if one.kind == "check" else "predicted"
        words = f"{one.remedy}, {one.measure}: {asked} {_of(row[4])}, measured {_of(row[5])}. {one.reason}"
        rows.append((Chip(OUTCOME_LEVELS[one.status], one.status), words))
    return [*notes, TableBlock(("", ""), tuple(rows))] if rows else [*notes]


def _of(cell: TableCell) -> str:
    return cell.text if isinstance(cell, Number) else str(cell)


def calibration_text(held: Any) -> list[Block]:
    """How often predictions held: ``held`` is a Calibration."""
    counted = f"{plural(len(held.checked), 'comparison')} with a plan; "
    blocks: list[Block] = [
        Note(f"{counted}{plural(len(held.pending), 'plan')} not compared yet."),
        Note(f"Predictions: {_tally(held.overall)}"),
    ]
    for title, tallies in (("By remedy", held.by_remedy), ("By measure", held.by_measure)):
        if tallies:
            blocks += [Heading(title), TableBlock(("", ""), tuple((tally.name, _tally(tally)) for tally in tallies))]
    return [*blocks, *([Heading("Not compared yet")] if held.pending else []), *map(Note, held.pending)]


def _tally(tally: Any) -> str:
    counts = f"{tally.came_true} came true, {tally.missed} missed, {tally.cannot_tell} cannot be told"
    if not tally.known:
        return f"{counts}."
    low, high = tally.held_interval_pct
    return f"{counts}; of those told {share(tally.held_pct)} held (95 %: {interval(low, high, '%')})."
