"""How many trials ran at once, in which slots, and what lay between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from gpudiag.run import Run


@dataclass(frozen=True, eq=False)
class ParallelismProfile:
    """``concurrency``: time, n_closed (trials with a known end), n_all (with open ones until their
    inferred end), a step function that holds to the next row. ``levels``: level, time_s, share_pct (of the time with at
    least one trial), from n_all. ``slots``: study, trial, state, start, end (inferred for open ones), slot (0-based, FIFO
    colouring), open (bool). ``gaps``: slot, start, end, gap_s, before_trial, after_trial. ``open_trials``: study, trial, start, last_evidence, horizon, reason.
    ``effective`` = time-integral over time with C >= 1; ``effective_low`` counts open trials to their last evidence, ``effective_high`` to the horizon.
    ``handover_pct``: share of starts within 2 s after another trial's end.
    """

    concurrency: pd.DataFrame
    levels: pd.DataFrame
    slots: pd.DataFrame
    gaps: pd.DataFrame
    open_trials: pd.DataFrame
    configured: float
    effective_closed: float
    effective: float
    effective_low: float
    effective_high: float
    effective_window: float
    peak_closed: int
    peak: int
    efficiency_pct: float
    at_configured_pct: float
    above_configured_s: float
    above_configured_trials: int
    n_slots: int
    median_gap_s: float
    mean_gap_s: float
    gap_slot_h: float
    handover_pct: float
    serialised: bool
    window_s: float
    busy_s: float
    n_timed: int
    n_open: int


def measure_parallelism(run: Run) -> ParallelismProfile:
    """Concurrency over the run. Needs trials with start times, and at least one known end."""
    raise NotImplementedError
