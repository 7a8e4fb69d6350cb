"""What became of the trials: counts, durations in seconds, best value, streaks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from gpudiag.run import Run


@dataclass(frozen=True, eq=False)
class TrialsProfile:
    """``by_state`` (index state, all five, Optuna's order): n, n_timed, share_pct, low_pct, high_pct (Wilson 95 % of
    all), min_s, p25_s, median_s, mean_s, p75_s, max_s, total_slot_s (durations where start and end are known).
    ``durations``: study, trial, state, start, end, duration_s of every trial with a known duration.
    ``best``: study, trial, value, at (UTC), after_s (since the study's first start), over COMPLETE
    trials of single-objective studies with a known direction.
    ``fail_streak``/``success_streak``: longest run of FAIL / of not-FAIL among finished trials in
    order of their end; ``p_fail_streak`` the probability of a FAIL run at least that long by chance
    (Markov recursion; NaN without FAIL).
    """

    by_state: pd.DataFrame
    durations: pd.DataFrame
    best: pd.DataFrame
    n: int
    n_finished: int
    fail_pct: float
    fail_low_pct: float
    fail_high_pct: float
    fail_streak: int
    success_streak: int
    p_fail_streak: float
    span_s: float
    orphans: int
    fail_slot_h: float


def measure_trials(run: Run) -> TrialsProfile:
    """Counts and durations by state. Needs at least one trial. Failure rate is FAIL of finished."""
    raise NotImplementedError
