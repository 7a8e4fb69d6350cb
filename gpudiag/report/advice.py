"""What to do: the options by safety, and each recommendation with the lines that make the change."""

from __future__ import annotations

from typing import Any

from gpudiag.faults import fault_sentence
from gpudiag.report.blocks import Block, Note
from gpudiag.report.document import Document
from gpudiag.report.format import hours, times
from gpudiag.report.kinds.recommendations import card, gain, options

NOTHING = "Nothing needs to be changed: no finding asks for it, and no idle time is worth filling."


def advice(document: Document) -> list[Block]:
    """The plan in a sentence, what the numbers refute, the options by safety, and the cards, best first."""
    given, failed = document["recommendations"], failures(document)
    if not given:
        return failed or [Note(NOTHING, "clear" if document["verdicts"] else "")]
    remedies = [one for one in given if "tier" in one]
    blocks: list[Block] = [
        Note(text) for text in (_plan(document["advice"]), *document["advice"]["corrections"]) if text
    ]
    if remedies:
        blocks.append(options(remedies))
    blocks += [card(one) for one in remedies]
    return [*blocks, *(_plain(one) for one in given if "tier" not in one), *failed]


def failures(document: Document) -> list[Block]:
    """A note for each part of the advice that failed by a fault of gpudiag; checks say so themselves."""
    parts = [one for one in document["errors"] if not one["part"].startswith(("measure ", "rule "))]
    return [Note(fault_sentence(one), "error") for one in parts]


def _plan(entry: dict[str, Any]) -> str:
    combined = entry["combined"]
    if not entry["plan"] or combined is None:
        return ""
    ids = ", ".join(f"`{name}`" for name in entry["plan"])
    clipped = f", clipped at 1/u = {times(entry['ceiling'])}" if combined["clipped"] else ""
    saved = f" Up to {hours(entry['saved_gpu_h'])} of this run need not be spent again." if entry["saved_gpu_h"] else ""
    together = gain(combined) if gain(combined) == "no speed-up" else f"a speed-up of {gain(combined)}"
    return (
        f"The plan: {ids}. Together they bring {together}{clipped}, as far as the ledger of this run can tell.{saved}"
    )


def _plain(one: dict[str, Any]) -> Note:
    return Note(f"{one['title']}: {one['text']}")
