"""What could not be assessed, and the one step that settles most of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from gpudiag.measures.base import GIVE_TRIALS
from gpudiag.measures.trials import TrialsProfile
from gpudiag.measures.utilization import UtilizationProfile
from gpudiag.report._render.blocks import Block, Folded, Note, TableBlock, TableCell
from gpudiag.report._render.commands import instead
from gpudiag.report.document import Document, VerdictEntry
from gpudiag.report.format import plural
from gpudiag.rules._engine.verdict import Status

UNDER_FINDINGS, UNDER_NEXT = "under Findings", "under Do next"
"""Where the step stands with its command, below the headline too where nothing was found; elsewhere it is named."""


def unassessed(document: Document) -> dict[str, list[VerdictEntry]]:
    """The verdicts that could not be assessed, by their reason; the reason of most checks first."""
    reasons: dict[str, list[VerdictEntry]] = {}
    for verdict in document.of_status(Status.NOT_ASSESSED):
        reasons.setdefault(verdict.reason, []).append(verdict)
    return dict(sorted(reasons.items(), key=lambda item: -len(item[1])))


def once(document: Document, blocks: Iterable[Block]) -> list[Block]:
    """The blocks of a section with a reference in place of the command that stands under Findings already."""
    step = settles_most(document)
    *_, then = document.headline.sentences
    place = UNDER_FINDINGS if instead(then, step, "") == then else UNDER_NEXT

    def referred(block: Block) -> Block:
        match block:
            case Note(text) if text != step:
                return replace(block, text=instead(text, step, place))
            case TableBlock(rows=rows):
                return replace(block, rows=tuple(tuple(map(cell, row)) for row in rows))
            case Folded(blocks=inner):
                return replace(block, blocks=tuple(map(referred, inner)))
        return block

    def cell(one: TableCell) -> TableCell:
        return instead(one, step, place) if isinstance(one, str) else one

    return [referred(block) for block in blocks]


def settles_most(document: Document) -> str:
    """The one step that would settle most of the open checks; '' where none is known."""
    step, n = wanted(document)
    return f"For {plural(n, 'of them', 'of them')}: {step}" if step else ""


def wanted(document: Document) -> tuple[str, int]:
    """The step that would settle most of the open checks, and how many; '' where none is known. Training without a
    search has no study to give: nobody is asked for one where telemetry is there, nor for a log of nvidia-smi on a
    Jetson, which has none.
    """
    no_study = GIVE_TRIALS if document.values(UtilizationProfile) and not document.values(TrialsProfile) else ""
    jetson = any(one.reader == "tegrastats" for one in document.inputs)
    asked = (verdict.remedy for verdict in document.of_status(Status.NOT_ASSESSED))
    steps = Counter(step for step in asked if step not in ("", no_study) and not (jetson and "nvidia-smi" in step))
    return steps.most_common(1)[0] if steps else ("", 0)
