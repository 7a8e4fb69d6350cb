"""What to do: the options, and each recommendation with the lines that make the change."""

from __future__ import annotations

from gpudiag.advice._engine.proposal import Gain
from gpudiag.report._render.blocks import Block, Folded, Note
from gpudiag.report._sections.headline import not_explained
from gpudiag.report.document import Document
from gpudiag.report.format import at_most, hours
from gpudiag.report.kinds.recommendations import NO_SPEED_UP, TEST_FIRST, card, gain, options, together

NOTHING = "Nothing needs to be changed: no finding asks for it, and no idle time is worth filling."


def advice(document: Document) -> list[Block]:
    """The plan in a sentence, what the numbers refute, the options and their cards, best first."""
    given, failed = document.recommendations, failures(document)
    if not given:
        # said at the top, or too little is known to say it
        elsewhere = document.headline.level in ("ok", "unknown") or bool(not_explained(document)[0])
        return failed or ([] if elsewhere else [Note(NOTHING, "ok" if document.verdicts else "")])
    said = (_plan(document), *document.advice.corrections)
    parts: tuple[Block, ...] = (*(Note(text) for text in said if text), options(given), *map(card, given))
    which = "The recommendation" if len(given) == 1 else f"All {len(given)} recommendations"
    return [Folded(f"{which}, the plan, and what each rests on", parts), *failed]


def failures(document: Document) -> list[Block]:
    """A note for each part of the advice that failed by a fault of gpudiag; checks say so themselves."""
    return [Note(str(one), "error") for one in document.errors if not one.part.startswith(("measure ", "rule "))]


def _plan(document: Document) -> str:
    entry = document.advice
    combined = entry.combined
    if not entry.plan or entry.ceiling is None:
        return ""
    ids = ", ".join(f"`{name}`" for name in entry.plan)
    gains = [one.gain for one in document.recommendations if one.id in entry.plan]
    brought = together(combined.low, combined.high, gains) if combined else ""
    clipped = f", the most that idle time allows ({at_most(entry.ceiling)})" if combined and combined.clipped else ""
    at_once = f" Together: {brought}{clipped}." if brought else ""
    most = "Besides, up to" if brought else "Up to"
    saved = f" {most} {hours(entry.saved_gpu_h)} of this run need not be spent again" if entry.saved_gpu_h else ""
    saved += f"{_with_saved(document, gains)}." if saved else ""
    prices = (
        f" `{one.id}` {gain(one.gain)}."
        for one in document.recommendations
        if one.id in entry.plan and one.gain is not None and one.gain.is_price
    )
    return f"In the plan: {ids}.{at_once}{saved}{''.join(prices)}"


def _with_saved(document: Document, gains: list[Gain | None]) -> str:
    """What the plan brings with the GPU time that it saves, which is no part of the factor: at most both times go. ''
    where that is unknown.
    """
    entry, ledger = document.advice, document.ledger
    if entry.combined is None or None in gains or ledger is None or not ledger.total_gpu_s > 0:
        return ""
    left = 1 / entry.combined.high - 3600 * (entry.saved_gpu_h or 0.0) / ledger.total_gpu_s
    said = gain(Gain(entry.combined.low, 1 / left)) if left > 0 else TEST_FIRST
    return "" if said in (TEST_FIRST, NO_SPEED_UP) else f": with that, {said}"
