"""Where the GPU time went: the ledger that adds up, and what trials cost, side by side and never mixed."""

from __future__ import annotations

from collections.abc import Mapping

from gpudiag.measures.attribution import AttributionProfile
from gpudiag.measures.costs import CostsProfile
from gpudiag.measures.ledger import UNCLEAR, LedgerProfile
from gpudiag.report._render.blocks import Block, Figure, Folded, Note, Number, TableBlock, TableCell
from gpudiag.report.document import Document, LedgerEntry, NotMeasured
from gpudiag.report.format import UNKNOWN, hours_below, interval, listed, money, named, plural, quantity, safe, share

CELLS = {
    "busy": ("busy", "50 % utilization or more"),
    "busy_low": ("busy, low", "10 to 50 % utilization"),
    "stalled": ("stalled", "idle inside a trial: input, validation on the CPU, a lock"),
    "waiting": (
        "idle, unclear why",
        "start-up and stall both fit; some trials started while others ended; a trial never worked on the GPU; or one "
        "of unknown GPU may have run",
    ),
    "startup_only": ("start-up only", "every trial was still before its first work on the GPU"),
    "tail_only": ("tail only", "every trial was past its last work on the GPU"),
    "idle_no_trial": ("idle, no trial", "nothing was running"),
    "foreign": (
        "foreign",
        "busy though no trial ran: another process, a trial left out, or a clock that is off",
    ),
    "unobserved": ("unobserved", "no telemetry"),
}
"""The cells of the ledger in reading order: name and meaning."""

WENT = {
    "busy": "ran at 50 % utilization or more",
    "busy_low": "ran at 10 to 50 %",
    "stalled": "stalled inside trials",
    "waiting": "was idle, unclear why",
    "startup_only": "was start-up alone",
    "tail_only": "was the end of trials",
    "idle_no_trial": "had no trial",
    "foreign": "was busy without a trial",
    "unobserved": "was not observed",
}
"""What time in each category went into, within a sentence."""

ALONE = {"idle_no_trial": ("idle", "below 10 % utilization")}
"""Without trials nobody can say what an idle GPU waited for."""


WORTH_SAYING_PCT = 0.5
"""Unclear time below this share moves no other number that is shown."""
OBSERVED_PCT = 99.5
"""From here on as good as all of the time was observed."""


def ledger(document: Document) -> list[Block]:
    """Every GPU-second of the run in one cell, and from 100 % to the mean utilization."""
    held = document.ledger
    if held is None:
        gap = document.not_measured.get("ledger", NotMeasured("The ledger was not measured.", ""))
        spent = costs(document)
        parts = [Folded("What it was spent on: time, energy and money by outcome", tuple(spent))] if spent else []
        return [Note(safe(f"{gap.reason} {gap.remedy}").strip(), "unknown"), *parts]
    has_trials = document.values(LedgerProfile)[LedgerProfile.has_trials]
    table = _cells(held, has_trials=has_trials)
    elsewhere = _elsewhere(document)
    pictures = (Figure("ledger"), Figure("waterfall"))
    if document.headline.level == "ok":  # nothing to look for: the sentence is enough
        return [
            Note(went(document, held)),
            *elsewhere,
            Folded("By category, over time and by outcome", (table, *pictures, *costs(document))),
        ]
    more = Folded("Over time, and down to the mean utilization", pictures)
    spent = costs(document)
    by_outcome = [Folded("What it was spent on: time, energy and money by outcome", tuple(spent))] if spent else []
    return [Note(went(document, held)), *elsewhere, table, more, *by_outcome]


def _elsewhere(document: Document) -> list[Block]:
    """That trials ran on GPUs that nobody recorded, where their marks say so."""
    known = document.values(AttributionProfile)
    n = known.get(AttributionProfile.n_elsewhere)
    if not n:
        return []
    text = (
        f"{n:,} of {plural(known[AttributionProfile.n_trials], 'trial')} left no mark on a recorded GPU while others "
        "did. They seem to have run on another host or GPU, whose time is missing here. Give the telemetry of every "
        "host."
    )
    return [Note(text, "warning")]


def went(document: Document, held: LedgerEntry) -> str:
    """The ledger's largest categories in a sentence, and the mean utilization."""
    facts = document.values(LedgerProfile)
    has_trials = facts[LedgerProfile.has_trials]
    n_gpus = facts[LedgerProfile.n_gpus]
    who = "" if n_gpus == 1 else f" on {n_gpus} GPUs"
    total = quantity(held.total_gpu_s / 3600, "GPU-h")
    when = "from the first trial to the last" if has_trials else "over the whole record"
    mean, covered = facts.get(LedgerProfile.mean_util_pct), facts.get(LedgerProfile.coverage_pct)
    seen = f" {share(covered)} of it was observed." if covered is not None and covered < OBSERVED_PCT else ""
    busy = document.advice.busy_pct
    repeats = mean is not None and bool(busy) and share(mean) == share(busy)  # the section on utilization says it
    average = "" if repeats or mean is None else f" Mean utilization {when} was {share(mean)}."
    return f"Of {total}{who}, {listed(_shares(held, has_trials=has_trials))}.{average}{seen}"


def _shares(held: LedgerEntry, *, has_trials: bool) -> list[str]:
    """The busy share first, then what else took 0.5 % or more, the largest first."""
    pct = {cell: 100 * value / held.total_gpu_s for cell, value in held.seconds().items()}
    order = sorted(pct, key=lambda cell: (cell != "busy", -pct[cell]))
    words = WENT if has_trials else {**WENT, "idle_no_trial": "was idle"}
    return [f"{share(pct[cell])} {words[cell]}" for cell in order if pct[cell] >= 0.5]


def _cells(held: LedgerEntry, *, has_trials: bool) -> TableBlock:
    """A row a cell that holds time, GPU-hours per GPU and in total."""
    gpus = list(dict.fromkeys(row.gpu for row in held.cells))
    by_cell: dict[str, dict[str, float]] = {}
    for row in held.cells:
        by_cell.setdefault(row.cell, {})[row.gpu] = row.gpu_s
    words = CELLS if has_trials else {**CELLS, **ALONE}
    single = [f"GPU {gpu}" for gpu in gpus] if 1 < len(gpus) <= 8 else []
    shown = [cell for cell in words if sum(by_cell.get(cell, {}).values()) > 0]
    total_s = [sum(by_cell[cell].values()) for cell in shown]
    columns_s = [*([by_cell[cell][gpu] for cell in shown] for gpu in gpus if single), total_s]
    texts = hours_below("GPU-h", (seconds / 3600 for column in columns_s for seconds in column))
    rows: list[tuple[TableCell, ...]] = [
        (
            words[cell][0],
            *(Number(text) for text in texts[i :: len(shown)]),
            Number(share(100 * total_s[i] / held.total_gpu_s, exact=True)),
            words[cell][1],
        )
        for i, cell in enumerate(shown)
    ]
    columns = ("Category", *single, "Time", "Share", "What it means")
    return TableBlock(columns, tuple(rows), _unclear(held, words))


def _unclear(held: LedgerEntry, words: Mapping[str, tuple[str, str]]) -> str:
    """Between which shares the cells lie that what is unclear may belong to."""
    seconds = held.seconds()
    either = seconds.get("waiting", 0.0)
    if 100 * either < WORTH_SAYING_PCT * held.total_gpu_s:
        return ""
    of = 100 / held.total_gpu_s
    ends = [(words[cell][0], of * seconds.get(cell, 0.0), of * (seconds.get(cell, 0.0) + either)) for cell in UNCLEAR]
    bounds = [f"{name} {interval(low, high, '%')}" for name, low, high in ends]
    return f"What is unclear may be part of any of these; errors of sampling aside: {listed(bounds)}."


def costs(document: Document) -> list[Block]:
    """Worker time and GPU time by outcome, and what start-up really costs."""
    held = document.costs
    if held is None:
        return []
    outcomes = [row for row in held.outcomes if row.worker_s or row.gpu_s]
    workers = hours_below("worker-h", (None if row.worker_s is None else row.worker_s / 3600 for row in outcomes))
    gpus = hours_below("GPU-h", (None if row.gpu_s is None else row.gpu_s / 3600 for row in outcomes))
    rows = tuple(
        (
            row.outcome,
            Number("" if row.n_trials is None else named("n", row.n_trials)),
            Number(worker_h),
            Number(gpu_h),
            Number(named("energy_kwh", row.energy_kwh, exact=True)),
            Number(money(row.cost, held.currency)),
        )
        for row, worker_h, gpu_h in zip(outcomes, workers, gpus, strict=True)
    )
    covered = document.values(CostsProfile).get(CostsProfile.energy_coverage_pct)
    energy = "Energy" if covered is None or covered >= OBSERVED_PCT else f"Energy, {share(covered)} observed"
    columns = ("Outcome", "Trials", "Worker time", "GPU time", energy, "Cost")
    kept = [i for i in range(len(columns)) if i < 2 or any(_text(row[i]) != UNKNOWN for row in rows)]
    table = TableBlock(
        tuple(columns[i] for i in kept),
        tuple(tuple(row[i] for i in kept) for row in rows),
        "Worker time is what trials held a worker for; GPU time is split among the trials that ran at once. They are "
        "two views of the same run and are never added.",
    )
    return [table, *_startup(document), Figure("progress")]


def _text(cell: TableCell) -> str:
    return cell.text if isinstance(cell, Number) else str(cell)


def _startup(document: Document) -> list[Block]:
    """Start-ups that overlap hide each other: the share of worker time is not a share of GPU time."""
    facts = document.values(CostsProfile)
    f, law = facts.get(CostsProfile.startup_share_pct), facts.get(CostsProfile.startup_law_pct)
    k, median = facts.get(CostsProfile.parallel), facts.get(CostsProfile.startup_median_s)
    if f is None or law is None or k is None:
        return []
    n_seen = facts[CostsProfile.n_startups]
    seen = _startup_only(document.ledger)
    measured = f" The ledger above shows {share(seen)}." if seen is not None else ""
    text = (
        f"Start-up took {share(f)} of the worker time ({named(CostsProfile.startup_median_s.name, median)} at the "
        f"median; {plural(n_seen, 'start-up')} could be seen)."
    )
    if quantity(k) != "1":
        text += (
            f" It is not GPU time lost: with {quantity(k)} trials at once they hide each other, and independent starts "
            f"leave a GPU with nothing but start-ups for {share(law)} of the time ({share(f)} to the power "
            f"{quantity(k)}).{measured}"
        )
    return [Note(text)]


def _startup_only(held: LedgerEntry | None) -> float | None:
    if held is None or not held.total_gpu_s:
        return None
    return 100 * held.seconds().get("startup_only", 0.0) / held.total_gpu_s
