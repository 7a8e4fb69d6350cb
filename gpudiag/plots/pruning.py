"""Where trials were pruned."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from gpudiag.errors import NotMeasurable
from gpudiag.measures.pruning import PruningProfile
from gpudiag.plots._draw.axes import count_axis, legend_above
from gpudiag.plots._draw.palette import INK, STATE_COLORS, Dash
from gpudiag.plots._draw.picture import Plot, painter
from gpudiag.report.format import count, plural, share

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

MAX_BARS, FEWEST_STEPS = 120, 8


@painter
def plot_prune_steps(pruning: PruningProfile) -> Figure:
    """Histogram of the last step of PRUNED trials, with the median and the first step that may prune.

    Raises NotMeasurable if no pruned trial reported a value.
    """
    steps = _last_steps(pruning)
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    ax = figure.add_subplot()
    ax.hist(steps, bins=_edges(steps), color=STATE_COLORS["PRUNED"], edgecolor="white", linewidth=0.6)
    handles: list[Artist] = [Patch(facecolor=STATE_COLORS["PRUNED"], label=f"PRUNED ({len(steps)} with reports)")]
    handles.append(_mark(ax, pruning.median_step, (0, (5, 2)), f"median: step {pruning.median_step:g}"))
    earliest = _earliest_step(pruning)
    if math.isfinite(earliest):
        text = f"earliest possible: step {earliest:g} (report {count(pruning.config_first_report)})"
        handles.append(_mark(ax, earliest, "solid", text))
    legend_above(ax, handles)
    left, right = steps.min() - 1, max(steps.max() + 1, steps.min() + FEWEST_STEPS)
    ax.set(xlabel="last step reported [step]", ylabel="pruned trials [count]", xlim=(left, right))
    count_axis(ax, "x", 12)
    count_axis(ax, "y", 6)
    ax.grid(visible=False, axis="x")
    return figure


def _last_steps(pruning: PruningProfile) -> np.ndarray:
    steps = pruning.steps["last_step"].dropna().to_numpy(float)
    if not len(steps):
        raise NotMeasurable("No pruned trial reported an intermediate value.")
    return steps


def _mark(ax: Axes, step: float, dash: Dash, text: str) -> Artist:
    ax.axvline(step, color=INK, linestyle=dash, linewidth=1.2)
    return Line2D([], [], color=INK, linestyle=dash, linewidth=1.2, label=text)


def _earliest_step(pruning: PruningProfile) -> float:
    """Step of the first report that may prune; NaN unless every pruned trial reported at each step."""
    ahead = (pruning.steps["last_step"] - pruning.steps["n_reports"]).dropna().unique()
    return pruning.config_first_report + float(ahead[0]) if len(ahead) == 1 else math.nan


def _edges(steps: np.ndarray) -> list[float]:
    """One bar a step, or steps in equal groups where there would be more than MAX_BARS."""
    low, high = math.floor(steps.min()), math.ceil(steps.max())
    width = max(1, math.ceil((high - low + 1) / MAX_BARS))
    return np.arange(low - 0.5, high + width + 0.5, width).tolist()


def alt_prune_steps(pruning: PruningProfile) -> str:
    """What :func:`plot_prune_steps` shows."""
    text = (
        f"Histogram of the last step of {plural(len(_last_steps(pruning)), 'pruned trial')}: half were cut by step "
        f"{pruning.median_step:g}, {share(pruning.at_first_pct)} at step {pruning.first_step:g}, the earliest seen"
    )
    if math.isfinite(pruning.config_first_report):
        text += f"; the pruner may cut from report {count(pruning.config_first_report)}"
    return text + "."


PRUNE_STEPS = Plot(
    plot_prune_steps,
    alt_prune_steps,
    "How far pruned trials came. A pile at the earliest possible step means that trials are cut as soon as the "
    "pruner may cut them.",
)
