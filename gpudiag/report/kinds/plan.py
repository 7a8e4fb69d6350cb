"""A plan as blocks: what is to be changed, and what is predicted."""

from __future__ import annotations

from gpudiag.advice._engine.plan import Plan
from gpudiag.report._render.blocks import Block, Heading, Note, Number, TableBlock, TableCell
from gpudiag.report._render.shown import shown_as
from gpudiag.report.format import UNKNOWN, interval, quantity, safe

COLUMNS = {"remedy": "Remedy", "change": "Change", "apply": "Apply", "safety": "Safety"}


@shown_as.register
def plan(made: Plan) -> list[Block]:
    """What is to be changed, and what it is predicted to do."""
    heading = f"Plan for {safe(made.run)}"
    if made.combined:
        heading += f": together {interval(made.combined.low, made.combined.high, made.combined.unit)}"
    if not made.remedies:
        return [Heading(heading), Note("It holds no change.")]
    rows = []
    for row in made.to_frame().to_dict("records"):
        ends = (_gain(row[end], row["gain_unit"]) for end in ("gain_low", "gain_high"))
        rows.append((*(str(row[name]) or UNKNOWN for name in COLUMNS), *ends))
    return [Heading(heading), TableBlock((*COLUMNS.values(), "At least", "At most"), tuple(rows)), *_predicted(made)]


def _gain(value: float, unit: str) -> str:
    return quantity(value, unit) if unit else UNKNOWN


def _predicted(made: Plan) -> list[Block]:
    rows: tuple[tuple[TableCell, ...], ...] = tuple(
        (p.measure, *(Number(quantity(end, p.unit, exact=True)) for end in (p.baseline, p.low, p.high)), one.id)
        for one in made.remedies
        for p in one.predictions
    )
    return [TableBlock(("Measure", "Now", "At least", "At most", "After"), rows, "What is predicted.")] if rows else []
