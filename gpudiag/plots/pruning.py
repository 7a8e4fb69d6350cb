"""Where trials were pruned."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from gpudiag.errors import NotMeasurable
from gpudiag.measures.pruning import PruningProfile
from gpudiag.plots.palette import STATE_COLORS
from gpudiag.plots.picture import painter

MAX_BARS = 60


@painter
def plot_prune_steps(pruning: PruningProfile) -> Figure:
    """Histogram of the last step of PRUNED trials.

    Raises NotMeasurable if no pruned trial reported a value.
    """
    steps = pruning.steps["last_step"].dropna().to_numpy(float)
    if not len(steps):
        raise NotMeasurable("No pruned trial reported an intermediate value.")
    figure = Figure(figsize=(9, 4), layout="constrained")
    ax = figure.add_subplot()
    ax.hist(steps, bins=_edges(steps), color=STATE_COLORS["PRUNED"], edgecolor="white", linewidth=0.6)
    ax.set(xlabel="last step reported [steps]", ylabel="PRUNED trials [count]")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    ax.grid(visible=False, axis="x")
    return figure


def alt_prune_steps(pruning: PruningProfile) -> str:
    """What :func:`plot_prune_steps` shows."""
    return (
        f"Histogram of the last step of {len(pruning.steps)} pruned trials: half were cut by step "
        f"{pruning.median_step:g}, {pruning.at_first_pct:.0f} % at step {pruning.first_step:g}, "
        "the first that pruned any."
    )


def _edges(steps: np.ndarray) -> list[float]:
    """One bar a step, or steps in equal groups where there would be more than MAX_BARS."""
    low, high = math.floor(steps.min()), math.ceil(steps.max())
    width = max(1, math.ceil((high - low + 1) / MAX_BARS))
    return np.arange(low - 0.5, high + width + 0.5, width).tolist()
