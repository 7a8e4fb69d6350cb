"""A recommendation as a card, and several as the table of options."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from gpudiag.advice._engine.advise import Advice
from gpudiag.advice._engine.proposal import Change, Gain, Prediction, Value
from gpudiag.advice._engine.recommendation import Recommendation, Recommendations, by_safety
from gpudiag.advice._engine.resources import MEMORY, TRIAL_TIME, UTILIZATION
from gpudiag.report._render.blocks import Block, Note, Number, RecommendationBlock, TableBlock, TableCell, TextWithId
from gpudiag.report._render.shown import shown_as
from gpudiag.report.format import UNKNOWN, hours, label, number, quantity
from gpudiag.report.format import interval as bounds

NOTHING = "Nothing needs to be changed."
RESOURCES = (
    ("memory of the fullest GPU", MEMORY),
    ("mean utilization", UTILIZATION),
    ("median trial time", TRIAL_TIME),
)


@shown_as.register
def recommendations(several: Recommendations) -> list[Block]:
    """The options by safety."""
    return [options(several) if several else Note(NOTHING)]


@shown_as.register
def recommendation(one: Recommendation) -> list[Block]:
    """Its card."""
    return [card(one)]


@shown_as.register
def advice(given: Advice) -> list[Block]:
    """What the numbers refute, and the options by safety."""
    return [*(Note(text) for text in given.corrections), *recommendations(given.recommendations)]


def options(remedies: Iterable[Recommendation]) -> TableBlock:
    """The options ranked by safety: a row a recommendation."""
    rows: list[tuple[TableCell, ...]] = [
        (
            TextWithId(one.title, one.id),
            Number(gain(one.gain)),
            f"{one.safety} (tier {one.tier}){', verify first' if one.verify_first else ''}",
            one.apply,
            _change(one.changes[0]),
        )
        for one in by_safety(remedies)
    ]
    caption = (
        "Options, the safest first; the gain is at least to at most, a dash where nobody can tell. The card of each "
        "says what is predicted, what it assumes and how to take it back."
    )
    return TableBlock(("Option", "Gain", "Safety", "Apply", "Change"), tuple(rows), caption)


def card(one: Recommendation) -> RecommendationBlock:
    """What to change, what it rests on, how to verify it and how to take it back."""
    checks = "; ".join(
        f"`{check.measure} {check.op} {check.value:g}`{'' if check.unit == '1' else ' ' + check.unit}"
        for check in one.verify
    )
    notes = (
        ("Assumes", one.assumption),
        ("Verify first", one.verify_first),
        ("Safety", f"{one.safety}, because {one.safety_reason}"),
        ("For", "; ".join(one.pros)),
        ("Against", "; ".join(one.cons)),
        ("Worked if", checks),
        ("Would be refuted by", one.refute),
        ("Way back", one.rollback),
        ("Effort", f"{one.effort}, {one.apply}"),
        ("Predicted for after the change", _predicted(one)),
        ("On the predictions", _limits(one.predictions)),
    )
    mark = f"{one.safety}, {gain(one.gain)}"
    code = "\n".join(change.code for change in one.changes)
    return RecommendationBlock(
        one.id, one.title, mark, one.why, code, tuple((name, text) for name, text in notes if text)
    )


def gain(interval: Gain | None) -> str:
    """'1–1.2×', '0–0.13 GPU-h'; a dash where nobody can tell."""
    if interval is None:
        return UNKNOWN
    if interval.unit == "x" and interval.low == interval.high == 1:
        return "no speed-up"
    if interval.low < 0:
        saves = f", or saves up to {hours(interval.high)}" if interval.high > 0 else ""
        return f"no speed-up, costs up to {hours(-interval.low)}{saves}"
    return bounds(interval.low, interval.high, interval.unit)


def _change(change: Change) -> str:
    present = "not stated" if change.present is None else _value(change.present)
    return f"{change.what}: {present} → {_value(change.proposed)}"


def _value(value: Value) -> str:
    if isinstance(value, bool):
        return str(value)
    return number(value) if isinstance(value, int | float) else str(value)


def _predicted(one: Recommendation) -> str:
    known = [(title, after) for title, names in RESOURCES if (after := _after(one, names)) != UNKNOWN]
    return "; ".join(f"{title} {after}" for title, after in known)


def _after(one: Recommendation, names: Collection[str]) -> str:
    found = one.predicted(names)
    if found is None:
        return UNKNOWN
    low, high = (quantity(end, found.unit) for end in (found.low, found.high))
    if low == high:
        return low
    return f"≤ {high}" if found.low is None else f"≥ {low}" if found.high is None else f"{low} – {high}"


def _limits(predictions: Sequence[Prediction]) -> str:
    """What the predictions that are intervals rest on, or why they have no end."""
    return "; ".join(
        f"{label(p.measure.rpartition('.')[2])}: {p.note}"
        for p in predictions
        if p.note and (p.low is None or p.low != p.high)
    )
