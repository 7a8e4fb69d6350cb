"""A fleet as blocks: the sections of the notebook and of its reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

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
    Tiles,
)
from gpudiag.report._sections.ledger import CELLS
from gpudiag.report.fleet.document import FleetDocument, RunRow, Total
from gpudiag.report.format import UNKNOWN, count, duration, listed, plural, quantity, share, span, zone

QUESTIONS = ("Where the GPU time went", "What cost most", "Where to start")
MOST_GROUPS, MOST_RUNS, MOST_CAUSES = 20, 20, 15
"""Rows of a table on the page; the data set has all of them."""
UTC = "UTC"
WORTH_SAYING = 0.05
"""Smaller parts of the GPU time are no tile."""


def masthead(document: FleetDocument) -> list[Block]:
    """Which runs these are."""
    rows = document.counted
    starts = sorted(row.start for row in rows if row.start)
    ends = sorted(row.end for row in rows if row.end)
    facts = [("Runs", _runs(document))]
    if starts and ends:
        facts.append(("From the first to the last", span(starts[0], ends[-1], zone(UTC))))
    for words, kind in (("Users", "user"), ("Projects", "project"), ("Hosts", "host"), ("GPUs", "gpu_model")):
        names = sorted({getattr(row, kind) for row in rows} - {""})
        if names:
            facts.append((words, listed(names) if len(names) <= 3 else count(len(names))))
    return [Masthead(document.name, tuple(facts))]


def _runs(document: FleetDocument) -> str:
    states = Counter(row.status for row in document.runs)
    parts = [plural(states["diagnosed"], "run")]
    parts += [f"{states[state]:,} {state}" for state in ("not diagnosed", "counted already") if states[state]]
    return ", ".join(parts)


def verdict(document: FleetDocument) -> list[Block]:
    """The three sentences and the largest numbers."""
    head, total = document.headline, document.total
    levels = Counter(row.level for row in document.counted)
    chips = tuple(
        Chip(level, f"{levels[level]:,} {level}") for level in ("critical", "warning", "note", "ok") if levels[level]
    )
    said = tuple((q, text) for q, text in zip(QUESTIONS, head.sentences, strict=True) if text)
    tiles = [("GPU time", quantity(total.gpu_s / 3600, "GPU-h"))] if total.gpu_s else []
    if total.util_pct == total.util_pct:
        tiles.append(("mean utilization", share(total.util_pct)))
    pruned, failed = total.pruned_gpu_s, total.failed_gpu_s
    if total.gpu_s and pruned + failed >= WORTH_SAYING * total.gpu_s:
        tiles.append(("in pruned and failed trials", quantity((pruned + failed) / 3600, "GPU-h")))
    if total.n_trials:
        tiles.append(("trials, " + share(100 * total.n_failed / total.n_trials) + " failed", count(total.n_trials)))
    if total.energy_kwh:
        tiles.append(("energy", quantity(total.energy_kwh, "kWh")))
    return [Banner(head.level, _line(document), said, chips), *([Tiles(tuple(tiles))] if tiles else [])]


def _line(document: FleetDocument) -> str:
    poor = sum(row.use in ("poorly", "unused") for row in document.counted)
    rated = sum(row.use != "unknown" for row in document.counted)
    return f"{poor:,} of {plural(rated, 'run')} used their GPUs poorly." if rated else "No run recorded its GPUs."


def ledger(document: FleetDocument) -> list[Block]:
    """GPU time by category, over all runs."""
    total = document.total
    if not total.gpu_s:
        return [Note("No run recorded its GPUs, so nothing can be said about their time.", "unknown")]
    rows: list[tuple[TableCell, ...]] = [
        (
            name,
            Number(quantity(total.cells[cell] / 3600, "GPU-h", exact=True)),
            Number(share(100 * total.cells[cell] / total.gpu_s, exact=True)),
            what,
        )
        for cell, (name, what) in CELLS.items()
        if total.cells[cell] > 0
    ]
    caption = f"The categories add up to all GPU time of {plural(_with_telemetry(total), 'run')} with telemetry."
    return [TableBlock(("Category", "Time", "Share", "What it means"), tuple(rows), caption), Figure("hosts")]


def _with_telemetry(total: Total) -> int:
    return total.n_runs - total.n_without_telemetry


def causes(document: FleetDocument) -> list[Block]:
    """What was found, by what it lost."""
    if not document.causes:
        return [Note("No check found a fault in any run.", "ok")]
    n = document.total.n_runs
    rows: list[tuple[TableCell, ...]] = [
        (
            one.title,
            Number(quantity(one.lost_gpu_h, "GPU-h") if one.lost_gpu_h else UNKNOWN),
            Number(f"{one.n_runs:,} ({share(100 * one.n_runs / n)})"),
            Number(count(one.n_top)),
            one.worst_run or UNKNOWN,
            ", ".join(f"{name} ({k:,})" for name, k in one.offenders) or UNKNOWN,
        )
        for one in document.causes
    ]
    caption = (
        "At least: a run's loss counts for its costliest finding alone, since findings overlap. "
        "Elsewhere, of 706 causes of low utilization in 400 jobs, 46 % were operations on data and 45 % training or "
        "evaluation of the model (ICSE 2024, doi 10.1145/3597503.3639232)."
    )
    columns = ("Cause", "Cost at least", "Runs with it", "Costliest in", "Worst run", "Most often")
    shown = TableBlock(columns, tuple(rows[:MOST_CAUSES]), caption)
    rest = rows[MOST_CAUSES:]
    return [shown, *([Folded(f"{len(rest)} further causes", (TableBlock(columns, tuple(rest)),))] if rest else [])]


def groups(document: FleetDocument) -> list[Block]:
    """The same totals by what was asked for."""
    return [_totals(document.groups, document.by)]


def weeks(document: FleetDocument) -> list[Block]:
    """The same totals by the week in which a run began."""
    if len(document.weeks) < 2:
        return []
    return [Figure("weeks"), Folded("Week by week", (_totals(document.weeks, "week", most=len(document.weeks)),))]


def _totals(held: Iterable[Total], by: str, most: int = MOST_GROUPS) -> TableBlock:
    held = list(held)
    rows: list[tuple[TableCell, ...]] = [
        (
            one.name,
            Number(count(one.n_runs)),
            Number(quantity(one.gpu_s / 3600, "GPU-h") if one.gpu_s else UNKNOWN),
            Number(share(one.util_pct)),
            Number(share(100 * one.idle_gpu_s / one.gpu_s) if one.gpu_s else UNKNOWN),
            Number(quantity(one.failed_gpu_s / 3600, "GPU-h") if one.failed_gpu_s else UNKNOWN),
            Number(quantity(one.recoverable_gpu_h, "GPU-h") if one.recoverable_gpu_h else UNKNOWN),
        )
        for one in held
    ]
    caption = f"{len(rows) - most} more are in the table of the fleet." if len(rows) > most else ""
    columns = (by[0].upper() + by[1:], "Runs", "GPU time", "Utilization", "Idle", "Failed trials", "Lost at least")
    return TableBlock(columns, tuple(rows[:most]), caption)


def runs(document: FleetDocument) -> list[Block]:
    """The runs that lost most."""
    worst = sorted(
        (row for row in document.counted if row.recoverable_gpu_h),
        key=lambda row: (-(row.recoverable_gpu_h or 0.0), row.run),
    )
    if not worst:
        return [Note("No finding has a known cost.", "unknown")]
    rows = tuple(_run(row, document) for row in worst[:MOST_RUNS])
    return [TableBlock(("Run", "Worst", "GPU time", "Utilization", "Lost at least", "To what"), rows)]


def _run(row: RunRow, document: FleetDocument) -> tuple[TableCell, ...]:
    titles = {one.rule: one.title for one in document.causes}
    return (
        row.run,
        Chip(row.level),
        Number(UNKNOWN if row.gpu_s is None else quantity(row.gpu_s / 3600, "GPU-h")),
        Number(share(row.util_pct)),
        Number(quantity(row.recoverable_gpu_h, "GPU-h")),
        titles.get(row.top_cause, ""),
    )


def failures(document: FleetDocument) -> list[Block]:
    """Trials that failed, by project."""
    rows = [row for row in document.counted if row.n_failed]
    if not rows:
        return []
    rows.sort(key=lambda row: (-(row.failed_gpu_s or 0.0), -(row.n_failed or 0), row.run))
    cells: list[tuple[TableCell, ...]] = [
        (
            row.run,
            Number(f"{row.n_failed:,} of {row.n_trials:,}"),
            Number(UNKNOWN if row.failed_gpu_s is None else duration(row.failed_gpu_s)),
        )
        for row in rows[:MOST_RUNS]
    ]
    return [Folded("Failed trials by run", (TableBlock(("Run", "Failed", "GPU time of failed trials"), tuple(cells)),))]


def coverage(document: FleetDocument) -> list[Block]:
    """What is not in the totals, and why."""
    out: list[Block] = []
    total = document.total
    if total.n_without_telemetry:
        n = total.n_without_telemetry
        out.append(Note(f"{plural(n, 'run')} recorded no GPU: they count as runs and trials, not as GPU time."))
    left = [row for row in document.runs if row.reason]
    if left:
        cells: list[tuple[TableCell, ...]] = [(row.run, row.status, row.reason) for row in left]
        table = TableBlock(("Run", "State", "Why"), tuple(cells))
        out.append(Folded(f"{plural(len(left), 'run')} not counted, or in part", (table,)))
    return out or [Note("Every run that was found is counted.", "ok")]


SECTIONS: dict[str, Callable[[FleetDocument], list[Block]]] = {
    "masthead": masthead,
    "verdict": verdict,
    "ledger": ledger,
    "causes": causes,
    "groups": groups,
    "weeks": weeks,
    "runs": runs,
    "failures": failures,
    "coverage": coverage,
}
"""Sections of the report by the names that a notebook shows them by, in their order."""
