"""What a fleet says in three sentences: where the GPU time went, what cost most, what to do next."""

from __future__ import annotations

from collections.abc import Sequence

from gpudiag.report.fleet.document import CauseTotal, FleetHeadline, RunRow, Total
from gpudiag.report.format import plural, quantity, share

WORST = ("critical", "warning", "note", "ok", "unknown")


def headline(total: Total, causes: Sequence[CauseTotal], rows: Sequence[RunRow]) -> FleetHeadline:
    """The headline of these totals."""
    if not total.n_runs:
        n = sum(row.status == "not diagnosed" for row in rows)
        first = f"None of {plural(n, 'run')} could be diagnosed." if n else "There is no run."
        return FleetHeadline("unknown", (first, "", ""))
    levels = {row.level for row in rows if row.status == "diagnosed"}
    level = next((one for one in WORST if one in levels), "unknown")
    return FleetHeadline(level, (_where(total), _cost(total, causes), _next(causes)))


def _where(total: Total) -> str:
    runs = plural(total.n_runs, "run")
    if not total.gpu_s:
        return f"None of the {runs} recorded a GPU." if total.n_runs != 1 else "The run recorded no GPU."
    seen = total.gpu_s - total.cells["unobserved"]
    mean = f", at {share(total.util_pct)} mean utilization" if total.util_pct == total.util_pct else ""
    idle = f"; GPUs were idle for {share(100 * total.idle_gpu_s / total.gpu_s)} of the time" if seen else ""
    return f"{runs} held GPUs for {quantity(total.gpu_s / 3600, 'GPU-h')}{mean}{idle}."


def _cost(total: Total, causes: Sequence[CauseTotal]) -> str:
    if not causes:
        return "No check found a fault in any run."
    first = causes[0]
    if not first.lost_gpu_h:
        most = max(causes, key=lambda one: one.n_runs)
        return f"The most common finding: {most.title} ({most.n_runs:,} of {plural(total.n_runs, 'run')})."
    part = f", {share(100 * 3600 * first.lost_gpu_h / total.gpu_s)} of all" if total.gpu_s else ""
    return (
        f"{first.title}. It cost at least {quantity(first.lost_gpu_h, 'GPU-h')}{part}, in {plural(first.n_top, 'run')}."
    )


def _next(causes: Sequence[CauseTotal]) -> str:
    if not causes or not causes[0].worst_run or not causes[0].lost_gpu_h:
        return ""
    return f"Start with {causes[0].worst_run}, which it cost most."
