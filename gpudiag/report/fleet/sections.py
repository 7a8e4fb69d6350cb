"""A fleet as blocks: the sections of the notebook and of its reports."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from gpudiag.report._render.blocks import (
    Block,
    Chip,
    Figure,
    Folded,
    Note,
    Number,
    TableBlock,
    TableCell,
)
from gpudiag.report._sections.ledger import CELLS
from gpudiag.report.fleet.changes import changes_section
from gpudiag.report.fleet.cluster import cluster
from gpudiag.report.fleet.document import (
    OF_RUNS,
    RUNS,
    TIMED,
    CauseTotal,
    FleetDocument,
    RunRow,
    Total,
    no_run,
    short_weeks,
)
from gpudiag.report.fleet.headline import report_command
from gpudiag.report.fleet.top import masthead, verdict
from gpudiag.report.format import (
    UNKNOWN,
    count,
    listed,
    money,
    plural,
    quantity,
    safe,
    share,
)
from gpudiag.report.timeline.trials import ENDED

MOST_GROUPS, MOST_RUNS, MOST_CAUSES = 10, 20, 6
MOST_LEFT = 500
"""Rows of a table on the page; the data set has all of them."""
OPEN_LEFT = 10
"""Of the runs that do not count, those whose reasons stand open."""
OPEN_RUNS = 6
MOST_OFFENDERS = 2
MOST_ALIKE = 3
"""Runs of one reason that are named."""
"""Of the worst runs, those that stand open."""
IDLE_ALONE = ("idle", "less than 10 % utilization")
"""Of a fleet without trials: nobody knows what an idle GPU waits for."""
UNOBSERVED = ("unobserved", "no telemetry, or none of utilization (MIG)")
LOST_MEANS = "Lost at least: a run's loss counts for its costliest finding alone, since findings overlap"
TOUCHED_MEANS = (
    "Only touched: all GPU time of these trials or runs, where the cost is unknown. It overlaps and is "
    "no estimate of a loss. "
)
STUDY = (
    "A study of 706 causes in 400 jobs of low utilization found 46 % in operations on data and 45 % in training or "
    "evaluation of the model (ICSE 2024, doi 10.1145/3597503.3639232)."
)
ELSEWHERE = "counted elsewhere"
ELSEWHERE_MEANS = f" ({ELSEWHERE}: known, and part of what another finding, or another run, counts)"


def ledger(document: FleetDocument) -> list[Block]:
    """GPU time by category, over all runs."""
    total = document.total
    if not total.gpu_s:
        return [Note("No run recorded its GPUs, so nothing can be said about their time.", "unknown")]
    named = {**CELLS, "unobserved": UNOBSERVED} | ({} if total.n_trials else {"idle_no_trial": IDLE_ALONE})
    rows: list[tuple[TableCell, ...]] = [
        (
            name,
            Number(quantity(total.cells[cell] / 3600, "GPU-h", exact=True)),
            Number(share(100 * total.cells[cell] / total.gpu_s, exact=True)),
            what,
        )
        for cell, (name, what) in named.items()
        if total.cells[cell] > 0
    ]
    rest = ", and of GPUs that no single run had" if any(row.status not in OF_RUNS for row in document.counted) else ""
    caption = f"The categories add up to all GPU time of {plural(_with_telemetry(total), 'run')} with telemetry{rest}."
    return [
        TableBlock(("Category", "Time", "Share", "What it means"), tuple(rows), caption),
        Figure("hosts", small=True),
    ]


def _with_telemetry(total: Total) -> int:
    return total.n_runs - total.n_without_telemetry


def causes(document: FleetDocument) -> list[Block]:
    """What was found, by what it lost."""
    if not document.checked:
        return []
    if not document.causes:
        return [Note("No check found a fault in any run.", "ok")]
    n, priced = len(document.checked), any(one.lost_cost for one in document.causes)
    known = {cause.rule for row in document.checked for cause in row.causes if cause.lost_gpu_h}
    known -= {one.rule for one in document.causes if one.lost_gpu_h}
    lost = bool(known) or any(one.lost_gpu_h for one in document.causes)
    touched = any(one.touched_gpu_h for one in document.causes)
    rows: list[tuple[TableCell, ...]] = [
        (
            one.title,
            *([_lost(one, known, priced=priced)] if lost else []),
            *([_touched(one)] if touched else []),
            Number(f"{one.n_runs:,} ({share(100 * one.n_runs / n)})"),
            one.worst_run or UNKNOWN,
            ", ".join(f"{name} ({k:,})" for name, k in one.offenders[:MOST_OFFENDERS]) or UNKNOWN,
        )
        for one in document.causes
    ]
    said = f"{LOST_MEANS}{ELSEWHERE_MEANS if known else ''}. " if lost else ""
    caption = f"{said}{TOUCHED_MEANS if touched else ''}{STUDY}"
    columns = (
        "Cause",
        *(["Lost at least"] if lost else []),
        *(["Only touched"] if touched else []),
        "Runs with it",
        "Worst run",
        "Most often (user)",
    )
    shown = TableBlock(columns, tuple(rows[:MOST_CAUSES]), caption)
    rest = rows[MOST_CAUSES:]
    return [shown, *([Folded(plural(len(rest), "further cause"), (TableBlock(columns, tuple(rest)),))] if rest else [])]


def _lost(one: CauseTotal, known: Collection[str], *, priced: bool) -> TableCell:
    """``known``: causes whose cost counts for another one; ``priced``: money stands beside the GPU-hours."""
    hours = quantity(one.lost_gpu_h, "GPU-h") if one.lost_gpu_h else ELSEWHERE if one.rule in known else UNKNOWN
    if not priced:
        return Number(hours)
    return f"{hours}, {_money(one.lost_cost)}" if one.lost_cost else hours


def _touched(one: CauseTotal) -> str:
    if not one.touched_gpu_h:
        return UNKNOWN
    return f"{quantity(one.touched_gpu_h, 'GPU-h')} of {one.touched}"


def groups(document: FleetDocument) -> list[Block]:
    """The same totals by what was asked for."""
    return [_totals(document.groups, document.by)]


def weeks(document: FleetDocument) -> list[Block]:
    """The same totals by the week in which a run began."""
    if len(document.weeks) < 2:
        return []
    steps = changes_section(document.changes)
    few = short_weeks(document.weeks)
    left = [Note(f"{listed(sorted(few))}: less than 1 % of the usual observed time; no point of the course.")]
    table = _totals(document.weeks, "week", most=len(document.weeks))
    return [Figure("weeks", small=True), *steps, Folded("Week by week", (table, *(left if few else [])))]


def _totals(held: Iterable[Total], by: str, most: int = MOST_GROUPS) -> TableBlock:
    held = list(held)
    unseen, failed, lost, energy, money_known = (
        any(getattr(one, name) for one in held)
        for name in ("n_without_telemetry", "failed_gpu_s", "recoverable_gpu_h", "energy_kwh", "n_priced")
    )
    unseen &= not money_known  # one column too many for a page
    rows: list[tuple[TableCell, ...]] = [
        (
            one.name,
            Number(count(one.n_runs)),
            *([Number(count(one.n_without_telemetry))] if unseen else []),
            Number(quantity(one.gpu_s / 3600, "GPU-h") if one.gpu_s else UNKNOWN),
            Number(share(one.util_pct)),
            Number(share(100 * one.idle_gpu_s / one.gpu_s) if one.observed_gpu_s else UNKNOWN),
            *([Number(quantity(one.failed_gpu_s / 3600, "GPU-h") if one.failed_gpu_s else UNKNOWN)] if failed else []),
            *([Number(quantity(one.recoverable_gpu_h, "GPU-h") if one.recoverable_gpu_h else UNKNOWN)] if lost else []),
            *([Number(quantity(one.energy_kwh, "kWh") if one.energy_kwh else UNKNOWN)] if energy else []),
            *([Number(_money(one.cost))] if money_known else []),
        )
        for one in held
    ]
    caption = _more(len(rows), most)
    if money_known and any(one.n_priced < one.n_runs - one.n_without_telemetry for one in held):
        caption = f"Cost is that of the runs with a price: price_per_gpu_h in run.toml, or --price. {caption}".strip()
    if by in TIMED:
        caption = f"The whole time of a run counts in the {by} in which it began. {caption}".strip()
    columns = (
        f"{by[0].upper()}{by[1:]}{' of start' if by in TIMED else ''}",
        "Runs",
        *(["Without GPU time"] if unseen else []),
        "GPU time",
        "Utilization",
        "Idle",
        *(["Failed trials"] if failed else []),
        *(["Lost at least"] if lost else []),
        *(["Energy"] if energy else []),
        *(["Cost"] if money_known else []),
    )
    return TableBlock(columns, tuple(rows[:most]), caption)


def _more(n: int, most: int) -> str:
    return f"{n - most:,} more are in the table of the fleet." if n > most else ""


def _money(cost: Mapping[str, float]) -> str:
    return " + ".join(money(value, currency) for currency, value in cost.items()) or UNKNOWN


def runs(document: FleetDocument) -> list[Block]:
    """The runs that lost most."""
    if not document.checked:
        return []
    worst = sorted(
        (row for row in document.counted if row.recoverable_gpu_h),
        key=lambda row: (-(row.recoverable_gpu_h or 0.0), row.run),
    )
    if not worst:
        return []
    rows = tuple(_run(row, document) for row in worst[:MOST_RUNS])
    columns = ("Run", "Worst", "GPU time", "Utilization", "Lost at least", "To what")
    rest = rows[OPEN_RUNS:]
    more = [Folded(f"The next {plural(len(rest), 'run')}", (TableBlock(columns, rest),))] if rest else []
    first = report_command(worst[0])
    caption = f"The first in full: {first}" if first else ""
    return [TableBlock(columns, rows[:OPEN_RUNS], caption), *more]


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
    """Trials that failed: by kind, and by run."""
    if not document.failures:
        return []
    kinds: list[tuple[TableCell, ...]] = [
        (
            ENDED.get(one.kind, one.kind),
            Number(count(one.n_trials)),
            Number(count(one.n_runs)),
            Number(UNKNOWN if one.gpu_s is None else quantity(one.gpu_s / 3600, "GPU-h")),
            ", ".join(f"{name} ({n:,})" for name, n in one.groups),
        )
        for one in document.failures
    ]
    columns = ("Why", "Trials", "Runs", "GPU time", f"Most in ({document.by})")
    caption = "By what the error message or the log says. GPU time is that of runs with telemetry."
    return [TableBlock(columns, tuple(kinds), caption), *_failures_by_run(document)]


def _failures_by_run(document: FleetDocument) -> list[Block]:
    rows = [row for row in document.counted if row.n_failed]
    rows.sort(key=lambda row: (-(row.failed_gpu_s or 0.0), -(row.n_failed or 0), row.run))
    cells: list[tuple[TableCell, ...]] = [
        (
            row.run,
            Number(f"{row.n_failed:,} of {row.n_trials:,}"),
            Number(UNKNOWN if row.failed_gpu_s is None else quantity(row.failed_gpu_s / 3600, "GPU-h")),
        )
        for row in rows[:MOST_RUNS]
    ]
    return [Folded("Failed trials by run", (TableBlock(("Run", "Failed", "GPU time of failed trials"), tuple(cells)),))]


def coverage(document: FleetDocument) -> list[Block]:
    """What is not in the totals, and why."""
    out: list[Block] = [*_bare(document), *_twice(document)]
    if failed := sum(row.status == "not diagnosed" for row in document.runs):
        out.append(Note(f"{plural(failed, 'run')} could not be diagnosed.", "unknown"))
    if document.unread:
        out.append(Note(passed_over(document.unread), "unknown"))
    out += _left_out(document)
    return out or [Note("Every run that was found is counted.", "ok")]


def _left_out(document: FleetDocument) -> list[Block]:
    """Runs with the reason why they count in part or not at all: those that failed first, a few of them open."""
    left = [row for row in document.runs if row.reason and not no_run(row) and row.status != "continued"]
    left.sort(key=lambda row: row.status != "not diagnosed")
    alike: dict[tuple[str, str], list[str]] = {}
    for row in left:
        alike.setdefault((row.status, row.reason), []).append(row.run)
    shown = list(alike.items())[:MOST_LEFT]
    cells: list[tuple[TableCell, ...]] = [(_some(names), status, why) for (status, why), names in shown]
    columns = ("Run", "State", "Why")
    out: list[Block] = [TableBlock(columns, tuple(cells[:OPEN_LEFT]))] if cells else []
    if rest := cells[OPEN_LEFT:]:
        table = TableBlock(columns, tuple(rest), _more(len(alike), MOST_LEFT))
        out.append(Folded(f"{plural(len(alike) - OPEN_LEFT, 'further reason')}", (table,)))
    return out


def _some(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - MOST_ALIKE:,} more" if len(names) > MOST_ALIKE else ""
    return f"{', '.join(names[:MOST_ALIKE])}{more}"


def _bare(document: FleetDocument) -> list[Block]:
    """Runs without GPU time; those of which another run has it are not among them."""
    rows = [row for row in document.counted if row.status in RUNS and row.gpu_s is None]
    bare = [row for row in rows if not row.reason or row.status == "accounted"]
    if not bare:
        return []
    what = "recorded no GPU" if document.cluster is None else "have no GPU time of their own"
    note = Note(f"{plural(len(bare), 'run')} {what}: they count as runs and trials, not as GPU time.")
    unseen: list[tuple[TableCell, ...]] = [
        (row.run, row.user, Number(count(row.n_trials))) for row in bare if not row.reason
    ]
    held = TableBlock(("Run", "User", "Trials"), tuple(unseen[:MOST_RUNS]), _more(len(unseen), MOST_RUNS))
    title = "Runs without telemetry" if document.cluster is None else "Runs without GPU time of their own"
    return [note, *([Folded(title, (held,))] if unseen else [])]


def _twice(document: FleetDocument) -> list[Block]:
    """Runs whose GPU time counts with another one."""
    n = sum(row.status == "diagnosed" and row.gpu_s is None and bool(row.reason) for row in document.runs)
    return (
        [Note(f"The GPU time of {plural(n, 'run')} counts with other telemetry of the same GPUs at the same time.")]
        if n
        else []
    )


def passed_over(places: Sequence[str]) -> str:
    """Which folders and files belong to no run, the first three by name."""
    named = ", ".join(safe(one) for one in places[:3]) + (" ..." if len(places) > 3 else "")
    verb = "holds" if len(places) == 1 else "hold"
    return f"{plural(len(places), 'place')} {verb} files that belong to no run: {named}"


SECTIONS: dict[str, Callable[[FleetDocument], list[Block]]] = {
    "masthead": masthead,
    "verdict": verdict,
    "ledger": ledger,
    "cluster": cluster,
    "causes": causes,
    "groups": groups,
    "weeks": weeks,
    "runs": runs,
    "failures": failures,
    "coverage": coverage,
}
"""Sections of the report by the names that a notebook shows them by, in their order."""
