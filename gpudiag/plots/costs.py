"""What the search got for its GPU time."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gpudiag.errors import NotMeasurable
from gpudiag.measures.costs import CostsProfile
from gpudiag.plots._draw.axes import legend_above, short
from gpudiag.plots._draw.palette import gpu_color, gpu_dash
from gpudiag.plots._draw.picture import Plot, painter
from gpudiag.report.format import alike, number, plural

MAX_STUDIES = 4


@painter
def plot_progress(costs: CostsProfile) -> Figure:
    """The best value so far against the GPU-hours of the study's trials up to then, for the first four studies.

    Raises NotMeasurable if no COMPLETE trial of a single-objective study has a value and a GPU.
    """
    parts = _parts(costs)
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    ax = figure.add_subplot()
    handles = []
    for i, (study, spent, best) in enumerate(parts):
        color, dash = gpu_color(i), gpu_dash(i)
        end = np.append(spent, max(costs.trial_gpu_h, spent[-1]))
        ax.step(end, np.append(best, best[-1]), where="post", linewidth=1.6, color=color, linestyle=dash)
        ax.scatter(spent, best, s=14, color=color, zorder=3)
        handles.append(Line2D([], [], label=short(study, 28), color=color, linestyle=dash))
    ax.set(xlabel="GPU time of trials so far [GPU-h]", ylabel="best value so far [objective]", xlim=(0, None))
    if len(parts) > 1:
        legend_above(ax, handles, 2)
    return figure


def alt_progress(costs: CostsProfile) -> str:
    """What :func:`plot_progress` shows."""
    texts = []
    for study, spent, best in _parts(costs):
        name = "" if costs.progress["study"].nunique() == 1 else f" of {study}"
        first, last, total = alike("GPU-h", spent[0], spent[-1], costs.trial_gpu_h)
        texts.append(
            f"The best value{name} went from {number(best[0])} after {first} to {number(best[-1])} after {last}, in "
            f"{plural(len(best), 'step')}; the trials took {total} in all."
        )
    return " ".join(texts)


PROGRESS = Plot(
    plot_progress,
    alt_progress,
    "What the search got for its GPU time. Long flat stretches bought no better value.",
)


def _parts(costs: CostsProfile) -> list[tuple[str, np.ndarray, np.ndarray]]:
    known = costs.progress[np.isfinite(costs.progress["gpu_h"].to_numpy(float))]
    if known.empty:
        raise NotMeasurable("No COMPLETE trial has both a value and GPU time of its own.")
    groups = list(known.groupby("study", sort=False))[:MAX_STUDIES]
    return [(str(study), rows["gpu_h"].to_numpy(float), rows["best"].to_numpy(float)) for study, rows in groups]
