"""The sections of a report: each is a function from the document to blocks.

A section whose data are missing is one line that says what would fill it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from gpudiag.measures.inputs import MOST_NAMED, InputsProfile
from gpudiag.measures.memory import MemoryProfile
from gpudiag.measures.steps import StepsProfile
from gpudiag.report._render.blocks import (
    NAMES,
    Block,
    Chip,
    Figure,
    FindingBlock,
    Folded,
    Masthead,
    Note,
    Number,
    Summary,
    TableBlock,
    TextWithId,
    gravest,
)
from gpudiag.report._sections.advice import advice
from gpudiag.report._sections.answers import answer, brings, recommended
from gpudiag.report._sections.evidence import pairs
from gpudiag.report._sections.headline import OF_THE_END, first_finding, hang_told_first, within
from gpudiag.report._sections.key_numbers import key_numbers
from gpudiag.report._sections.ledger import ledger
from gpudiag.report._sections.origin import data_quality, limits, provenance
from gpudiag.report._sections.steps import steps
from gpudiag.report._sections.suppressed import suppression_notes
from gpudiag.report._sections.topics import memory, of_a_training, parallelism, timeline, trials, utilization
from gpudiag.report._sections.unchecked import settles_most, unassessed, wanted
from gpudiag.report.check_address import check_address
from gpudiag.report.document import Counts, Document, GpuEntry, VerdictEntry
from gpudiag.report.format import NO_DATE, count, label, length, listed, named, plural, quantity, span, zone
from gpudiag.report.kinds.recommendations import code_of
from gpudiag.rules._engine.verdict import Severity, Status

Section = Callable[[Document], list[Block]]

MEMORY_TOPICS, MEMORY_RULES = ("memory", "leak"), ("failures-out-of-memory", "failures-after-full-memory")
"""Findings that a course of the memory in use shows."""
MOST_CARDS = 5
"""Findings that stand open; a reader takes in no more."""
NO_FINDINGS = "No check found anything."


def masthead(document: Document) -> list[Block]:
    """Which run this is about."""
    run = document.run
    facts = [("GPUs", _boards(run.gpus))]
    if not of_a_training(document):
        facts.append(("Trials", count(run.n_trials) if run.n_trials else "none given"))
    if len(run.studies) > 1:
        facts.append(("Studies", count(len(run.studies))))
    if run.start and run.end:
        when = span(run.start, run.end, zone(run.timezone))
        assumed = ", this machine's zone" if run.timezone_assumed else ""
        where = f" ({run.timezone}{assumed})" if when != NO_DATE else ""
        facts += [("Time", f"{when}{where}, {length(run.start, run.end)}")]
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
    """The top of the report: headline, key numbers, what to do next, and the run in one picture."""
    head = document.headline
    said, proof, then = head.sentences
    first = first_finding(document, document.findings)
    top = Summary(
        level=head.level,
        use=head.use,
        headline=said,
        proof=proof,
        numbers=key_numbers(document),
        then=then,
        finding=first.rule if first and not hang_told_first(document) else "",
        chips=(*_unread(document), *_chips(head.counts)),
    )
    picture = "overview_memory" if first and _of_memory(document, first) else "overview"
    return [top, *_unknown(document), Figure(picture, small=True, bare=True)]


def _of_memory(document: Document, first: VerdictEntry) -> bool:
    """Whether memory in use shows what the headline tells: the finding is of memory or explains one that is, or the
    training did not run through, and memory may tell why.
    """
    if not document.values(MemoryProfile):
        return False
    told = [one for one in document.findings if one.severity is not Severity.NOTE]
    if first.rule != OF_THE_END:
        told = [one for one in told if first.rule in (one.rule, one.caused_by)]
    return any(one.topic in MEMORY_TOPICS or one.rule in MEMORY_RULES for one in told)


def _unknown(document: Document) -> list[Block]:
    """Which logs and metrics beside the inputs tell nothing, where no other log tells of steps."""
    inputs = document.values(InputsProfile)
    n = inputs.get(InputsProfile.n_unknown)
    if not n or document.values(StepsProfile):
        return []
    more = f" and {count(n - MOST_NAMED)} more" if n > MOST_NAMED else ""
    return [
        Note(
            f"Not read: {inputs[InputsProfile.unknown]}{more}. No reader knows what is in {'them' if n > 1 else 'it'}. "
            "A log with a step and its time in each line would be read; `gpudiag inspect` says why a file is not."
        )
    ]


def _unread(document: Document) -> list[Chip]:
    """What was given and could not be read stands before all that was."""
    inputs = document.values(InputsProfile)
    n = inputs[InputsProfile.n_unread] if inputs else 0
    return [Chip("warning", f"{plural(n, 'input')} could not be read")] if n else []


def _chips(counts: Counts) -> list[Chip]:
    kinds = (("critical", counts.critical), ("warning", counts.warning), ("note", counts.note),
             ("ok", counts.ok), ("error", counts.error), ("unknown", counts.not_assessed))  # fmt: skip
    nouns = {"warning": "warnings", "note": "notes", "error": "ERRORs"}
    chips = [Chip(level, plural(n, NAMES[level], nouns.get(level, NAMES[level]))) for level, n in kinds if n]
    return [*chips, Chip("none", f"{counts.suppressed} suppressed")] if counts.suppressed else chips


def findings(document: Document) -> list[Block]:
    """What was found, worst first: a few as cards, the rest folded; then what could not be checked."""
    if not document.findings:
        open_ = unchecked(document)
        well = [] if open_ else [Note(NO_FINDINGS, "ok" if document.verdicts else "")]  # the headline has said it
        return [*(missing(document) if document.headline.level == "unknown" else well), *open_]
    found = cards(document, card)
    shown = [one for one in found if serious(one)][:MOST_CARDS] or found[:1]
    rest = [one for one in found if one not in shown]
    blocks: list[Block] = [*shown]
    if rest:
        blocks.append(Folded(f"{_of_levels(rest)}: {listed(within(one.title) for one in rest[:3])}", tuple(rest)))
    return [*blocks, *unchecked(document)]


def serious(one: FindingBlock) -> bool:
    """Whether it, or something that it explains, is more than a note."""
    return gravest(one) != "note"


def missing(document: Document) -> list[Block]:
    """Of a run of which too little is known: the reasons that keep most checks from an answer."""
    reasons = list(unassessed(document).items())[:MOST_CARDS]
    rows = tuple((Number(f"{len(open_)}"), reason, open_[0].remedy or "–") for reason, open_ in reasons)
    return [TableBlock(("Checks", "What is missing", "What would tell"), rows)] if rows else [Note(NO_FINDINGS, "ok")]


def _of_levels(found: list[FindingBlock]) -> str:
    """'2 more warnings and 4 notes'."""
    levels = [one.level for one in found]
    serious = len(levels) - levels.count("note")
    parts = [plural(serious, "more finding"), plural(levels.count("note"), "note")]
    return listed(part for part, n in zip(parts, (serious, levels.count("note")), strict=True) if n)


def unchecked(document: Document) -> list[Block]:
    """What could not be assessed, folded, with the one step that settles most of it; and how much does not apply."""
    reasons = unassessed(document)
    n, absent = sum(map(len, reasons.values())), len(document.of_status(Status.NOT_APPLICABLE))
    apart = f"{plural(absent, 'check')} {'does' if absent == 1 else 'do'} not apply to this run"
    if not reasons:
        return [Note(f"{apart}.")] if absent else []
    summary = (
        f"{plural(n, 'check')} could not be assessed{f'; {absent} more do not apply to this run' if absent else ''}"
    )
    step = settles_most(document)
    notes = [Note(step)] if step else []
    if any(gap.remedy == wanted(document)[0] for gap in document.not_measured.values() if gap.remedy):
        return [Folded(summary, (_open(document),)), *notes]  # sections without data refer to it, in short reports too
    return [Folded(summary, (*notes, _open(document)))]


def cards(document: Document, card: Callable[[Document, VerdictEntry], FindingBlock]) -> list[FindingBlock]:
    """A card for each finding, of its own severity; symptoms stand on the card of their cause."""
    found = document.findings

    def grown(one: VerdictEntry) -> FindingBlock:
        symptoms = tuple(grown(other) for other in found if other.caused_by == one.rule)
        return replace(card(document, one), symptoms=symptoms)

    shown = {one.rule for one in found}
    return [grown(one) for one in found if one.caused_by not in shown]


def card(document: Document, verdict: VerdictEntry) -> FindingBlock:
    """One finding, with the recommendation that answers it, else what its rule advises."""
    one = recommended(document, verdict.rule)
    if one is not None and one == recommended(document, verdict.caused_by):  # its cause has said it
        one, remedy = None, ""
    else:
        remedy = verdict.remedy
    shown_in = zone(document.run.timezone)
    return FindingBlock(
        id=verdict.rule,
        level=verdict.severity.value,
        title=verdict.title,
        summary=verdict.summary,
        cost=f"cost {quantity(verdict.lost_gpu_h, 'GPU-h')}" if verdict.lost_gpu_h else "",
        facts=(*pairs(verdict.where, shown_in), *pairs(verdict.evidence, shown_in)),
        limits=tuple(limits(verdict)),
        advice=answer(document, verdict.rule) if one else remedy,
        gain=brings(one) if one else "",
        code=code_of(one),
        general=remedy if one else "",
        refuted_by=verdict.refuted_by,
        why=verdict.why,
        page=check_address(document.docs_url, verdict.rule),
    )


def checks(document: Document) -> list[Block]:
    """Every check that has a result, folded; those that failed themselves stand open. The others are under Findings."""
    if not document.verdicts:
        return [Note("No check was run.")]
    failed = document.of_status(Status.ERROR)
    blocks: list[Block] = [Note(text, "error") for text in dict.fromkeys(one.remedy for one in failed)]
    blocks += [_results(failed)] if failed else []
    blocks += [Note(text) for text in suppression_notes(document)]
    others = (*document.findings, *(v for s in (Status.SUPPRESSED, Status.OK, Status.NOT_APPLICABLE)
                                    for v in document.of_status(s)))  # fmt: skip
    with_result = f"{count(len(others))} of {plural(len(document.verdicts), 'check')} and their results"
    return [*blocks, Folded(with_result, (_results([*others]),))]


def _results(verdicts: list[VerdictEntry]) -> TableBlock:
    rows = tuple((status(v), TextWithId(v.name, v.rule), _said(v)) for v in verdicts)
    return TableBlock(("Result", "Check", "What the data say"), rows)


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
    levels = {Status.OK: "ok", Status.NOT_APPLICABLE: "none", Status.ERROR: "error"}
    return Chip(levels.get(verdict.status, verdict.severity.value))


def _passed(verdict: VerdictEntry) -> str:
    limits = ", ".join(f"{label(name)} {named(name, value)}" for name, value in verdict.thresholds.items())
    return f"Within its limits ({limits})." if limits else "Nothing found."


def forecast(document: Document) -> list[Block]:
    """What other numbers of trials at once would bring; a document alone holds no forecast."""
    return [Note("A forecast needs the run: `gpudiag whatif RUN`.", "unknown")]


def trial_table(document: Document) -> list[Block]:
    """Every trial of the run; a document alone holds none."""
    return [Note("The table of all trials needs the run: `gpudiag report RUN`.", "unknown")]


SECTIONS: dict[str, Section] = {
    section.__name__: section
    for section in (
        masthead,
        verdict,
        findings,
        advice,
        timeline,
        trial_table,
        ledger,
        steps,
        trials,
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
