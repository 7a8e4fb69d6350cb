"""A comparison, and the calibration of plans, as lines for a terminal."""

from __future__ import annotations

from typing import Any

from gpudiag.report._render.blocks import MARKS, NAMES, Number, TableCell
from gpudiag.report._render.terminal import marked, paint, wrap
from gpudiag.report._sections.ledger import CELLS
from gpudiag.report.comparison.document import ComparisonDocument
from gpudiag.report.comparison.headline import OUTCOME_LEVELS, QUESTIONS, both
from gpudiag.report.comparison.sections import GATE_LEVELS, hours, outcome_row, said, signed, value
from gpudiag.report.comparison.summary import short_ratio
from gpudiag.report.format import interval, plural, safe, share


def text(document: ComparisonDocument, width: int = 80, color: bool = False) -> str:
    """The comparison as lines of at most ``width`` characters."""
    width = max(width, 40)
    head = document.headline
    lines = [safe(f"{document.experiment.name} against {document.baseline.name}")]
    lines += [paint(line, head.level, color) for line in wrap(head.verdict, width, "  ")]
    lines.append("")
    for question, answer in zip(QUESTIONS, head.sentences, strict=True):
        lines += wrap(f"{question}: {answer}", width, "  ")
    for one in document.errors:
        lines += wrap(f"{MARKS['error']} {NAMES['error']}: {one!s}", width, "    ")
    lines += ["", "The gate (a fail of 1 to 4 makes the comparison invalid)"]
    for place, check in enumerate(document.gate, 1):
        level = GATE_LEVELS[check.status]
        lines.append(f"  {place} " + marked(level, f"{check.status:<8}", color) + f" {check.title}")
        lines += wrap(check.evidence, width, " " * 15, " " * 15)
    lines += _text_quantities(document, width, color)
    for title, rows in (
        ("Statements against the numbers", _text_consistency(document, width, color)),
        ("GPU time", _text_ledger(document)),
        ("How they were set up", _text_differences(document, width)),
        ("The plan", _text_plan(document, width, color)),
    ):
        if rows:
            lines += ["", title, *rows]
    return "\n".join(lines) + "\n"


def _text_quantities(document: ComparisonDocument, width: int, color: bool) -> list[str]:
    if not document.quantities:
        return []
    lines = ["", "Quantities: baseline, experiment, ratio (95 % interval), verdict"]
    for q in document.quantities:
        values = both(q, " → ")
        chip = said(q)
        lines += wrap(q.title, width, "    ", "  ")
        lines.append(f"    {values}, {short_ratio(q)}  " + marked(chip.level, chip.words, color))
        if q.note:
            lines += wrap(q.note, width, "    ", "    ")
    return lines


def _text_consistency(document: ComparisonDocument, width: int, color: bool) -> list[str]:
    lines = []
    levels = {"inconsistent": "critical", "consistent": "clear", "unknown": "unknown"}
    for one in document.consistency:
        level = levels[one.status]
        lines.append("  " + marked(level, one.status, color) + f": {one.claim}")
        lines += wrap(one.text, width, "    ", "    ")
    return lines


def _text_ledger(document: ComparisonDocument) -> list[str]:
    return [
        f"  {CELLS[c.cell][0]:<16}{hours(c.baseline_gpu_h):>12} → {hours(c.experiment_gpu_h):>12}"
        f"  {signed(c.difference_gpu_h):>13}  {share(c.baseline_share_pct, exact=True):>7} →"
        f" {share(c.experiment_share_pct, exact=True):>7}"
        for c in document.ledger
        if c.baseline_gpu_h or c.experiment_gpu_h
    ]


def _text_differences(document: ComparisonDocument, width: int) -> list[str]:
    return [
        line
        for d in document.differences
        for line in wrap(f"{d.group} {d.name}: {value(d.baseline)} → {value(d.experiment)}", width, "    ", "  ")
    ]


def _text_plan(document: ComparisonDocument, width: int, color: bool) -> list[str]:
    lines = []
    if document.plan_of and document.plan_of.note:
        lines += wrap(document.plan_of.note, width, "    ", "  ")
    for one in document.plan:
        row = outcome_row(one)
        level = OUTCOME_LEVELS[one.status]
        asked = "to check" if one.kind == "check" else "predicted"
        words = f"{one.remedy}, {one.measure}: {asked} {_of(row[4])}, measured {_of(row[5])}. {one.reason}"
        lines.append("  " + marked(level, one.status, color))
        lines += wrap(words, width, "    ", "    ")
    return lines


def calibration_text(held: Any) -> str:
    """How often predictions held, for a terminal: ``held`` is a Calibration."""
    lines = [
        f"{plural(len(held.checked), 'comparison')} with a plan; {plural(len(held.pending), 'plan')} not compared yet."
    ]
    lines.append(f"Predictions: {_tally(held.overall)}")
    for title, tallies in (("By remedy", held.by_remedy), ("By measure", held.by_measure)):
        if tallies:
            lines += ["", title, *(f"  {tally.name}: {_tally(tally)}" for tally in tallies)]
    if held.pending:
        lines += ["", "Not compared yet", *(f"  {path}" for path in held.pending)]
    return "\n".join(safe(line) if line else "" for line in lines) + "\n"


def _tally(tally: Any) -> str:
    counts = f"{tally.came_true} came true, {tally.missed} missed, {tally.cannot_tell} cannot be told"
    if not tally.known:
        return f"{counts}."
    low, high = tally.held_interval_pct
    return f"{counts}; of those told {share(tally.held_pct)} held (95 %: {interval(low, high, '%')})."


def _of(cell: TableCell) -> str:
    return cell.text if isinstance(cell, Number) else str(cell)
