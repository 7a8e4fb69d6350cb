"""A plan as blocks: what is to be changed, and what is predicted."""

from __future__ import annotations

from gpudiag.advice._engine.plan import Plan
from gpudiag.advice._engine.proposal import WHEN, Gain
from gpudiag.report._render.blocks import Block, Heading, Note, Number, TableBlock, TableCell
from gpudiag.report._render.shown import shown_as
from gpudiag.report.format import UNKNOWN, hours, quantity, safe
from gpudiag.report.kinds.recommendations import gain, together

COLUMNS = {"remedy": "Recommendation", "change": "Change", "apply": "Apply", "safety": "Safety"}


@shown_as.register
def plan(made: Plan) -> list[Block]:
    """What is to be changed, and what it is predicted to do."""
    heading = f"Plan for {safe(made.run)}"
    gains = [Gain(one.gain.low, one.gain.high, one.gain.unit) if one.gain else None for one in made.remedies]
    brought = together(made.combined.low, made.combined.high, gains) if made.combined else ""
    said = [f"together {brought}"] if brought else []
    said += [f"up to {hours(made.saved_gpu_h)} need not be spent again"] if made.saved_gpu_h else []
    heading += f": {', and '.join(said)}" if said else ""
    if not made.remedies:
        return [Heading(heading), Note("It holds no change.")]
    rows = [
        (*(str(row[name]) or UNKNOWN for name in COLUMNS), gain(one))
        for row, one in zip(made.to_frame().replace({"apply": WHEN}).to_dict("records"), gains, strict=True)
    ]
    return [Heading(heading), TableBlock((*COLUMNS.values(), "Gain"), tuple(rows)), *_predicted(made)]


def _predicted(made: Plan) -> list[Block]:
    rows: tuple[tuple[TableCell, ...], ...] = tuple(
        (p.measure, *(Number(quantity(end, p.unit, exact=True)) for end in (p.baseline, p.low, p.high)), one.id)
        for one in made.remedies
        for p in one.predictions
    )
    return [TableBlock(("Measure", "Now", "At least", "At most", "After"), rows, "What is predicted.")] if rows else []
