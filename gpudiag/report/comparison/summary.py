"""A comparison as a few lines of Markdown, for a comment on a pull request."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from gpudiag.report._render.blocks import MARKS
from gpudiag.report._render.markdown import inline
from gpudiag.report.comparison.document import ComparisonDocument, QuantityEntry
from gpudiag.report.comparison.headline import (
    COSTS,
    MEDIAN,
    TOTALS,
    applies,
    is_median,
    leader,
    ordered_reasons,
    plan_counts,
    totals,
)
from gpudiag.report.comparison.sections import said
from gpudiag.report.format import UNKNOWN, precise, ratio

SAID = {
    "faster": "FASTER",
    "slower": "SLOWER",
    "equivalent": "EQUIVALENT",
    "fails more": "FAILS MORE",
    "fails less": "FAILS LESS",
    "costs more": "COSTS MORE",
    "costs less": "COSTS LESS",
    "no evidence": "NO EVIDENCE",
    "invalid": "INVALID",
}
COMMENT_ROWS = 12


def summary(document: ComparisonDocument) -> str:
    """Markdown for a comment on a pull request: the verdict, why, and the quantities that say something."""
    head = document.headline
    lines = [f"**{MARKS[head.level]} {inline(head.verdict)}**", ""]
    failed = ordered_reasons(document)
    lines += [] if document.verdict == "invalid" else [inline(head.sentences[0]), ""]
    open_checks = [c.title.lower() for c in document.gate if c.status == "unknown" and applies(document, c)]
    lines += [f"- {MARKS['critical']} {inline(c.title)}: {inline(_short(c.evidence))}" for c in failed]
    lines += [f"- {MARKS['error']} ERROR: {inline(str(one))}" for one in document.errors]
    lines += [f"- {MARKS['unknown']} unknown: {inline(', '.join(open_checks))}"] if open_checks else []
    lines += [
        f"- {MARKS['warning']} {inline(_short(c.text))}" for c in document.consistency if c.status == "inconsistent"
    ]
    lines += ["", "| quantity | baseline | experiment | ratio (95 %) | verdict |", "|---|--:|--:|--:|---|"]
    for q in _comment_rows(document):
        cells = (
            _short_title(q),
            precise(q.baseline, q.unit),
            precise(q.experiment, q.unit),
            short_ratio(q),
            said(q).words,
        )
        lines.append("| " + " | ".join(inline(cell) for cell in cells) + " |")
    medians = [_short_title(q) for q in _comment_rows(document) if is_median(q)]
    lines += ["", f"Ratio as a {MEDIAN}, for there are outliers: {inline('; '.join(medians))}."] if medians else []
    counted = plan_counts(document)
    lines += ["", f"Plan: {counted}."] if counted else []
    return "\n".join(lines) + "\n"


def _comment_rows(document: ComparisonDocument) -> list[QuantityEntry]:
    """The leading quantity first, what whole trainings took, then the tested ones, as many as a comment can hold."""
    held = [q for q in document.quantities if q.name in TOTALS or q.kind not in ("total", "peak")]
    shown = [q for q in held if q.name != "throughput"]
    return sorted(shown, key=lambda q: (q.name != document.leader, q.name not in TOTALS))[:COMMENT_ROWS]


def short_ratio(q: QuantityEntry) -> str:
    return ratio(q.ratio, q.low, q.high)


def _short_title(q: QuantityEntry) -> str:
    return str(q.title)


def _short(text: str) -> str:
    return textwrap.shorten(text, 260, placeholder=" ...")


def several(documents: Sequence[ComparisonDocument]) -> str:
    """A table of the verdicts of several experiments, then each summary."""
    lines = [
        f"Baseline: {inline(documents[0].baseline.name)}",
        "",
        "| experiment | verdict | time ratio (95 %) |",
        "|---|---|--:|",
    ]
    for one in documents:
        held = next(iter(totals(one)), None) if one.verdict in COSTS else leader(one)
        ratio = short_ratio(held) if held and one.verdict != "invalid" else UNKNOWN
        lines.append(f"| {inline(one.experiment.name)} | {SAID[one.verdict]} | {ratio} |")
    return "\n".join(lines) + "\n\n" + "\n\n".join(summary(one).rstrip() for one in documents) + "\n"
