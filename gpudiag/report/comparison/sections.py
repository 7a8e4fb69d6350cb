"""A comparison as blocks: the sections of the notebook and of its reports."""

from __future__ import annotations

from collections.abc import Callable

from gpudiag.plain_data import Scalar
from gpudiag.report._render.blocks import (
    Banner,
    Block,
    Chip,
    Figure,
    Folded,
    Masthead,
    Note,
    Number,
    TableBlock,
    TableCell,
)
from gpudiag.report._sections.ledger import ALONE, CELLS
from gpudiag.report.comparison.document import (
    ComparedCellEntry,
    ComparisonDocument,
    PlanOutcomeEntry,
    QuantityEntry,
    SideEntry,
)
from gpudiag.report.comparison.headline import (
    LEVELS,
    MEDIAN,
    OUTCOME_LEVELS,
    QUESTIONS,
    applies,
    is_median,
    plan_counts,
)
from gpudiag.report.format import (
    UNKNOWN,
    duration,
    number,
    p_value,
    plural,
    precise,
    quantity,
    ratio,
    safe,
    share,
    span,
    zone,
)

LEAST_S = 1e-6
"""Times are whole microseconds: a smaller difference is of their sums as binary fractions."""
NO_LEDGER = (
    "There are no two ledgers of GPU time: each needs GPU utilization, and a GPU that the other run did not use at the "
    "same time."
)
NO_PREDICTION = "The plan predicts nothing that could be checked."
GATE_LEVELS = {"pass": "ok", "fail": "critical", "unknown": "unknown", "error": "error"}


def masthead(document: ComparisonDocument) -> list[Block]:
    """Which runs these are."""
    a, b = document.baseline, document.experiment
    return [Masthead(f"{b.name} against {a.name}", (("Baseline", _run(a)), ("Experiment", _run(b))))]


def _run(side: SideEntry) -> str:
    parts = [plural(side.n_items, "item")] if side.n_items else []
    if side.n_gpus:
        parts.append(f"{side.n_gpus} × {', '.join(side.gpus) or 'unnamed GPU'}")
    if side.start and side.end:
        parts.append(span(side.start, side.end, zone(side.timezone)))
    return f"{side.name}: {', '.join(parts)}" if parts else side.name


def verdict(document: ComparisonDocument) -> list[Block]:
    """The verdict, and how the checks of the gate came out."""
    head = document.headline
    counts = [(GATE_LEVELS[word], word) for word in ("fail", "error", "unknown", "pass")]
    statuses = [check.status for check in document.gate if applies(document, check)]
    chips = tuple(
        Chip(level, f"{statuses.count(word)} of {len(statuses)} checks: {word}")
        for level, word in counts
        if word in statuses
    )
    said = tuple(zip(QUESTIONS, head.sentences, strict=True))
    failed = [Note(str(one), "error") for one in document.errors]
    return [Banner(head.level, head.verdict, said, chips), *failed]


def gate(document: ComparisonDocument) -> list[Block]:
    """The eight checks that apply, with their evidence; a failed one of the first four makes the comparison invalid."""
    rows = tuple(
        (Number(str(place)), Chip(GATE_LEVELS[c.status], c.status), c.title, c.evidence)
        for place, c in enumerate(document.gate, 1)
        if applies(document, c)
    )
    caption = "A fail of check 1, 2, 3 or 4 makes the comparison invalid: then no ratio is a result."
    return [TableBlock(("#", "Result", "Check", "Evidence"), rows, caption)]


def consistency(document: ComparisonDocument) -> list[Block]:
    """Statements that the numbers refute or allow."""
    levels = {"inconsistent": "critical", "consistent": "ok", "unknown": "unknown"}
    if not document.consistency:
        return [Note("Nothing in these runs states work, rates or spans that could contradict the times.", "unknown")]
    rows = tuple((Chip(levels[c.status], c.status), c.claim, c.text) for c in document.consistency)
    return [TableBlock(("Result", "Statement", "What the numbers say"), rows)]


def quantities(document: ComparisonDocument) -> list[Block]:
    """Every quantity: both values, ratio and interval, verdict; and a figure of durations."""
    if not document.quantities:
        return [Note("The two runs share no quantity that could be compared.", "unknown")]
    rows = tuple(_quantity_row(q) for q in document.quantities)
    caption = (
        "Ratio: experiment over baseline with its 95 % interval. A verdict counts how many quantities were tested "
        "(Benjamini and Hochberg, 5 %), so an interval beside 1 may still be no evidence."
    )
    if any(is_median(q) for q in document.quantities):
        caption += f" Where there are outliers, the ratio is a {MEDIAN}, not that of the two means (listed below)."
    notes = [f"{q.title}: {q.note}" for q in document.quantities if q.note]
    methods = tuple((q.title, q.method, _p(q.p), _p(q.p_adjusted)) for q in document.quantities if q.method)
    blocks: list[Block] = [
        TableBlock(("Quantity", "Baseline", "Experiment", "Ratio", "95 % interval", "Verdict"), rows, caption)
    ]
    blocks.append(Figure("durations"))
    if notes or methods:
        held: list[Block] = [Note(text) for text in notes]
        if methods:
            held.append(TableBlock(("Quantity", "How it was compared", "p", "p adjusted"), methods))
        blocks.append(Folded("How each quantity was compared, and its limits", tuple(held)))
    return blocks


def _quantity_row(q: QuantityEntry) -> tuple[TableCell, ...]:
    known = q.low is not None and q.high is not None
    return (
        q.title,
        Number(precise(q.baseline, q.unit)),
        Number(precise(q.experiment, q.unit)),
        Number(ratio(q.ratio)),
        Number(f"{ratio(q.low)}–{ratio(q.high)}" if known else UNKNOWN),
        said(q),
    )


def said(q: QuantityEntry) -> Chip:
    if q.kind == "peak" and q.verdict == "invalid":
        return Chip("none", "not comparable")
    if q.kind in ("total", "peak") and q.verdict == "no evidence":
        return Chip("none", "described")
    return Chip(LEVELS[q.verdict], q.verdict)


def _p(value: float | None) -> TableCell:
    return Number(p_value(value))


def ledger(document: ComparisonDocument) -> list[Block]:
    """Where the GPU time of the two runs went, cell by cell."""
    if not document.ledger:
        return [Note(NO_LEDGER, "unknown")]
    words = CELLS if document.baseline.n_items or document.experiment.n_items else CELLS | ALONE
    rows = tuple(_cell_row(c, words[c.cell][0]) for c in document.ledger if c.baseline_gpu_h or c.experiment_gpu_h)
    cells = [(c.baseline_gpu_h, c.experiment_gpu_h, c.difference_gpu_h) for c in document.ledger]
    baseline, experiment, difference = (sum(column) for column in zip(*cells, strict=True))
    total = ("all", Number(hours(baseline)), Number(hours(experiment)), Number(signed(difference)), "", "")
    columns: tuple[str, ...] = ("Cell", "Baseline", "Experiment", "Difference", "Share of the run", "Per item")
    caption = "GPU time, its share of the run, and GPU time per item that did not fail."
    shown: tuple[tuple[TableCell, ...], ...] = (*rows, total)
    if all(c.baseline_item_gpu_s is None and c.experiment_item_gpu_s is None for c in document.ledger):
        columns, shown = columns[:-1], tuple(row[:-1] for row in shown)
        caption = "GPU time, and its share of the run."
    return [
        TableBlock(columns, shown, caption),
        Figure("ledger_change"),
    ]


def _cell_row(cell: ComparedCellEntry, name: str) -> tuple[TableCell, ...]:
    return (
        name,
        Number(hours(cell.baseline_gpu_h)),
        Number(hours(cell.experiment_gpu_h)),
        Number(signed(cell.difference_gpu_h)),
        Number(f"{share(cell.baseline_share_pct, exact=True)} → {share(cell.experiment_share_pct, exact=True)}"),
        Number(f"{_seconds(cell.baseline_item_gpu_s)} → {_seconds(cell.experiment_item_gpu_s)}"),
    )


def hours(value: float) -> str:
    return quantity(value, "GPU-h")


def signed(value: float) -> str:
    value = value if abs(value) * 3600 > LEAST_S else 0.0
    size = hours(abs(value))
    if size.startswith("<") or not value:  # too small for its sign to matter
        return size
    return f"+{size}" if value > 0 else f"−{size}"


def _seconds(value: float | None) -> str:
    return UNKNOWN if value is None else duration(value)


def course(document: ComparisonDocument) -> list[Block]:
    """The two runs on one scale: what ran when, and how busy the GPUs were."""
    return [Figure("timelines"), Figure("distributions")]


def differences(document: ComparisonDocument) -> list[Block]:
    """How the two runs were set up, as far as they differ or are known of one only."""
    if not document.differences:
        return [Note("Settings, loader, parameters, hardware and recording are the same as far as they are known.")]
    groups: dict[tuple[str, str, str], list[str]] = {}
    for d in document.differences:  # a setting of the loader is often a parameter too
        groups.setdefault((d.name, value(d.baseline), value(d.experiment)), []).append(d.group)
    rows = tuple((", ".join(of), *one) for one, of in groups.items())
    return [TableBlock(("Group", "What", "Baseline", "Experiment"), rows, "A dash: not known in that run.")]


def value(value: Scalar) -> str:
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return str(value).lower()
    return number(value) if isinstance(value, int | float) else safe(value)


def plan(document: ComparisonDocument) -> list[Block]:
    """Every prediction and check of the plan, and how it came out."""
    if document.plan_of is None:
        return [Note("No plan was given: write one with diagnosis.save_plan() and give it with --plan.", "unknown")]
    blocks: list[Block] = [Note(document.plan_of.note, "unknown")] if document.plan_of.note else []
    if not document.plan:
        return [*blocks, Note(NO_PREDICTION, "unknown")]
    rows = tuple(outcome_row(one) for one in document.plan)
    columns = ("Result", "Remedy", "What", "Before", "Predicted", "Measured", "Why")
    caption = "A point, and a number without an interval, have a tolerance of 5 %."
    return [*blocks, TableBlock(columns, rows, f"{caption} In all: {plan_counts(document)}.")]


def outcome_row(one: PlanOutcomeEntry) -> tuple[TableCell, ...]:
    unit = one.unit
    if one.kind == "check":
        predicted = f"{one.op} {_amount(one.low, unit)}"
    else:
        low, high = (_amount(end, unit) for end in (one.low, one.high))
        predicted = low if low == high else f"{low} to {high}"
        if (one.low is None) != (one.high is None):
            predicted = f"at least {low}" if one.high is None else f"at most {high}"
    measured = _amount(one.measured, unit)
    if one.measured_low is not None and one.measured_high is not None:
        measured += f" ({_amount(one.measured_low, unit)} to {_amount(one.measured_high, unit)})"
    before = _amount(one.baseline, unit)
    level = OUTCOME_LEVELS[one.status]
    return (
        Chip(level, one.status),
        f"`{one.remedy}`",
        f"`{one.measure}`",
        Number(before),
        Number(predicted),
        Number(measured),
        one.reason,
    )


def _amount(value: float | None, unit: str) -> str:
    return quantity(value, unit or "1", exact=True)


def provenance(document: ComparisonDocument) -> list[Block]:
    """The inputs of both runs by content."""
    rows = tuple(
        (role, one.path, f"`{one.sha256[:12]}`" if one.sha256 else UNKNOWN)
        for role, side in (("baseline", document.baseline), ("experiment", document.experiment))
        for one in side.inputs
    )
    return [TableBlock(("Run", "Input", "SHA-256"), rows), Note(f"gpudiag {document.version}.")]


Section = Callable[[ComparisonDocument], list[Block]]
SECTIONS: dict[str, Section] = {
    section.__name__: section
    for section in (
        masthead,
        verdict,
        gate,
        consistency,
        quantities,
        ledger,
        course,
        differences,
        plan,
        provenance,
    )
}
"""Sections in the order of a report."""
