"""Runs added up."""

from __future__ import annotations

import math
from collections.abc import Iterable

from gpudiag.fleets.groups import grouped
from gpudiag.report.fleet.document import CELLS, RUNS, TIMED, RunRow, Total


def totals_by(rows: Iterable[RunRow], group: str) -> list[Total]:
    """Totals of the parts of a fleet, the most GPU time first (times in their order). Raises ConfigError."""
    out = [total_of(name, held) for name, held in grouped(rows, group).items()]
    return sorted(out, key=lambda one: one.name if group in TIMED else (-one.gpu_s, one.name))


def total_of(name: str, rows: Iterable[RunRow]) -> Total:
    """These runs added up."""
    rows = list(rows)
    known = [row for row in rows if row.gpu_s is not None]
    cells = {cell: math.fsum(getattr(row, f"{cell}_gpu_s") or 0.0 for row in known) for cell in CELLS}
    seen = [((row.gpu_s or 0.0) - (row.unobserved_gpu_s or 0.0), row.util_pct) for row in known]
    weighed = [(weight, pct) for weight, pct in seen if pct is not None and weight > 0]
    weight = math.fsum(weight for weight, _ in weighed)
    runs = [row for row in rows if row.status in RUNS]
    return Total(
        name,
        n_runs=len(runs),
        n_without_telemetry=sum(row.gpu_s is None for row in runs),
        gpu_s=math.fsum(cells.values()),
        cells=cells,
        util_pct=math.fsum(w * pct for w, pct in weighed) / weight if weight else math.nan,
        failed_gpu_s=math.fsum(row.failed_gpu_s or 0.0 for row in rows),
        pruned_gpu_s=math.fsum(row.pruned_gpu_s or 0.0 for row in rows),
        energy_kwh=math.fsum(row.energy_kwh or 0.0 for row in rows),
        n_trials=sum(row.n_trials or 0 for row in rows),
        n_failed=sum(row.n_failed or 0 for row in rows),
        recoverable_gpu_h=math.fsum(row.recoverable_gpu_h or 0.0 for row in rows),
        cost=_money(rows),
        n_priced=sum(row.cost is not None for row in rows),
    )


def _money(rows: list[RunRow]) -> dict[str, float]:
    """What the runs cost by currency, of those that state a price."""
    names = sorted({row.currency for row in rows if row.cost is not None})
    return {name: math.fsum(row.cost or 0.0 for row in rows if row.currency == name) for name in names}
