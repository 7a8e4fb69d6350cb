"""The GPU-time ledgers of two runs side by side, cell by cell."""

from __future__ import annotations

from dataclasses import dataclass

from gpudiag.comparison.shared_gpus import shared_gpus
from gpudiag.comparison.side import Side
from gpudiag.measures._time.timeline import CELLS


@dataclass(frozen=True)
class CellDifference:
    """One cell of the ledger over all GPUs: GPU-hours, share of the run, GPU-seconds for one item that did not fail."""

    cell: str
    baseline_gpu_h: float
    experiment_gpu_h: float
    difference_gpu_h: float
    baseline_share_pct: float
    experiment_share_pct: float
    baseline_item_gpu_s: float
    experiment_item_gpu_s: float


def ledger_difference(baseline: Side, experiment: Side) -> tuple[CellDifference, ...]:
    """All cells in their order, the busy ones first; empty where a run has no ledger, or both recorded the same GPU
    time. Differences add up to that of the totals.
    """
    if shared_gpus(baseline, experiment) is not None:
        return ()
    hours = [_hours(side) for side in (baseline, experiment)]
    if not hours[0] or not hours[1]:
        return ()
    total = [sum(part.values()) for part in hours]
    n = [len(side.results) for side in (baseline, experiment)]
    return tuple(
        CellDifference(
            cell,
            hours[0][cell],
            hours[1][cell],
            hours[1][cell] - hours[0][cell],
            100 * hours[0][cell] / total[0],
            100 * hours[1][cell] / total[1],
            3600 * hours[0][cell] / n[0] if n[0] else float("nan"),
            3600 * hours[1][cell] / n[1] if n[1] else float("nan"),
        )
        for cell in reversed(CELLS)
    )


def _hours(side: Side) -> dict[str, float]:
    ledger = side.get("ledger")
    if ledger is None or not ledger.total_gpu_s > 0:
        return {}
    seconds = ledger.cells.groupby(ledger.cells["cell"].astype(str))["gpu_s"].sum()
    return {cell: float(seconds.get(cell, 0.0)) / 3600 for cell in CELLS}
