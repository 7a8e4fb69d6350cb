"""A replay of a pruner as its part of the document: fields are the keys of the JSON, in its order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gpudiag.forecast.estimate import Estimate

ReplayLevel = Literal["exact", "value", "bounds"]
"""How much of a replay the records tell; see :class:`~gpudiag.forecast.pruning.result.PrunerReplay`."""


@dataclass(frozen=True)
class RankEntry:
    """How well values at a step rank trials as later ones do; see :func:`rank_agreement`."""

    step: int
    n: int
    spearman: float | None
    spearman_low: float | None
    spearman_high: float | None
    n_pairs: int
    depth: float | None
    concordance: float | None
    concordance_low: float | None
    concordance_high: float | None
    reading: Literal["too early", "safe", "undecided", "too few trials"]


@dataclass(frozen=True)
class ReplayTestEntry:
    """The logging pruner asked again over its own log; see :class:`gpudiag.forecast.pruning.play.ReplayBacktest`."""

    pruner: str
    repeated: int
    prunes: int
    others: int
    reports: int


@dataclass(frozen=True)
class PrunerEntry:
    """What another pruner would have done with the recorded curves."""

    pruner: str
    level: ReplayLevel
    reason: str
    n_trials: int
    n_left_out: int
    identified_pct: float | None
    logged_pruned_pct: float | None
    logged_steps: int
    best_trial: int | None
    best_killed: bool | None
    best_cut_step: int | None
    workers: int
    ordered: bool
    n_replays: int
    max_steps: int
    longest_complete: int
    studies: tuple[str, ...]
    pruned_pct: Estimate
    steps: Estimate
    saved_steps: Estimate
    saved_worker_h: Estimate
    saved_gpu_h: Estimate
    regret: Estimate
    backtests: tuple[ReplayTestEntry, ...]
    rank: tuple[RankEntry, ...]
    notes: tuple[str, ...]
