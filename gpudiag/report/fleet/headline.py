"""What a fleet says in three sentences: where the GPU time went, what cost most, what to do next."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Sequence

from gpudiag.report.fleet.changes import Changes
from gpudiag.report.fleet.document import CauseTotal, ClusterDocument, FleetHeadline, RunRow, Total
from gpudiag.report.fleet.verdict import level_of, verdict_of
from gpudiag.report.format import plural, quantity, share

WORTH_SAYING_PCT = 1.0
"""Of all GPU time, the part that nobody observed, or that counts nowhere, from which on the headline says it."""


def headline(
    total: Total,
    causes: Sequence[CauseTotal],
    rows: Sequence[RunRow],
    cluster: ClusterDocument | None = None,
    changes: Changes | None = None,
) -> FleetHeadline:
    """The headline of these totals."""
    if not total.n_runs and not total.gpu_s:
        n = sum(row.status == "not diagnosed" for row in rows)
        failed = "The run could not be diagnosed." if n == 1 else f"None of the {n:,} runs could be diagnosed."
        first = failed if n else "There is no run."
        return FleetHeadline("unknown", first, (first, "", ""))
    checked = [row for row in rows if row.status == "diagnosed"]
    least = "at least " if is_lower_bound(total, rows) else ""
    where = _where(total, least) if cluster is None else _watched(total)
    level, said = level_of(total, changes), verdict_of(total, changes, rows, cluster) or where
    if not checked:
        return FleetHeadline(level, said, (where, _used(cluster), ""))
    return FleetHeadline(level, said, (where, _cost(total, causes, len(checked)), _next(causes, rows)))


def is_lower_bound(total: Total, rows: Iterable[RunRow]) -> bool:
    """Whether much GPU time counts nowhere, because a part of it may be another recording's."""
    left_out_s = 3600 * math.fsum(row.left_out_gpu_h or 0.0 for row in rows)
    return 100 * left_out_s >= WORTH_SAYING_PCT * total.gpu_s > 0


def _watched(total: Total) -> str:
    """Of telemetry of a cluster, in which not all GPU time is of a run: of all of it, as everywhere on the page."""
    if not total.gpu_s:
        return "The telemetry spans no GPU time."
    mean = f" at {share(total.util_pct)} mean utilization" if total.util_pct == total.util_pct else ""
    unseen = 100 * total.cells["unobserved"] / total.gpu_s
    bare = f", {share(unseen)} of it without samples," if unseen >= WORTH_SAYING_PCT else ""
    idle = share(100 * total.idle_gpu_s / total.gpu_s)
    return f"The telemetry spans {quantity(total.gpu_s / 3600, 'GPU-h')}{bare}{mean}; GPUs were idle for {idle} of it."


def _used(cluster: ClusterDocument | None) -> str:
    """How many of its GPUs did nothing at all, or next to it."""
    if cluster is None:
        return ""
    n, never, hardly = plural(cluster.n_observed, "GPU"), len(cluster.never_used), len(cluster.hardly_used)
    if never:
        return f"{never:,} of {n} never worked{f', {hardly:,} more hardly' if hardly else ''}."
    return f"{hardly:,} of {n} hardly worked." if hardly else ""


def _where(total: Total, least: str) -> str:
    if not total.gpu_s:
        n = plural(total.n_runs, "run")
        return f"None of the {n} recorded a GPU." if total.n_runs != 1 else "The run recorded no GPU."
    runs = plural(total.n_runs - total.n_without_telemetry, "run")
    seen = total.gpu_s - total.cells["unobserved"]
    mean = f", at {share(total.util_pct)} mean utilization" if total.util_pct == total.util_pct else ""
    idle = f"; GPUs were idle for {share(100 * total.idle_gpu_s / total.gpu_s)} of the time" if seen else ""
    return f"{runs} held GPUs for {least}{quantity(total.gpu_s / 3600, 'GPU-h')}{mean}{idle}."


def _cost(total: Total, causes: Sequence[CauseTotal], n_checked: int) -> str:
    if not causes:
        return "No check found a fault in any run."
    first = causes[0]
    if not first.lost_gpu_h:
        return f"{first.title}, in {first.n_runs:,} of {plural(n_checked, 'run')}.{_touched(first)}"
    part = f", {share(100 * 3600 * first.lost_gpu_h / total.gpu_s)} of all" if total.gpu_s else ""
    return (
        f"{first.title}. It cost at least {quantity(first.lost_gpu_h, 'GPU-h')}{part}, in {plural(first.n_top, 'run')}."
    )


def _touched(one: CauseTotal) -> str:
    if not one.touched_gpu_h:
        return ""
    what = "These runs" if one.touched == "runs" else f"{one.touched[:1].upper()}{one.touched[1:]}"
    return f" {what} took {quantity(one.touched_gpu_h, 'GPU-h')}; what of it was lost is unknown."


def _next(causes: Sequence[CauseTotal], rows: Sequence[RunRow]) -> str:
    if not causes or not causes[0].worst_run:
        return ""
    worst = causes[0].worst_run
    command = next((report_command(row) for row in rows if row.run == worst), "")
    return f"Start with {worst}{f': {command}' if command else '.'}"


def report_command(row: RunRow) -> str:
    """What shows one run in full; '' where its place is hidden."""
    source = f"./{row.source}" if row.source.startswith("-") else row.source
    return shlex.join(["gpudiag", "report", source, *row.options]) if source else ""
