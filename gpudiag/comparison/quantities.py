"""Every quantity that two runs have in common."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from gpudiag.comparison._quantities.costs import costs_and_energy
from gpudiag.comparison._quantities.durations import durations, durations_at_same_steps, time_per_step
from gpudiag.comparison._quantities.levels import means, peaks
from gpudiag.comparison._quantities.outcomes import outcomes
from gpudiag.comparison._quantities.search import time_to_best
from gpudiag.comparison._quantities.wall_time import parallelism, wall_time, wall_time_per_item
from gpudiag.comparison._quantities.whole_training import GPU, whole_training
from gpudiag.comparison.logged_steps import logged_times
from gpudiag.comparison.match import Match
from gpudiag.comparison.pruned_apart import as_prices
from gpudiag.comparison.quantity import INVALID, LEVEL, PEAK, Quantity, make
from gpudiag.comparison.shared_gpus import SHARED, shared_gpus
from gpudiag.comparison.side import Side
from gpudiag.faults import Fault, attempt
from gpudiag.statement import joined

OF_GPUS = ("gpu_time", "energy", "cost", GPU)
"""How the names of quantities begin that count GPU time."""


def quantities(baseline: Side, experiment: Side, matched: Match) -> list[Quantity]:
    """All that both runs allow, without verdicts; those that fail by a fault of gpudiag are left out."""
    makers: tuple[Callable[[Side, Side, Match], list[Quantity]], ...] = (
        durations,
        time_per_step,
        durations_at_same_steps,
        wall_time_per_item,
        logged_steps,
        whole_training,
        wall_time,
        outcomes,
        means,
        peaks,
        costs_and_energy,
        time_to_best,
        parallelism,
    )
    made = [
        attempt(f"quantities {maker.__name__.replace('_', ' ')}", partial(maker, baseline, experiment, matched))
        for maker in makers
    ]
    found = as_prices([quantity for some in made if not isinstance(some, Fault) for quantity in some])
    return found if shared_gpus(baseline, experiment) is None else [_of_both(quantity) for quantity in found]


def _of_both(quantity: Quantity) -> Quantity:
    """The quantity of two runs that recorded the same GPU time: how much of it each used, and for what, is unknown."""
    if quantity.name.startswith(OF_GPUS):
        bare = make(quantity.name, quantity.title, quantity.unit, quantity.kind, (math.nan, math.nan), note=SHARED)
        return replace(bare, verdict=INVALID, tested=False)
    if quantity.kind in (LEVEL, PEAK):
        return replace(quantity, verdict=INVALID, tested=False, note=joined(quantity.note, SHARED))
    return quantity


def logged_steps(baseline: Side, experiment: Side, matched: Match) -> list[Quantity]:
    return logged_times(baseline, experiment)
