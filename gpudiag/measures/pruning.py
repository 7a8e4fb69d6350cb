"""How much was pruned, when, and what it cost, in all three definitions of the rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from gpudiag.run import Run


@dataclass(frozen=True, eq=False)
class PruningProfile:
    """Rates are PRUNED over: all trials; finished (COMPLETE + PRUNED + FAIL); decided (COMPLETE +
    PRUNED). Each has Wilson 95 % bounds ``_low_pct``/``_high_pct``. ``cost_pct`` is the share of
    slot-seconds that PRUNED trials took. ``steps``: study, trial, last_step, n_reports of PRUNED
    trials with reports. ``first_step``: the smallest step at which any trial was pruned;
    ``at_first_pct``: share of PRUNED trials cut there. ``config_first_report``: earliest report number
    (1 = first) at which the configured pruner can prune, NaN unknown; ``before_possible``: PRUNED trials with
    fewer reports than that. ``budget_pct``: sum of steps of PRUNED over n_pruned x max_steps.
    """

    steps: pd.DataFrame
    n_pruned: int
    of_all_pct: float
    of_all_low_pct: float
    of_all_high_pct: float
    of_finished_pct: float
    of_finished_low_pct: float
    of_finished_high_pct: float
    of_decided_pct: float
    of_decided_low_pct: float
    of_decided_high_pct: float
    cost_pct: float
    cost_slot_h: float
    median_step: float
    first_step: float
    at_first_pct: float
    config_first_report: float
    before_possible: int
    budget_pct: float


def measure_pruning(run: Run) -> PruningProfile:
    """Pruning rates, steps and cost. Needs at least one finished trial of a study that prunes."""
    raise NotImplementedError
