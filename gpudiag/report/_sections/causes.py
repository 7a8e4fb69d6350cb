"""What the GPUs waited for: the sentence where one cause stands out, and every cause with its bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from gpudiag.measures.causes import CausesProfile, CauseTotal
from gpudiag.measures.trial_waits import LEAST_PCT as LEAST_WAIT_PCT
from gpudiag.measures.trial_waits import LargestWait, TrialWaitsProfile
from gpudiag.plain_data import Scalar
from gpudiag.plots._draw.causes import LABELS, cause_label
from gpudiag.report._render.blocks import Block, Heading, Note, Number, TableBlock
from gpudiag.report.document import Document
from gpudiag.report.format import alike, interval, listed, plural, share

SOURCES = {
    "record": "trials and telemetry",
    "log": "training log",
    "trace": "profiled steps",
    "signature": "samples of the host: a sign, no proof",
    "": "–",
}
TELLING = ("log", "trace")
"""Sources of what lies within the work."""
LEAST_PCT = 0.1
SEVERAL = 2
TELLING_PCT = 5.0
"""Share of the GPU time from which on one cause is worth a sentence; it must hold half of what the work loses."""
Cells = Mapping[str, Scalar]


def waited(document: Document) -> str:
    """The cause that took most of what was lost within the work, where a log or a trace shows one; else ''."""
    held = document.values(CausesProfile).by_row(CauseTotal)
    within = {cause: cells for cause, cells in held.items() if cells["source"] not in ("record", "")}
    within |= {"unknown": held["unknown"]} if "unknown" in held else {}
    lost = sum(_pct(cells) for cells in within.values())
    told = {cause: cells for cause, cells in within.items() if cells["source"] in TELLING}
    top = max(told, key=lambda cause: _pct(told[cause]), default="")
    if not top or _pct(told[top]) < max(TELLING_PCT, lost / 2):
        return ""
    source = SOURCES[str(told[top]["source"])]
    return f"{_sentence_case(LABELS[top])} took {_share(told[top])} of the GPU time, by the {source}."


def causes(document: Document) -> list[Block]:
    """Every cause that holds time; nothing where no source but the record of trials tells."""
    facts = document.values(CausesProfile)
    held = facts.by_row(CauseTotal)
    shown = {cause: cells for cause, cells in held.items() if _pct(cells) >= LEAST_PCT}
    if not any(cells["source"] in (*TELLING, "signature") for cells in shown.values()):
        return []
    has_trials = bool(facts[CausesProfile.has_trials])
    sources = SOURCES if has_trials else SOURCES | {"record": "telemetry"}
    spent = alike("GPU-h", *(float(cells["gpu_s"] or 0.0) / 3600 for cells in shown.values()))
    rows = tuple(
        (_sentence_case(cause_label(cause, has_trials=has_trials)), Number(_share(cells)),
         Number(hours),
         listed(sources[source] for source in str(cells["source"]).split(", ")))
        for (cause, cells), hours in zip(shown.items(), spent, strict=True)
    )  # fmt: skip
    caption = (
        "GPU time without a kernel, in percent of all that was observed; in brackets what it is at least and at most."
    )
    table = TableBlock(("What the GPU waited for", "Share", "GPU time", "Known from"), rows, caption)
    return [Heading("What the GPU waited for"), table, *_by_trial(document)]


def _by_trial(document: Document) -> list[Block]:
    """The largest wait of each trial whose log tells, where there are several."""
    facts = document.values(TrialWaitsProfile)
    n_told = facts.get(TrialWaitsProfile.n_told) if facts else None
    if n_told is None or n_told < SEVERAL:
        return []
    largest = facts.by_row(LargestWait)
    named = [f"{cause_label(cause)} in {cells['n_trials']} ({_reach(cells)})" for cause, cells in largest.items()]
    few = n_told - sum(cast(int, cells["n_trials"]) for cells in largest.values())
    own = f"{plural(n_told, 'trial')} with a log of their own"
    none = f"waited less than {share(LEAST_WAIT_PCT)} of their time for any one thing"
    if not named:
        return [Note(f"All {own} {none}.")]
    said = f"Of {own}, the largest wait was {listed(named, 'and')}; in brackets its share of a trial's GPU time."
    return [Note(f"{said} {few} {none}." if few else said)]


def _reach(cells: Cells) -> str:
    low, high = float(cells["least_pct"] or 0.0), float(cells["most_pct"] or 0.0)
    return share(high) if high - low < 1 else interval(low, high, "%")


def _pct(cells: Cells) -> float:
    return float(cells["share_pct"] or 0.0)


def _share(cells: Cells) -> str:
    """A share and its bounds, where these are apart."""
    value, low, high = (float(cells[name] or 0.0) for name in ("share_pct", "low_pct", "high_pct"))
    if high - low < max(1.0, 0.1 * value):
        return share(value)
    return f"{share(value)} ({interval(low, high, '%')})"


def _sentence_case(text: str) -> str:
    return text[:1].upper() + text[1:]
