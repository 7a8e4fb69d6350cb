"""What a replay of another pruner found, and how it shows itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import pandas as pd

from gpudiag.forecast.estimate import Estimate
from gpudiag.forecast.pruning.document import PrunerEntry, RankEntry, ReplayLevel, ReplayTestEntry
from gpudiag.forecast.pruning.play import ReplayBacktest
from gpudiag.plain_data import JsonObject, clean, entry_of, plain_object
from gpudiag.shown import Shown, words


@dataclass(frozen=True, eq=False, repr=False)
class PrunerReplay(Shown):
    """What a candidate pruner would have done with the recorded curves.

    ``level``: 'exact' (every curve reaches far enough, and their order is known: steps are exact), 'value' (90 % or
    more of the trials are identified), 'bounds' (fewer, or the back-test failed: ``reason`` says why). Counts and rates
    are over the ``n_trials`` COMPLETE and PRUNED trials with reports; a FAIL trial that the candidate cuts before it
    failed counts as pruned too. A trial is identified if its record reaches to where the candidate cuts it or to its
    own end; a record that the logging pruner ended sooner is cut off. Hours have an interval at every level.

    ``pruned_pct``, ``steps`` (all trials with reports), ``saved_steps``, ``saved_worker_h``, ``saved_gpu_h`` (negative:
    added) and ``regret`` are Estimates: the regret is how much worse the best COMPLETE value gets, in units of the
    objective, among the trials that completed in the log. ``logged_pruned_pct`` and ``logged_steps`` are what happened.
    ``best_killed``: whether the best trial of the log is pruned; None where that depends on the order of reports.

    ``trials``: study, trial, state, steps, outcome (pruned, kept, unknown), cut_step, steps_low, steps_high, value.
    ``rank``: see :func:`gpudiag.forecast.pruning.rank.rank_agreement`.
    ``reports``: study, trial, step, value as replayed.
    ``max_steps``: what trials may reach, stated or seen; ``longest_complete``: steps of the longest COMPLETE trial.
    ``n_replays``: how often the pruner was replayed: in the order of the log, with the log's workers taking the next
    trial as they fall free, and with cut-off trials leaving or holding their last value.
    """

    pruner: str
    studies: tuple[str, ...]
    level: ReplayLevel
    reason: str
    n_trials: int
    n_left_out: int
    identified_pct: float
    logged_pruned_pct: float
    pruned_pct: Estimate
    logged_steps: int
    steps: Estimate
    saved_steps: Estimate
    saved_worker_h: Estimate
    saved_gpu_h: Estimate
    regret: Estimate
    best_trial: int | None
    best_killed: bool | None
    best_cut_step: int | None
    backtests: tuple[ReplayBacktest, ...]
    workers: int
    ordered: bool
    n_replays: int
    max_steps: int
    longest_complete: int
    trials: pd.DataFrame
    rank: pd.DataFrame
    reports: pd.DataFrame

    def to_frame(self) -> pd.DataFrame:
        """One row a quantity: quantity, logged, value, low, high, unit."""
        rows = [(name, logged, e.value, e.low, e.high, e.unit) for name, logged, e in self.quantities()]
        return pd.DataFrame(rows, columns=["quantity", "logged", "value", "low", "high", "unit"])

    def quantities(self) -> list[tuple[str, float, Estimate]]:
        """(name, as logged, Estimate) of everything forecast."""
        return [
            ("pruned, of decided", self.logged_pruned_pct, self.pruned_pct),
            ("steps trained", float(self.logged_steps), self.steps),
            ("steps saved", 0.0, self.saved_steps),
            ("worker time saved", 0.0, self.saved_worker_h),
            ("GPU time saved", 0.0, self.saved_gpu_h),
            ("regret", 0.0, self.regret),
        ]

    @property
    def document(self) -> PrunerEntry:
        """As the document of a forecast holds it: unknown is None."""
        return PrunerEntry(
            pruner=self.pruner,
            level=self.level,
            reason=self.reason,
            n_trials=self.n_trials,
            n_left_out=self.n_left_out,
            identified_pct=clean(self.identified_pct),
            logged_pruned_pct=clean(self.logged_pruned_pct),
            logged_steps=self.logged_steps,
            best_trial=self.best_trial,
            best_killed=self.best_killed,
            best_cut_step=self.best_cut_step,
            workers=self.workers,
            ordered=self.ordered,
            n_replays=self.n_replays,
            max_steps=self.max_steps,
            longest_complete=self.longest_complete,
            studies=self.studies,
            pruned_pct=self.pruned_pct,
            steps=self.steps,
            saved_steps=self.saved_steps,
            saved_worker_h=self.saved_worker_h,
            saved_gpu_h=self.saved_gpu_h,
            regret=self.regret,
            backtests=tuple(ReplayTestEntry(**vars(test)) for test in self.backtests),
            rank=tuple(entry_of(RankEntry, row) for row in self.rank.to_dict("records")),
            notes=self.notes,
        )

    def to_dict(self) -> JsonObject:
        """For JSON: scalars, estimates with value, low, high, unit and reason, back-tests and the rank table."""
        return plain_object(self.document)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences: why values are missing, the back-test, the best trial, and the experiment that would tell."""
        return cast(tuple[str, ...], words().notes_of(self))
