"""From where a replay cuts trials to the steps that each would have run, with bounds where a record ends early."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpudiag.forecast.pruning.play import NOT_CUT, ReplayBacktest
from gpudiag.forecast.pruning.recorded import Array, Recorded

OPEN = ("PRUNED", "RUNNING")
"""States whose record ends before the trial would have."""


@dataclass(frozen=True, eq=False)
class Fates:
    """What one replay makes of the trials of a study; arrays in its order.

    ``within``: pruned at a report that was recorded. ``censored``: it would have run beyond its record, and nobody
    knows how far: from ``low`` to ``high`` steps, counted from the study's first. ``point`` is the replay's own answer,
    on the values that it assumed beyond the record, ``pruned`` whether it pruned there or before.
    """

    within: Array
    censored: Array
    low: Array
    high: Array
    point: Array
    pruned: Array


@dataclass(frozen=True, eq=False)
class Plays:
    """The replays of one study; ``cuts[0]`` in the order of the log, ``point`` the one whose values are published."""

    record: Recorded
    cuts: list[Array]
    fates: list[Fates]
    point: int
    backtest: ReplayBacktest | None


def fates_of(record: Recorded, cut: Array) -> Fates:
    """``cut``: position of the report at which each trial is pruned, maybe beyond its record; else NOT_CUT."""
    length = np.array([len(part) for part in record.steps])
    within = (cut != NOT_CUT) & (cut < length)
    open_ended = np.isin(record.state, OPEN) & (record.max_steps > record.done) & (length > 0) & record.ran
    used = record.done.copy()
    for i in np.flatnonzero(within):
        used[i] = max(record.steps[i][: cut[i] + 1]) - record.counts_from + 1
    censored = ~within & open_ended
    assumed = np.where(cut == NOT_CUT, record.max_steps, record.done + cut - length + 1)
    return Fates(
        within=within,
        censored=censored,
        low=used,
        high=np.where(censored, record.max_steps, used),
        point=np.where(censored, np.minimum(assumed, record.max_steps), used),
        pruned=cut != NOT_CUT,
    )


def longest(record: Recorded) -> Fates:
    """Nothing is pruned and what was cut off goes to the end: no pruner can take more."""
    return fates_of(record, np.full(len(record), NOT_CUT))
