"""Verdicts as blocks: a finding as a card, several as a table."""

from __future__ import annotations

from gpudiag.report._render.blocks import Block, Chip, FindingBlock, Note, TableBlock, TextWithId
from gpudiag.report._render.shown import shown_as
from gpudiag.report._sections.evidence import pairs
from gpudiag.report.format import named, quantity
from gpudiag.rules._engine.verdict import Status, Verdict, Verdicts

LEVELS = {
    Status.OK: "ok",
    Status.NOT_ASSESSED: "unknown",
    Status.NOT_APPLICABLE: "none",
    Status.ERROR: "error",
}


@shown_as.register
def verdict(one: Verdict) -> list[Block]:
    """A finding as a card; any other verdict as its status with the reason."""
    if one.status is not Status.FOUND:
        if one.fault is not None:
            return [Note(f"{one.name}: {one.fault}", "error")]
        words = one.status.value.lower().replace("_", " ")
        return [Note(f"{one.name}: {words}. {one.reason} {one.remedy}".strip())]
    cost = f"cost {quantity(one.lost_gpu_h, 'GPU-h')}" if one.lost_gpu_h else ""
    facts = tuple(pairs({**one.where, **one.evidence}))
    limits = tuple((name, named(name, value, exact=True)) for name, value in one.thresholds.items())
    return [
        FindingBlock(
            id=one.rule, level=one.severity.value, title=one.title, summary=one.summary, cost=cost, facts=facts,
            limits=limits, advice=one.remedy, refuted_by="", why="",
        )
    ]  # fmt: skip


@shown_as.register
def verdicts(several: Verdicts) -> list[Block]:
    """A row a verdict: its level, what was looked for, what the data say."""
    rows = tuple((_chip(v), TextWithId(v.name, v.rule), v.summary or v.reason) for v in several)
    return [TableBlock(("Result", "Check", "What the data say"), rows)] if rows else [Note("No verdict.")]


def _chip(one: Verdict) -> Chip:
    if one.status is Status.SUPPRESSED:
        return Chip("none", "suppressed")
    return Chip(LEVELS.get(one.status, one.severity.value))
