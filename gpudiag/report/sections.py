"""The sections of a report: each is a function from the document to blocks.

A section whose data are missing is one line that says what would fill it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from gpudiag.faults import ERROR, REPORT, Fault, attempt
from gpudiag.report._render.blocks import (
    NAMES,
    Banner,
    Block,
    Chip,
    FindingBlock,
    Folded,
    Masthead,
    Note,
    TableBlock,
    TextWithId,
)
from gpudiag.report._sections.advice import advice
from gpudiag.report._sections.answers import answer, recommended
from gpudiag.report._sections.bottleneck import QUESTION, limit
from gpudiag.report._sections.evidence import pairs
from gpudiag.report._sections.ledger import ledger
from gpudiag.report._sections.origin import data_quality, limits, provenance
from gpudiag.report._sections.suppressed import suppression_notes
from gpudiag.report._sections.topics import memory, parallelism, timeline, trials, utilization
from gpudiag.report.document import Document, GpuEntry, VerdictEntry
from gpudiag.report.format import count, label, length, named, plural, quantity, span, zone
from gpudiag.rules._engine.verdict import Status

Section = Callable[[Document], list[Block]]

QUESTIONS = ("Where the time went", "What is wrong most", "What to do next")
NO_FINDINGS = "No check found anything. The table of all checks says which were clear and which had no data."


def masthead(document: Document) -> list[Block]:
    """Which run this is about."""
    run = document.run
    facts = [("GPUs", _boards(run.gpus)), ("Trials", count(run.n_trials) if run.n_trials else "none given")]
    if run.start and run.end:
        when = span(run.start, run.end, zone(run.timezone))
        facts += [("From", f"{when} ({run.timezone})"), ("Lasted", length(run.start, run.end))]
    return [Masthead(run.name, tuple(facts))]


def _boards(gpus: Sequence[GpuEntry]) -> str:
    """'2 x NVIDIA A100, 80 GiB'; the same boards counted together."""
    if not gpus:
        return "no telemetry given"
    kinds: dict[str, int] = {}
    for gpu in gpus:
        memory = f", {quantity(gpu['mem_total_mib'], 'MiB')}" if gpu.get("mem_total_mib") else ""
        kind = f"{gpu.get('name') or 'unnamed GPU'}{memory}"
        kinds[kind] = kinds.get(kind, 0) + 1
    return "; ".join(f"{n} × {kind}" for kind, n in kinds.items())


def verdict(document: Document) -> list[Block]:
    """The headline and how the checks came out."""
    head = document.headline
    counts = head.counts
    kinds = (("critical", counts.critical), ("warning", counts.warning), ("note", counts.note),
             ("clear", counts.clear), ("error", counts.error), ("unknown", counts.not_assessed),
             ("none", counts.not_applicable))  # fmt: skip
    nouns = {"warning": "warnings", "note": "notes", "error": "ERRORs"}
    chips = [Chip(level, plural(n, NAMES[level], nouns.get(level, NAMES[level]))) for level, n in kinds if n]
    if counts.suppressed:
        chips.append(Chip("none", f"{counts.suppressed} suppressed"))
    said = [*zip(QUESTIONS, head.sentences, strict=True)]
    limited = attempt("sentence on what limited the run", lambda: limit(document))
    if limited:
        said.insert(1, (QUESTION, f"{ERROR}: {limited}" if isinstance(limited, Fault) else limited))
    return [Banner(head.level, head.verdict, tuple(said), tuple(chips))]


def findings(document: Document) -> list[Block]:
    """What was found, with evidence and advice, what costs most first."""
    if not document.findings:
        return [Note(NO_FINDINGS, "clear" if document.verdicts else "")]
    return [*cards(document, card)]


def cards(document: Document, card: Callable[[Document, VerdictEntry], FindingBlock]) -> list[FindingBlock]:
    """A card for each finding; those that are symptoms of another are on its card."""
    found = document.findings

    def grown(one: VerdictEntry) -> FindingBlock:
        symptoms = tuple(grown(other) for other in found if other.caused_by == one.rule)
        return replace(card(document, one), symptoms=symptoms)

    shown = {one.rule for one in found}
    return [grown(one) for one in found if one.caused_by not in shown]


def card(document: Document, verdict: VerdictEntry) -> FindingBlock:
    """One finding. What its rule says goes after what is recommended."""
    one = recommended(document, verdict.rule)
    answered = one is not None and one == recommended(document, verdict.caused_by)  # its cause has said it
    own = "" if answered else answer(document, verdict.rule)
    return FindingBlock(
        id=verdict.rule,
        level=verdict.severity.value,
        title=verdict.title,
        summary=verdict.summary,
        cost=f"cost {quantity(verdict.lost_gpu_h, 'GPU-h')}" if verdict.lost_gpu_h else "",
        facts=(*pairs(verdict.where), *pairs(verdict.evidence)),
        limits=tuple(limits(verdict)),
        advice=f"{own}. {verdict.remedy}".strip() if own else verdict.remedy,
        refuted_by=verdict.refuted_by,
        why=verdict.why,
    )


def checks(document: Document) -> list[Block]:
    """Every check: what was found, what could not be assessed and why, and, folded, what gave no cause."""
    if not document.verdicts:
        return [Note("No check was run.")]
    found = document.findings
    silenced, failed = document.of_status(Status.SUPPRESSED), document.of_status(Status.ERROR)
    tables = (_results([*found, *failed, *silenced]), _open(document))
    blocks: list[Block] = [table for table in tables if table.rows]
    blocks += [Note(REPORT, "error")] if failed else []
    blocks += [Note(text) for text in suppression_notes(document)]
    clear, absent = document.of_status(Status.CLEAR), document.of_status(Status.NOT_APPLICABLE)
    if clear or absent:
        summary = f"{plural(len(clear), 'check')} clear, {len(absent)} not applicable"
        blocks.append(Folded(summary, (_results([*clear, *absent]),)))
    return blocks


def _results(verdicts: list[VerdictEntry]) -> TableBlock:
    rows = tuple((status(v), TextWithId(v.title, v.rule), _said(v)) for v in verdicts)
    return TableBlock(("Result", "Fault looked for", "What the data say"), rows)


def unassessed(document: Document) -> dict[str, list[VerdictEntry]]:
    """The verdicts that could not be assessed, by their reason; the reason of most checks first."""
    reasons: dict[str, list[VerdictEntry]] = {}
    for verdict in document.of_status(Status.NOT_ASSESSED):
        reasons.setdefault(verdict.reason, []).append(verdict)
    return dict(sorted(reasons.items(), key=lambda item: -len(item[1])))


def _open(document: Document) -> TableBlock:
    """What could not be assessed: a row a reason."""
    rows = tuple(
        (
            Chip("unknown", plural(len(verdicts), "check")),
            reason,
            " ".join(dict.fromkeys(v.remedy for v in verdicts if v.remedy)) or "–",
            ", ".join(f"`{v.rule}`" for v in verdicts),
        )
        for reason, verdicts in unassessed(document).items()
    )
    return TableBlock(("Not assessed", "Why not", "What would tell", "Checks"), rows)


def _said(verdict: VerdictEntry) -> str:
    """What was found, why not, or that it is within its limits."""
    if verdict.status is Status.SUPPRESSED:
        return f"{verdict.summary} Suppressed: {verdict.reason}"
    return verdict.summary or verdict.reason or _passed(verdict)


def status(verdict: VerdictEntry) -> Chip:
    """How the check came out."""
    if verdict.status is Status.SUPPRESSED:
        return Chip("none", "suppressed")
    levels = {Status.CLEAR: "clear", Status.NOT_APPLICABLE: "none", Status.ERROR: "error"}
    return Chip(levels.get(verdict.status, verdict.severity.value))


def _passed(verdict: VerdictEntry) -> str:
    limits = ", ".join(f"{label(name)} {named(name, value)}" for name, value in verdict.thresholds.items())
    return f"Within its limits ({limits})." if limits else "Nothing found."


def forecast(document: Document) -> list[Block]:
    """What other numbers of trials at once would bring; a document alone holds no forecast."""
    return [Note("A forecast needs the run: `gpudiag whatif RUN`.", "unknown")]


SECTIONS: dict[str, Section] = {
    section.__name__: section
    for section in (
        masthead,
        verdict,
        findings,
        advice,
        ledger,
        trials,
        timeline,
        parallelism,
        utilization,
        memory,
        forecast,
        checks,
        data_quality,
        provenance,
    )
}
"""Sections in the order of a report."""

MINIMAL = ("verdict", "findings", "advice")
"""What stays of a minimal report, below its masthead."""
