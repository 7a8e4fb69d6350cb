"""A recommendation as a card, and several as the table of options."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

from gpudiag.advice._engine.advise import Advice
from gpudiag.advice._engine.proposal import WHEN, Gain, Prediction
from gpudiag.advice._engine.recommendation import Recommendation, Recommendations
from gpudiag.advice._engine.resources import MEMORY, TRIAL_TIME, UTILIZATION
from gpudiag.report._render.blocks import Block, Note, Number, RecommendationBlock, TableBlock, TableCell, TextWithId
from gpudiag.report._render.shown import shown_as
from gpudiag.report._sections.measured import criterion, measured
from gpudiag.report.format import UNKNOWN, at_most, listed, quantity
from gpudiag.report.format import interval as bounds

NOTHING = "Nothing needs to be changed."
NO_SPEED_UP = "no speed-up"
TEST_FIRST = "gain unknown: test this first"
GENERAL = "general advice"
WIDEST = 3.0
"""A gain whose ends lie further apart than this factor is no number to rely on."""
RESOURCES = (
    ("memory of the fullest GPU", MEMORY),
    ("mean utilization", UTILIZATION),
    ("median trial time", TRIAL_TIME),
)


@shown_as.register
def recommendations(several: Recommendations) -> list[Block]:
    """The options, the best first."""
    return [options(several) if several else Note(NOTHING)]


@shown_as.register
def recommendation(one: Recommendation) -> list[Block]:
    """Its card."""
    return [card(one)]


@shown_as.register
def advice(given: Advice) -> list[Block]:
    """What the numbers refute, and the options."""
    return [*(Note(text) for text in given.corrections), *recommendations(given.recommendations)]


def options(remedies: Iterable[Recommendation]) -> TableBlock:
    """The options: a row a recommendation, in the order of their cards."""
    rows: list[tuple[TableCell, ...]] = [
        (
            TextWithId(one.title, one.id),
            Number(gain_of(one)),
            *(
                (UNKNOWN, UNKNOWN)
                if one.is_the_rules_own
                else (f"{one.safety}{', test first' if one.verify_first else ''}", WHEN[one.apply])
            ),
            one.changes[0].text or UNKNOWN,
        )
        for one in remedies
    ]
    caption = "Recommendations, the best first. Each card says what it assumes, when it worked and how to undo it."
    return TableBlock(("Recommendation", "Gain", "Safety", "Apply", "Change"), tuple(rows), caption)


def card(one: Recommendation) -> RecommendationBlock:
    """What to change, what it rests on, how to verify it and how to take it back, where something was changed."""
    checks = "; ".join(criterion(check.measure, check.op, check.value, check.unit) for check in one.verify)
    notes = (
        ("Assumes", one.assumption),
        ("Test first", one.verify_first),
        ("Safety", f"{one.safety}: {one.safety_reason}" if one.safety_reason else ""),
        ("For", "; ".join(one.pros)),
        ("Against", "; ".join(one.cons)),
        ("Worked if", checks),
        ("Does not help if", one.refute),
        ("Undo", one.rollback if one.tier else ""),
        ("Effort", f"{one.effort}, {WHEN[one.apply]}" if one.effort else ""),
        ("Predicted for after the change", _predicted(one)),
        ("On the predictions", _limits(one.predictions)),
    )
    mark = GENERAL if one.is_the_rules_own else f"{one.safety}, {gain_of(one)}"
    code = code_of(one)
    return RecommendationBlock(
        one.id, one.title, mark, one.why, code, tuple((name, text) for name, text in notes if text)
    )


def gain_of(one: Recommendation) -> str:
    """What it brings. What may bring nothing and must be tested first has no number to rely on, or a bound where the
    time of a known cause is one; of general advice no number was looked for.
    """
    if one.is_the_rules_own:
        return GENERAL
    may_be_nothing = one.gain is not None and one.gain.unit == "x" and one.gain.low <= 1 < one.gain.high
    said = gain(one.gain)
    if said == TEST_FIRST and may_be_nothing and one.is_bounded and one.gain is not None:
        said = f"up to {at_most(one.gain.high)} faster"
    if not (one.verify_first and may_be_nothing) or said == TEST_FIRST:
        return said
    return f"{said}: test this first" if one.is_bounded else TEST_FIRST


def gain(interval: Gain | None) -> str:
    """'1.2–1.5× faster', 'up to 1.2× faster', 'saves up to 0.13 GPU-h', 'costs up to 0.3 GPU-h'; unknown where it is
    wider than a factor of WIDEST.
    """
    if interval is None or not _narrow(interval):
        return TEST_FIRST
    low, high = interval.low, interval.high
    if interval.unit != "x":
        return _hours(low, high, interval.unit)
    if low >= 0.995 and high < 1.01:
        return NO_SPEED_UP
    if 0.995 <= low < 1.01:
        return f"up to {at_most(high)} faster"
    return f"{bounds(low, high, '×')} {'faster' if low >= 1.01 else 'as fast'}"


def together(low: float, high: float, parts: Iterable[Gain | None]) -> str:
    """What several bring at once; '' where that is unknown, and where nothing but GPU time not spent, or a gain that
    nobody knows, stands behind 'no speed-up'.
    """
    parts = list(parts)
    said, unknown = gain(Gain(low, high)), None in parts
    saving = any(one is not None and one.unit != "x" and one.high > 0 for one in parts)
    if said == TEST_FIRST or (said == NO_SPEED_UP and (unknown or saving)):
        return ""
    return f"{said}, as far as gains are known" if unknown else said


def _narrow(interval: Gain) -> bool:
    """Whether its ends are of one sign and within a factor of WIDEST; of hours one end may be none."""
    low, high = sorted((abs(interval.low), abs(interval.high)))
    if interval.low < 0 < interval.high or not math.isfinite(low + high):
        return False
    return high <= WIDEST * low or (low == 0 and interval.unit != "x")


def _hours(low: float, high: float, unit: str) -> str:
    """Saved where positive, spent where negative."""
    verb, least, most = ("costs", -high, -low) if low < 0 else ("saves", low, high)
    if not most:
        return "no GPU time to save"
    return f"{verb} {f'up to {quantity(most, unit)}' if not least else bounds(least, most, unit)}"


def code_of(one: Recommendation | None) -> str:
    """The lines that make the changes; '' where they are no more than the advice as comments."""
    lines = [] if one is None else [change.code for change in one.changes]
    told = any(not line.lstrip().startswith("#") for code in lines for line in code.splitlines() if line.strip())
    return "\n".join(lines) if told else ""


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
    if not found.low:
        return f"at most {high}"
    if found.high is None:
        return f"at least {low}"
    return bounds(found.low, found.high, found.unit) if found.high <= WIDEST * found.low else UNKNOWN


def _limits(predictions: Sequence[Prediction]) -> str:
    """What the predictions that are intervals rest on, or why they have no end."""
    said: dict[str, list[str]] = {}
    for p in predictions:
        if p.note and (p.low is None or p.low != p.high):
            said.setdefault(p.note, []).append(measured(p.measure))
    if len(said) < 2:
        return "".join(said)
    return " ".join(f"For {listed(of)}: {note}" for note, of in said.items())
